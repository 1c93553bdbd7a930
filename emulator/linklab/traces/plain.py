"""Reads and writes the file of a trace as a stream: CSV with a header of comments.

    # licence: Apache-2.0
    # source: …
    t,down_mbit,up_mbit,rtt_ms,loss
    0,42.3,9.1,48,0
    0.1,40.9,9.3,51,0
    # end: 0.2 s

`t` is in seconds and ascends. A sample holds until the next one. The last sample holds until the end
that the last line names, else as long as the sample before it. Only differences of `t` count: the
trace begins at the first sample.

Rates count whole frames with the Ethernet header, in Mbit/s. `loss` is a ratio. Any column except
`t` may be absent, and fields of `up_mbit`, `rtt_ms` and `loss` may be empty. Then the link keeps its
own values. A trace of delays has no rates. Lines that begin with # are comments.

`linklab import` also reads what `tables` and `times` allow. It leaves out a truncated last line, and lines
whose `t` is not after a line above, as long as they are few. Traces that a scenario plays have none
of this.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, Final, TextIO

from linklab.core.limits import MAX_RATE_BPS, MAX_RTT_S
from linklab.traces.lines import InTime, Lines, quoted
from linklab.traces.tables import RecordedTable
from linklab.traces.times import MAX_S, TimeColumn
from linklab.traces.trace import (
    MAX_LENGTH_NS,
    MAX_LENGTH_S,
    MIN_SAMPLE_NS,
    TraceError,
    TraceFile,
    TraceSample,
    limited,
)

COLUMNS: Final = {"up": "up_mbit", "rtt": "rtt_ms", "loss": "loss"}
"""The names of the optional columns in the file."""

_VALUES = ("down_mbit", *COLUMNS.values())
_FORM = f"t and one or more of {','.join(_VALUES)}"
_END = re.compile(r"#\s*end:\s*(.*\S)\s*")


def load(path: Path) -> tuple[TraceSample, ...]:
    """Reads all samples of a file. Raises TraceError."""
    try:
        with path.open("rb") as file:
            recording = read(file, str(path))
            samples = tuple(limited(recording.samples, str(path)))
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    if recording.notes:
        raise TraceError(
            f"{path}: {recording.notes[0]}; allowed: what `linklab import` makes of it"
        )
    return samples


def header(path: Path) -> list[str]:
    """Returns the comments at the start of a file. Raises TraceError."""
    try:
        with path.open("rb") as file:
            return read(file, str(path)).comments
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error


def read(file: BinaryIO, name: str) -> TraceFile:
    """Reads a trace from a file; `name` names it in errors. Raises TraceError."""
    table, comments = begin(Lines(file, name))
    at = table.indices(("t",), _VALUES)
    columns = frozenset(key for key, column in COLUMNS.items() if column in at)
    return TraceFile(_samples(table, at), columns, comments, table.notes, "down_mbit" in at)


def begin(lines: Lines) -> tuple[RecordedTable, list[str]]:
    """Reads the comments and the line of names, checks it, and returns both. Raises TraceError."""
    comments: list[str] = []
    for line in lines:
        text = line.strip()
        if text.startswith("#"):
            comments.append(text[1:].strip())
        elif text:
            table = RecordedTable(lines, line, [])
            break
    else:
        lines.fail(f"the file is empty; needed: a line that names the columns, {_FORM}")
    table.names = [name.lower() for name in table.names]
    if not {"t", *_VALUES} & set(table.names):
        text = ",".join(table.names)
        lines.fail(f"{quoted(text)} does not name the columns; allowed: {_FORM}")
    for name in table.names:
        if name not in ("t", *_VALUES):
            lines.fail(f"the column {quoted(name)} is unknown; allowed: {_FORM}")
    if len(table.indices(("t",), _VALUES)) == 1:
        lines.fail(f"no column has values; needed: {_FORM}")
    return table, comments


def _samples(table: RecordedTable, at: dict[str, int]) -> Iterator[TraceSample]:
    lines, times = table.lines, TimeColumn(table, "t")
    in_time = InTime(lines, "t", table.notes)
    first_ns = before_ns = length_ns = 0
    before: TraceSample | None = None
    end_ns: int | None = None

    def convert(fields: list[str]) -> tuple[int, TraceSample]:
        if end_ns is not None:
            lines.fail("a sample comes after the end; allowed: '# end: …' as the last line")
        return times.ns(fields[at["t"]]), _sample(table, at, fields)

    def comment(text: str) -> None:
        nonlocal end_ns
        if end := _END.fullmatch(text):
            end_ns = _end_ns(lines, end[1])

    for t_ns, sample in table.rows(convert, comment):
        is_behind = before is not None and t_ns <= before_ns
        if not in_time.passes(_decimal(t_ns, 9), is_behind=is_behind):
            continue
        if before is None:
            first_ns = t_ns
        else:
            length_ns = _length_ns(lines, "t", before_ns, t_ns, first_ns)
            yield _lasting(before, length_ns)
        before, before_ns = sample, t_ns
    in_time.end()
    if before is None:
        lines.fail("the file has no samples; needed: at least one line below the columns")
    if end_ns is not None:
        length_ns = _length_ns(lines, "end", before_ns, end_ns, first_ns)
    elif not length_ns:
        lines.fail("one sample alone lasts for no time; allowed: two, or a last line '# end: 10 s'")
    yield _lasting(before, length_ns)


def _lasting(sample: TraceSample, length_ns: int) -> TraceSample:
    return TraceSample(length_ns, sample.down_bps, sample.up_bps, sample.rtt_s, sample.loss_ratio)


def _length_ns(lines: Lines, column: str, from_ns: int, to_ns: int, first_ns: int) -> int:
    if to_ns < from_ns + MIN_SAMPLE_NS:
        lines.fail(
            f"{_decimal(to_ns, 9)} s is not after the {_decimal(from_ns, 9)} s before it; "
            f"allowed: at least {_decimal(MIN_SAMPLE_NS, 6)} ms later",
            column,
        )
    if to_ns - first_ns > MAX_LENGTH_NS:
        lines.fail(
            f"{_decimal(to_ns, 9)} s is too long after the first sample; "
            f"allowed: up to {MAX_LENGTH_S} s",
            column,
        )
    return to_ns - from_ns


def _end_ns(lines: Lines, text: str) -> int:
    if not text.endswith("s"):
        lines.fail(f"{quoted(text)} is no time in s; allowed: a time such as '600 s'", "end")
    return _scaled(lines.decimal("end", text[:-1], 0, MAX_S, "s"), 9)


def _sample(table: RecordedTable, at: dict[str, int], fields: list[str]) -> TraceSample:
    """Returns a line's sample, whose length is not known yet."""

    def known(column: str, high: int, unit: str) -> Decimal | None:
        return table.known(column, fields[at[column]], 0, high, unit) if column in at else None

    most_mbit = MAX_RATE_BPS // 10**6
    down = None
    if "down_mbit" in at:
        down = table.decimal("down_mbit", fields[at["down_mbit"]], 0, most_mbit, "Mbit/s")
    up = known("up_mbit", most_mbit, "Mbit/s")
    rtt_ms = known("rtt_ms", int(MAX_RTT_S * 1000), "ms")
    loss = known("loss", 1, "")
    return TraceSample(
        length_ns=0,
        down_bps=None if down is None else _scaled(down, 6),
        up_bps=None if up is None else _scaled(up, 6),
        rtt_s=None if rtt_ms is None else float(rtt_ms / 1000),
        loss_ratio=None if loss is None else float(loss),
    )


def _scaled(value: Decimal, digits: int) -> int:
    return int((value * 10**digits).to_integral_value())


def write(
    file: TextIO,
    samples: Iterable[TraceSample],
    columns: Collection[str],
    comments: Iterable[str],
    *,
    has_rates: bool = True,
) -> None:
    """Writes a trace with the optional `columns`, and the downlink's rates unless it has none.

    It reads back as the same.
    """
    for comment in comments:
        for line in comment.splitlines() or [""]:
            file.write(f"# {line}".rstrip() + "\n")
    names = {"down": "down_mbit", **COLUMNS}
    keys = [key for key in names if key in columns or (key == "down" and has_rates)]
    file.write(",".join(["t", *(names[key] for key in keys)]) + "\n")
    t_ns = 0
    for sample in samples:
        values = {
            "down": "" if sample.down_bps is None else _decimal(sample.down_bps, 6),
            "up": "" if sample.up_bps is None else _decimal(sample.up_bps, 6),
            "rtt": "" if sample.rtt_s is None else _float(sample.rtt_s, 3),
            "loss": "" if sample.loss_ratio is None else _float(sample.loss_ratio, 0),
        }
        file.write(",".join([_decimal(t_ns, 9), *(values[key] for key in keys)]) + "\n")
        t_ns += sample.length_ns
    file.write(f"# end: {_decimal(t_ns, 9)} s\n")


def _decimal(value: int, digits: int) -> str:
    """Writes value / 10^digits without trailing zeros."""
    whole, rest = divmod(value, 10**digits)
    return f"{whole}.{rest:0{digits}}".rstrip("0").rstrip(".")


def _float(value: float, digits: int) -> str:
    """Writes value · 10^digits as the shortest decimal that reads back as the same float."""
    text = format(Decimal(repr(float(value))).scaleb(digits), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
