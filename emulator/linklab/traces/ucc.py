"""Reads UCC's 4G and 5G traces, which an Android phone logged once per second.

They are CSV files of G-NetTrack Pro (Raca et al., ACM MMSys 2018 and 2020). The columns are
`Timestamp` as YYYY.MM.DD_HH.MM.SS, `DL_bitrate` and `UL_bitrate` in kbit/s, and in the 5G set
`PINGAVG` in ms. `-` is a missing value.

If a second occurs several times, its last rate counts. A missing rate is that of the second before.
A line that is earlier than a line above is left out. A ping holds until the next one.

The rates are those of the phone's applications. So they show the link's capacity only during a
download. In `State` I the phone was idle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import BinaryIO, Final, NoReturn

from linklab.core.limits import MAX_RATE_BPS, MAX_RTT_S
from linklab.traces.format import Format, Options
from linklab.traces.lines import TRUNCATED, InTime, Lines, quoted
from linklab.traces.trace import MAX_LENGTH_NS, NS_PER_S, TraceError, TraceFile, TraceSample

NEEDED: Final = ("Timestamp", "DL_bitrate", "UL_bitrate")

SILENCE_S: Final = 10
"""A longer time without a line gets a note, because nothing is known about it."""

_TIME = re.compile(r"(\d{4})\.(\d\d)\.(\d\d)_(\d\d)\.(\d\d)\.(\d\d)", re.ASCII)


def read(file: BinaryIO, name: str) -> TraceFile:
    """Reads the trace, one sample per logged second. Raises TraceError."""
    lines = Lines(file, name)
    header = next(lines, None)
    if header is None:
        lines.fail(f"the file is empty; needed: CSV with {', '.join(NEEDED)}")
    names = lines.fields(header)
    for needed in NEEDED:
        if needed not in names:
            lines.fail(f"the column {needed!r} is missing; needed: {', '.join(NEEDED)}")
    columns = {"up", "rtt"} if "PINGAVG" in names else {"up"}
    recording = TraceFile(iter(()), frozenset(columns))
    recording.samples = _samples(lines, names, recording.notes)
    return recording


class _Second:
    """The values of the second that is being read."""

    def __init__(self) -> None:
        self.time: datetime | None = None
        self.down_bps: int | None = None
        self.up_bps: int | None = None
        self.rtt_s: float | None = None

    def sample(self, lines: Lines, seconds: float) -> TraceSample | None:
        """Returns a sample of this length; None as long as no rate is known."""
        if self.down_bps is None:
            return None
        if seconds * NS_PER_S > MAX_LENGTH_NS:
            limit_s = MAX_LENGTH_NS // NS_PER_S
            reason = f"the log was silent for {seconds:.0f} s before; allowed: up to {limit_s} s"
            lines.fail(reason, "Timestamp")
        return TraceSample(round(seconds * NS_PER_S), self.down_bps, self.up_bps, self.rtt_s)


def _samples(lines: Lines, names: list[str], notes: list[str]) -> Iterator[TraceSample]:
    second = _Second()
    in_time = InTime(lines, "Timestamp", notes)
    rows = idle = missing = silences = 0
    longest_s = 0.0
    total_ns = 0
    for line in lines:
        if not line.strip():
            continue
        try:
            time, down, up, values = _row(lines, names, line)
        except TraceError:
            if not lines.is_truncated or second.time is None:
                raise
            notes.append(TRUNCATED)
            break
        is_behind = second.time is not None and time < second.time
        if not in_time.passes(values["Timestamp"], is_behind=is_behind):
            continue
        if second.time is not None and time != second.time:
            passed_s = (time - second.time).total_seconds()
            if passed_s > SILENCE_S:
                silences, longest_s = silences + 1, max(longest_s, passed_s)
            sample = second.sample(lines, passed_s)
            if sample is not None:
                total_ns += sample.length_ns
                _check_length(lines, total_ns)
                yield sample
        second.time = time
        second.down_bps = second.down_bps if down is None else down
        second.up_bps = second.up_bps if up is None else up
        second.rtt_s = _rtt(lines, values, second.rtt_s)
        rows += 1
        idle += values.get("State") == "I"
        missing += down is None
    in_time.end()
    last = second.sample(lines, 1.0)
    if last is None:
        lines.fail("no line has a rate; needed: at least one with a number", "DL_bitrate")
    yield last
    if idle:
        notes.append(f"in {idle} of {rows} lines the phone was idle: the link may carry more")
    if missing:
        notes.append(f"{missing} of {rows} lines have no rate: that of the line before holds")
    if silences:
        notes.append(
            f"{silences} times the log was silent for more than {SILENCE_S} s "
            f"(longest {longest_s:.0f} s): the line before holds"
        )


def _row(
    lines: Lines, names: list[str], line: str
) -> tuple[datetime, int | None, int | None, dict[str, str]]:
    """Returns time, rates and all values of a line."""
    fields = lines.fields(line)
    if len(fields) != len(names):
        lines.fail(f"the line has {len(fields)} fields; allowed: {len(names)} as in line 1")
    values = dict(zip(names, fields, strict=True))
    time = _time(lines, values["Timestamp"])
    return time, _rate(lines, "DL_bitrate", values), _rate(lines, "UL_bitrate", values), values


def _check_length(lines: Lines, total_ns: int) -> None:
    if total_ns > MAX_LENGTH_NS:
        limit_s = MAX_LENGTH_NS // NS_PER_S
        lines.fail(f"the log is too long; allowed: up to {limit_s} s", "Timestamp")


def _time(lines: Lines, text: str) -> datetime:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        _refuse_time(lines, text)
    try:
        return datetime(*(int(part) for part in match.groups()))  # type: ignore[arg-type]
    except ValueError:
        _refuse_time(lines, text)


def _refuse_time(lines: Lines, text: str) -> NoReturn:
    lines.fail(f"{quoted(text)} is no time; allowed: YYYY.MM.DD_HH.MM.SS", "Timestamp")


def _known(
    lines: Lines, column: str, values: dict[str, str], high: int, unit: str
) -> Decimal | None:
    text = values.get(column, "-").strip()
    return None if text in ("-", "") else lines.decimal(column, text, 0, high, unit)


def _rate(lines: Lines, column: str, values: dict[str, str]) -> int | None:
    kbit = _known(lines, column, values, MAX_RATE_BPS // 1000, "kbit/s")
    return None if kbit is None else round(kbit * 1000)


def _rtt(lines: Lines, values: dict[str, str], before_s: float | None) -> float | None:
    ms = _known(lines, "PINGAVG", values, int(MAX_RTT_S * 1000), "ms")
    return before_s if ms is None else float(ms / 1000)


def _begins(line: str, where: str) -> bool:
    return "Timestamp" in line and "DL_bitrate" in line


def _read(file: BinaryIO, name: str, options: Options, only_up: bool) -> TraceFile:
    return read(file, name)


FORMAT: Final = Format(
    name="ucc",
    looks="G-NetTrack's CSV with Timestamp, DL_bitrate, UL_bitrate",
    begins=_begins,
    read=_read,
    keeps=frozenset({"up", "rtt"}),
)
