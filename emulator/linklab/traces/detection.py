"""Which format a trace's file has, from how it begins. Pure but for its errors' words."""

from __future__ import annotations

import codecs
from typing import Final

from linklab.traces.lines import shown
from linklab.traces.trace import TraceError

FORMATS: Final = {
    "csv": "linklab's own: t,down_mbit,up_mbit,rtt_ms,loss",
    "mahimahi": "a millisecond per line",
    "cellreplay": "as mahimahi, 1400 bytes per line",
    "ucc": "G-NetTrack's CSV with Timestamp, DL_bitrate, UL_bitrate",
    "iperf3": "the output of iperf3 -J or --json-stream",
}
"""Every format and what it looks like. `cellreplay` looks like `mahimahi` and is never guessed."""

HEAD_BYTES: Final = 1 << 16


def format_of(head: bytes, name: str) -> str:
    """The format of a file that begins with `head` and is called `name` in errors.

    Raises TraceError where it is none that is known.
    """
    if not head:
        raise TraceError(f"{name}:1: the file is empty; needed: a trace")
    text = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line.startswith("{"):
            return "iperf3"
        if line and not line.startswith("#"):
            return _of_line(line, f"{name}:{number}")
    raise TraceError(f"{name}:1: there are only comments; needed: a trace")


def _of_line(line: str, where: str) -> str:
    if "Timestamp" in line and "DL_bitrate" in line:
        return "ucc"
    if "," in line or ";" in line:
        return "csv"
    words = line.split()
    if all(word.isascii() and word.isdigit() for word in words):
        if len(words) == 1:
            return "mahimahi"
        raise TraceError(
            f"{where}: this is CellReplay's light trace, which tells delays and no capacity; "
            "allowed: the heavy trace, with this one for the RTT beside it"
        )
    known = "; ".join(f"{name} ({what})" for name, what in FORMATS.items())
    raise TraceError(f"{where}: {shown(line)} begins no trace; allowed: {known}")
