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

Rates count whole frames with the Ethernet header, in Mbit/s. `loss` is a ratio. `up_mbit`, `rtt_ms`
and `loss` may be absent, as columns or as empty fields; then the link keeps its own values. Lines
that begin with # are comments.

An import leaves out a truncated last line. It also leaves out lines whose `t` is not after a line
above, as long as they are few. Traces that a scenario plays may have neither.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, Final, TextIO

from linklab.core.limits import MAX_RATE_BPS, MAX_RTT_S
from linklab.traces.format import Format, Options
from linklab.traces.lines import TRUNCATED, InTime, Lines, quoted
from linklab.traces.trace import (
    MAX_LENGTH_NS,
    MIN_SAMPLE_NS,
    NS_PER_S,
    OPTIONAL,
    TraceError,
    TraceFile,
    TraceSample,
)

COLUMNS: Final = {"up": "up_mbit", "rtt": "rtt_ms", "loss": "loss"}
"""The names of the optional columns in the file."""

_NEEDED = ("t", "down_mbit")
_ALL = (*_NEEDED, *COLUMNS.values())
_FORM = f"{','.join(_NEEDED)} and, if known, {','.join(COLUMNS.values())}"
_END = re.compile(r"#\s*end:\s*(.*\S)\s*")
_MAX_T_S = 100_000_000_000


def load(path: Path) -> tuple[TraceSample, ...]:
    """Reads all samples of a file. Raises TraceError."""
    try:
        with path.open("rb") as file:
            recording = read(file, str(path))
            samples = tuple(recording.samples)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    if recording.notes:
        raise TraceError(
            f"{path}: {recording.notes[0]}; allowed: what `linklab import` makes of it"
        )
    return samples


def read(file: BinaryIO, name: str) -> TraceFile:
    """Reads a trace from a file; `name` names it in errors. Raises TraceError."""
    lines = Lines(file, name)
    comments: list[str] = []
    names: list[str] = []
    for line in lines:
        text = line.strip()
        if text.startswith("#"):
            comments.append(text[1:].strip())
        elif text:
            names = _names(lines, text)
            break
    if not names:
        lines.fail(f"the file is empty; needed: a line that names the columns, {_FORM}")
    columns = frozenset(key for key, column in COLUMNS.items() if column in names)
    recording = TraceFile(iter(()), columns, comments)
    recording.samples = _samples(lines, names, recording.notes)
    return recording


def _names(lines: Lines, text: str) -> list[str]:
    if ";" in text and "," not in text:
        lines.fail(f"fields are apart by ';'; allowed: ',' between them, '.' in numbers: {_FORM}")
    names = [name.strip().lower() for name in _fields(lines, text)]
    if not any(name in _ALL for name in names):
        lines.fail(f"{quoted(text)} does not name the columns; allowed: {_FORM}")
    for index, name in enumerate(names):
        if name not in _ALL:
            lines.fail(f"the column {quoted(name)} is unknown; allowed: {_FORM}")
        if name in names[:index]:
            lines.fail(f"the column {name!r} is named twice; allowed: {_FORM}")
    for name in _NEEDED:
        if name not in names:
            lines.fail(f"the column {name!r} is missing; allowed: {_FORM}")
    return names


def _fields(lines: Lines, text: str) -> list[str]:
    return lines.fields(text) if '"' in text else text.split(",")


def _samples(lines: Lines, names: list[str], notes: list[str]) -> Iterator[TraceSample]:
    in_time = InTime(lines, "t", notes)
    first_ns = before_ns = length_ns = 0
    before: TraceSample | None = None
    end_ns: int | None = None
    for line in lines:
        text = line.strip()
        try:
            if text.startswith("#"):
                if end := _END.fullmatch(text):
                    end_ns = _end_ns(lines, end[1])
                continue
            if not text:
                continue
            if end_ns is not None:
                lines.fail("a sample comes after the end; allowed: '# end: …' as the last line")
            t_ns, sample = _sample(lines, names, text)
        except TraceError:
            if not lines.is_truncated or before is None or end_ns is not None:
                raise
            notes.append(TRUNCATED)
            break
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
            f"allowed: up to {MAX_LENGTH_NS // NS_PER_S} s",
            column,
        )
    return to_ns - from_ns


def _end_ns(lines: Lines, text: str) -> int:
    if not text.endswith("s"):
        lines.fail(f"{quoted(text)} is no time in s; allowed: a time such as '600 s'", "end")
    return _scaled(lines.decimal("end", text[:-1], 0, _MAX_T_S, "s"), 9)


def _sample(lines: Lines, names: list[str], text: str) -> tuple[int, TraceSample]:
    """Returns a line's time, and its sample, whose length is not known yet."""
    fields = _fields(lines, text)
    if len(fields) != len(names):
        lines.fail(
            f"the line has {len(fields)} field{'' if len(fields) == 1 else 's'}; "
            f"allowed: {len(names)}, {','.join(names)}"
        )
    values = dict(zip(names, fields, strict=True))
    known = [column for column in names if values[column] and not values[column].isspace()]
    t_ns = _scaled(lines.decimal("t", values["t"], 0, _MAX_T_S, "s"), 9)
    return t_ns, TraceSample(
        length_ns=0,
        down_bps=_rate(lines, "down_mbit", values),
        up_bps=_rate(lines, "up_mbit", values) if "up_mbit" in known else None,
        rtt_s=(
            float(lines.decimal("rtt_ms", values["rtt_ms"], 0, int(MAX_RTT_S * 1000), "ms") / 1000)
            if "rtt_ms" in known
            else None
        ),
        loss_ratio=(
            float(lines.decimal("loss", values["loss"], 0, 1, "")) if "loss" in known else None
        ),
    )


def _rate(lines: Lines, column: str, values: dict[str, str]) -> int:
    value = lines.decimal(column, values[column], 0, MAX_RATE_BPS // 10**6, "Mbit/s")
    return _scaled(value, 6)


def _scaled(value: Decimal, digits: int) -> int:
    return int((value * 10**digits).to_integral_value())


def write(
    file: TextIO, samples: Iterable[TraceSample], columns: Collection[str], comments: Iterable[str]
) -> None:
    """Writes a trace with the optional `columns`. It reads back as the same."""
    for comment in comments:
        for line in comment.splitlines() or [""]:
            file.write(f"# {line}".rstrip() + "\n")
    keys = [key for key in COLUMNS if key in columns]
    file.write(",".join([*_NEEDED, *(COLUMNS[key] for key in keys)]) + "\n")
    t_ns = 0
    for sample in samples:
        optional = {
            "up": "" if sample.up_bps is None else _decimal(sample.up_bps, 6),
            "rtt": "" if sample.rtt_s is None else _float(sample.rtt_s, 3),
            "loss": "" if sample.loss_ratio is None else _float(sample.loss_ratio, 0),
        }
        fields = [_decimal(t_ns, 9), _decimal(sample.down_bps, 6), *(optional[key] for key in keys)]
        file.write(",".join(fields) + "\n")
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


def _begins(line: str, where: str) -> bool:
    return "," in line or ";" in line


def _read(file: BinaryIO, name: str, options: Options, only_up: bool) -> TraceFile:
    return read(file, name)


FORMAT: Final = Format(
    name="csv",
    looks="linklab's own: t,down_mbit,up_mbit,rtt_ms,loss",
    begins=_begins,
    read=_read,
    keeps=frozenset(OPTIONAL),
)
