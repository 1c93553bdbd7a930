"""Every format of recorded traces, one line each, and which one a file has."""

from __future__ import annotations

import codecs
from typing import Final

from linklab.traces import cellreplay, iperf3, mahimahi, plain, ucc
from linklab.traces.format import Format
from linklab.traces.lines import shown
from linklab.traces.trace import TraceError

FORMATS: Final[dict[str, Format]] = {
    one.name: one
    for one in (
        plain.FORMAT,
        mahimahi.FORMAT,
        cellreplay.FORMAT,
        ucc.FORMAT,
        iperf3.FORMAT,
    )
}
"""By name, in the order in which lists have them. A file is compared with the last one first: to
linklab's own CSV every table looks alike."""

HEAD_BYTES: Final = 1 << 16


def that_take(option: str) -> list[str]:
    """The names of the formats that take an option, a field of `Options`."""
    return [one.name for one in FORMATS.values() if option in one.takes]


def format_of(head: bytes, name: str) -> Format:
    """The format of a file that begins with `head` and is called `name` in errors.

    Raises TraceError where it is none that is known.
    """
    if not head:
        raise TraceError(f"{name}:1: the file is empty; needed: a trace")
    text = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line and not line.startswith("#"):
            return _of_line(line, f"{name}:{number}")
    raise TraceError(f"{name}:1: there are only comments; needed: a trace")


def _of_line(line: str, where: str) -> Format:
    for one in reversed(FORMATS.values()):
        if one.begins(line, where):
            return one
    known = "; ".join(f"{one.name} ({one.looks})" for one in FORMATS.values())
    raise TraceError(f"{where}: {shown(line)} begins no trace; allowed: {known}")
