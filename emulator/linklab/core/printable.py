"""Escapes untrusted text for a terminal or a file. Pure.

Such text comes from a program in the lab, a server, or a run directory.
"""

from __future__ import annotations


def printable(words: str, keep: str = "\n") -> str:
    """Escapes unprintable characters (str.isprintable) like Python does, except those in `keep`.

    Unprintable characters can move the cursor, rename the window or change the text's direction.
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
    """Escapes the bytes of a file's name that are not UTF-8, so that a text file can hold it.

    Python represents such bytes as surrogates.
    """
    return name.encode(errors="backslashreplace").decode()
