"""Lists the formats of recorded traces, one line each, and detects a file's format."""

from __future__ import annotations

import codecs
from typing import Final

from linklab.importers import data_sets, iperf3, mahimahi, ping
from linklab.importers.format import Format
from linklab.importers.packet_file import MAGIC
from linklab.traces import plain
from linklab.traces.lines import quoted
from linklab.traces.trace import OPTIONAL, TraceError

OWN: Final = Format(
    name="csv",
    looks="linklab's own: t,down_mbit,up_mbit,rtt_ms,loss",
    begins=lambda line: any(separator in line for separator in ",;\t"),
    read=lambda file, name, options, only_up: plain.read(file, name),
    keeps=frozenset(OPTIONAL),
)

FORMATS: Final[dict[str, Format]] = {
    one.name: one
    for one in (
        OWN,
        mahimahi.FORMAT,
        *data_sets.FORMATS,
        iperf3.FORMAT,
        ping.FORMAT,
    )
}
"""By name, in the order of lists. Detection starts with the last one, because every table looks like
linklab's own CSV."""


def that_take(option: str) -> list[str]:
    """Lists the formats that take an option, which is a field of `Options`."""
    return [one.name for one in FORMATS.values() if option in one.takes]


def format_of(head: bytes, name: str) -> Format:
    """Detects the format of a file that begins with `head`; `name` names it in errors.

    Raises TraceError for an unknown format.
    """
    if not head:
        raise TraceError(f"{name}:1: the file is empty; needed: a trace")
    if head.startswith(MAGIC):
        raise TraceError(
            f"{name}: is a capture, which tells a link's capacity only where it was used up; allowed: "
            "with --scenario FILE.yaml, which finds out where"
        )
    text = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    number, line = next(
        ((at, text) for at, text in lines if text and not text.startswith("#")), (1, "")
    )
    if not line:
        raise TraceError(f"{name}:1: there are only comments; needed: a trace")
    for one in reversed(FORMATS.values()):
        if one.begins(line):
            return one
    known = "; ".join(f"{one.name} ({one.looks})" for one in FORMATS.values())
    raise TraceError(f"{name}:{number}: {quoted(line)} begins no trace; allowed: {known}")
