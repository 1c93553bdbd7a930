"""Makes consecutive samples of the lines of a measurement, each with its time. Pure.

A line holds until the next one. If several lines have the same time, the last one counts. A line that
is earlier than a line above is left out, as long as such lines are few. A missing rate is that of the
line before, and a round-trip time holds until the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from linklab.traces.lines import InTime
from linklab.traces.tables import RecordedTable
from linklab.traces.trace import MAX_LENGTH_NS, MAX_LENGTH_S, MIN_SAMPLE_NS, NS_PER_S, TraceSample

_USUAL_NS: Final = NS_PER_S
"""Length of an interval that has no end and no next one."""

_SILENCE_NS: Final = 10 * NS_PER_S
"""Nothing is known about a longer time without a line, and a note says so."""


@dataclass(frozen=True, slots=True)
class MeasuredLine:
    """What a line says.

    Attributes:
        text: the time as written, for errors.
        end_ns: the end of the interval; None if the line does not tell.
    """

    text: str
    t_ns: int
    end_ns: int | None = None
    down_bps: int | None = None
    up_bps: int | None = None
    rtt_s: float | None = None
    loss_ratio: float | None = None


class IntervalSamples:
    """One pass over the intervals. The table's notes get what was assumed.

    `time` and `rate` name the columns with the time and the downlink's rate; `rate` is None if there is
    none. With `leaves_silence_out` a long time without a line is left out of the trace; else the line
    before holds.
    """

    def __init__(
        self, table: RecordedTable, time: str, rate: str | None, *, leaves_silence_out: bool
    ) -> None:
        self._lines = table.lines
        self._notes = table.notes
        self._time, self._rate = time, rate
        self._leaves_silence_out = leaves_silence_out
        self._rows = self._missing = self._repeated = self._silences = 0
        self._longest_ns = self._total_ns = 0

    def of(self, intervals: Iterable[MeasuredLine]) -> Iterator[TraceSample]:
        """Yields the samples. Raises TraceError."""
        in_time = InTime(self._lines, self._time, self._notes)
        current: MeasuredLine | None = None
        for one in intervals:
            is_behind = current is not None and one.t_ns < current.t_ns
            if not in_time.passes(one.text, is_behind=is_behind):
                continue
            self._rows += 1
            self._missing += one.down_bps is None
            if current is not None:
                passed_ns = one.t_ns - current.t_ns
                one = _filled(one, current, same_time=not passed_ns)
                self._repeated += not passed_ns
                if passed_ns and self._is_known(current):
                    yield self._sample(current, passed_ns)
            current = one
        in_time.end()
        if current is None or not self._is_known(current):
            what = "rate" if self._rate else "value"
            self._lines.fail(
                f"no line has a {what}; needed: at least one with a number",
                self._rate or "",
            )
        yield self._sample(current, None)
        self._tell()

    def _is_known(self, one: MeasuredLine) -> bool:
        """Tells whether a sample can be made. A delay may be unknown: then all packets were lost."""
        return one.down_bps is not None or self._rate is None

    def _sample(self, one: MeasuredLine, passed_ns: int | None) -> TraceSample:
        own_ns = _USUAL_NS if one.end_ns is None else one.end_ns - one.t_ns
        length_ns = own_ns if passed_ns is None else passed_ns
        if passed_ns is not None and one.end_ns is not None and 2 * passed_ns < own_ns:
            self._lines.fail(
                "begins long before the line above ends; allowed: one measurement after the other",
                self._time,
            )
        if passed_ns is not None and passed_ns > max(_SILENCE_NS, 2 * own_ns):
            self._silences += 1
            self._longest_ns = max(self._longest_ns, passed_ns)
            if self._leaves_silence_out:
                length_ns = own_ns
        self._check(length_ns)
        return TraceSample(length_ns, one.down_bps, one.up_bps, one.rtt_s, one.loss_ratio)

    def _check(self, length_ns: int) -> None:
        column = self._time
        if length_ns > MAX_LENGTH_NS:
            self._lines.fail(
                f"the log was silent for {length_ns / NS_PER_S:.0f} s before; allowed: up to "
                f"{MAX_LENGTH_S} s",
                column,
            )
        if length_ns < MIN_SAMPLE_NS:
            self._lines.fail(
                f"an interval of {length_ns / 1e6:g} ms; allowed: at least 1 ms", column
            )
        self._total_ns += length_ns
        if self._total_ns > MAX_LENGTH_NS:
            self._lines.fail(f"the log is too long; allowed: up to {MAX_LENGTH_S} s", column)

    def _tell(self) -> None:
        if self._missing and self._rate:
            self._notes.append(
                f"{self._missing} of {self._rows} lines have no rate: that of the line before holds"
            )
        if self._repeated:
            self._notes.append(
                f"{self._repeated} of {self._rows} lines have the time of the line above: the last "
                "one of a time counts"
            )
        if self._silences:
            does = "this time is left out" if self._leaves_silence_out else "the line before holds"
            self._notes.append(
                f"{self._silences} times the log was silent for more than 10 s "
                f"(longest {self._longest_ns / NS_PER_S:.0f} s): {does}"
            )


def _filled(one: MeasuredLine, before: MeasuredLine, *, same_time: bool) -> MeasuredLine:
    """Returns the interval with what it does not tell taken from the one before."""
    return replace(
        one,
        down_bps=before.down_bps if one.down_bps is None else one.down_bps,
        up_bps=before.up_bps if one.up_bps is None else one.up_bps,
        rtt_s=before.rtt_s if one.rtt_s is None else one.rtt_s,
        loss_ratio=before.loss_ratio if same_time and one.loss_ratio is None else one.loss_ratio,
    )
