"""Words that others wrote, fit for a terminal: a program in the lab, a server, a run directory."""

from __future__ import annotations


def printable(words: str, keep: str = "\n") -> str:
    """The words with escapes, as Python writes them, for what a terminal would obey.

    What cannot be printed (str.isprintable) can move the cursor, rename the window or turn the
    direction of what follows. Characters in `keep` stay.
    """
    return "".join(
        one if one in keep or one.isprintable() else one.encode("unicode_escape").decode()
        for one in words
    )
