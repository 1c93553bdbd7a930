"""Words that others wrote, fit for a terminal or a file: a program in the lab, a server, a run
directory. Pure."""

from __future__ import annotations


def printable(words: str, keep: str = "\n") -> str:
    """The words with escapes, as Python writes them, for what a terminal would obey.

    What cannot be printed (str.isprintable) can move the cursor, rename the window or turn the
    direction of what follows. Characters in `keep` stay.
    """
    rest = words
    for one in keep:
        rest = rest.replace(one, "")
    if rest.isprintable():
        return words
    return "".join(
        one if one in keep or one.isprintable() else one.encode("unicode_escape").decode()
        for one in words
    )


def as_utf8(name: str) -> str:
    """The name of a file with an escape for every byte that is no UTF-8 (Python keeps those as
    surrogates), so that a file of text can hold it."""
    return name.encode(errors="backslashreplace").decode()
