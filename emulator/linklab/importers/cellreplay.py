"""Reads CellReplay's traces (Sentosa et al., NSDI 2025): capacity under heavy load, delay under light.

The *heavy* trace has Mahimahi's format, with 1400 bytes per opportunity. A line of the *light* trace
is `time_ms one_way_ms pdo0 pdo1 …`. It describes a train of packets: its start, the delay of its
first packet, and the arrivals of the others after that.

A link of the lab has one rate for all loads. So the heavy trace gives the rate, and the light trace
the RTT, which is twice the one-way delay. The arrivals within a train are not used. CellReplay
interpolates the delay between two lines; here a line holds until the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from linklab.core.limits import MAX_RTT_S
from linklab.importers import mahimahi
from linklab.importers.format import Format
from linklab.traces.lines import TRUNCATED, Lines, quoted
from linklab.traces.trace import MAX_LENGTH_NS, TraceError

OPPORTUNITY_BYTES: Final = 1400
"""The bytes of one line of a heavy trace."""

_NS_PER_MS = 1_000_000
_FORM = "whole numbers: time_ms one_way_ms pdo0 pdo1 …"


def read_light(file: BinaryIO, name: str, notes: list[str]) -> Iterator[tuple[int, float]]:
    """Yields times in ns and the RTT in seconds from then on, in order.

    A truncated last line is left out, and `notes` says so. Raises TraceError.
    """
    lines = Lines(file, name)
    before_ms: int | None = None
    for line in lines:
        words = line.split()
        if lines.is_truncated and before_ms is not None and len(words) < 3:
            if TRUNCATED not in notes:
                notes.append(TRUNCATED)
            break
        if len(words) < 2:
            lines.fail(f"{quoted(line)} has too few numbers; allowed: {_FORM}")
        for word in words:
            if not (word.isascii() and word.isdigit()):
                lines.fail(f"{quoted(word)} is not a whole number; allowed: {_FORM}")
        time_ms = int(lines.decimal("time_ms", words[0], 0, MAX_LENGTH_NS // _NS_PER_MS, "ms"))
        delay_ms = int(lines.decimal("one_way_ms", words[1], 0, int(MAX_RTT_S * 500), "ms"))
        if before_ms is not None and time_ms < before_ms:
            reason = f"{time_ms} is less than {before_ms} before it; allowed: {before_ms} or more"
            lines.fail(reason, "time_ms")
        before_ms = time_ms
        yield time_ms * _NS_PER_MS, 2 * delay_ms / 1000
    if before_ms is None:
        lines.fail(f"the file is empty; needed: {_FORM}")


def _begins(line: str, where: str) -> bool:
    """Returns False, because a heavy trace looks like Mahimahi's. Refuses a light trace."""
    words = line.split()
    if len(words) > 1 and all(word.isascii() and word.isdigit() for word in words):
        raise TraceError(
            f"{where}: this is CellReplay's light trace, which tells delays and no capacity; "
            "allowed: the heavy trace, with this one for the RTT beside it"
        )
    return False


FORMAT: Final = Format(
    name="cellreplay",
    looks="as mahimahi, 1400 bytes per line",
    begins=_begins,
    read=lambda file, name, options, only_up: mahimahi.read_by(
        options, OPPORTUNITY_BYTES, file, name
    ),
    keeps=mahimahi.FORMAT.keeps,
    takes=mahimahi.FORMAT.takes,
)
