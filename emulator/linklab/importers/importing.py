"""Converts recorded traces into linklab's format, and reports their statistics.

Files are read once, as a stream. The destination appears only when it is complete.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import linklab
from linklab.core import whole_file
from linklab.core.limits import MAX_RTT_S
from linklab.importers.format import Format, Options
from linklab.importers.merging import binned, with_uplink
from linklab.importers.opening import HEAD_BYTES, opened
from linklab.importers.registry import FORMATS, format_of, that_take
from linklab.traces import plain
from linklab.traces.statistics import Counting, DelayCounting, Delays, Statistics
from linklab.traces.trace import (
    NS_PER_S,
    OPTIONAL,
    TraceError,
    TraceSample,
    limited,
)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import: what was written, statistics and notes."""

    source: str
    destination: str
    format: str
    samples: int
    columns: tuple[str, ...]
    down: Statistics | None
    up: Statistics | None
    delays: Delays | None
    notes: tuple[str, ...]


def import_file(
    source: Path, destination: Path, options: Options | None = None, *, overwrite: bool = False
) -> ImportReport:
    """Reads the trace in `source` and writes it to `destination` as linklab's CSV.

    Raises TraceError; then no file is left.
    """
    with ExitStack() as open_files:
        one = _Opened(source, options or Options(), open_files)
        counting = _Counting()
        _write(
            destination,
            counting.through(one.samples),
            one.columns,
            one.comments,
            overwrite,
            has_rates=one.has_rates,
        )
        return ImportReport(
            source=str(source),
            destination=str(destination),
            format=one.format.name,
            samples=counting.samples,
            columns=tuple(key for key in OPTIONAL if key in one.columns),
            down=counting.down.result() if counting.has_down else None,
            up=counting.up.result() if counting.has_up else None,
            delays=counting.delays.result(),
            notes=tuple(one.notes),
        )


class _Opened:
    """A source with its uplink's file, opened to be read once."""

    def __init__(self, source: Path, options: Options, open_files: ExitStack) -> None:
        file = opened(source, open_files)
        self.format = (
            format_of(file.peek(HEAD_BYTES), str(source))
            if options.format is None
            else FORMATS[options.format]
        )
        _check(options, self.format, str(source))
        self._options = options
        recording = self.format.read(file, str(source), options, False)
        self.samples = recording.samples
        self.notes = recording.notes
        self.has_rates = recording.has_rates
        columns = set(recording.columns)
        if (uplink := options.uplink) is not None:
            columns.add("up")
            self.samples = with_uplink(self.samples, lambda: self._uplink(uplink))
        keep = self.format.keeps if options.keep is None else frozenset(options.keep)
        self.columns = frozenset(columns & keep)
        if dropped := sorted(columns - keep):
            self.samples = _without(self.samples, dropped)
            self.notes.append(f"left out, as not named to be kept: {', '.join(dropped)}")
        if "rtt" in self.columns:
            self.samples = _with_rtts_in_limits(self.samples, str(source))
        if options.bin_s is not None and "bin_s" not in self.format.takes:
            recording.comments.append(f"means over {options.bin_s:g} s")
            self.samples = binned(self.samples, round(options.bin_s * NS_PER_S))
        self.samples = limited(self.samples, str(source))
        self.comments = self._comments(source, recording.comments)

    def _uplink(self, path: Path) -> Iterator[tuple[int, int]]:
        with ExitStack() as open_files:
            file = opened(path, open_files)
            recording = self.format.read(file, str(path), self._options, True)
            self.notes.extend(note for note in recording.notes if note not in self.notes)
            for sample in recording.samples:
                rate_bps = sample.down_bps if sample.up_bps is None else sample.up_bps
                if rate_bps is None:
                    _refuse(str(path), "has no rates", "a recording of the uplink's rate")
                yield sample.length_ns, rate_bps

    def _comments(self, source: Path, said: list[str]) -> list[str]:
        options = self._options
        of = [f"{self.format.name} {source.name}"]
        if options.uplink is not None:
            of.append(f"uplink {options.uplink.name}")
        licence = [f"licence: {options.licence or 'that of the source'}"]
        if not options.licence and any(line.startswith("licence:") for line in said):
            licence = []
        return [
            *licence,
            *said,
            f"imported from: {', '.join(of)}, by linklab {linklab.__version__}",
        ]


def _check(options: Options, format: Format, name: str) -> None:
    """Raises TraceError for unknown options, and for options that the format does not take."""
    for option, what, allowed in (
        ("uplink", f"{format.name} has both directions in one file", "uplink of {list}"),
        ("opportunity_bytes", f"{format.name} has no opportunities", "with {either}"),
        ("every_s", f"{format.name} has times", "seconds between probes with {either}"),
        ("only", f"{format.name} has one recording in a file", "choosing with {either}"),
        ("device", f"{format.name} has no ends", "a device with {either}"),
    ):
        if getattr(options, option) is not None and option not in format.takes:
            takers = that_take(option)
            words = {"list": ", ".join(takers), "either": " or ".join(takers)}
            _refuse(name, what, allowed.format_map(words))
    if options.bin_s is not None:
        bin_ms = options.bin_s * 1000
        if not (1 <= bin_ms <= 3_600_000 and abs(bin_ms - round(bin_ms)) < 1e-6):
            _refuse(name, f"bins of {options.bin_s} s", "whole milliseconds, 1 ms to 3600 s")
    if options.every_s is not None and not 0.001 <= options.every_s <= 3600:
        _refuse(name, f"probes every {options.every_s} s", "0.001 to 3600 s")
    if options.opportunity_bytes is not None and not 1 <= options.opportunity_bytes <= 65535:
        _refuse(name, f"opportunities of {options.opportunity_bytes} bytes", "1 to 65535 bytes")
    if options.keep is not None:
        for key in options.keep:
            if key not in OPTIONAL:
                _refuse(name, f"{key!r} is nothing to keep", ", ".join(OPTIONAL))


def _refuse(name: str, what: str, allowed: str) -> NoReturn:
    raise TraceError(f"{name}: {what}; allowed: {allowed}")


def _without(samples: Iterator[TraceSample], dropped: Collection[str]) -> Iterator[TraceSample]:
    fields = {"up": "up_bps", "rtt": "rtt_s", "loss": "loss_ratio"}
    changes = {fields[key]: None for key in dropped}
    for sample in samples:
        yield replace(sample, **changes)  # type: ignore[arg-type]


def _with_rtts_in_limits(samples: Iterator[TraceSample], name: str) -> Iterator[TraceSample]:
    """Raises TraceError for an RTT beyond the limits, which iperf3 may have measured."""
    for sample in samples:
        if sample.rtt_s is not None and sample.rtt_s > MAX_RTT_S:
            raise TraceError(
                f"{name}: an RTT of {sample.rtt_s:.4g} s; allowed: up to {MAX_RTT_S:g} s, or rtt "
                "left out of what is kept"
            )
        yield sample


class _Counting:
    def __init__(self) -> None:
        self.samples = 0
        self.down = Counting()
        self.up = Counting()
        self.delays = DelayCounting()
        self.has_down = self.has_up = False

    def through(self, samples: Iterator[TraceSample]) -> Iterator[TraceSample]:
        for sample in samples:
            self.samples += 1
            self.delays.add(sample)
            if sample.down_bps is not None:
                self.has_down = True
                self.down.add(sample.length_ns, sample.down_bps)
            if sample.up_bps is not None:
                self.has_up = True
                self.up.add(sample.length_ns, sample.up_bps)
            yield sample


def _write(
    destination: Path,
    samples: Iterator[TraceSample],
    columns: Collection[str],
    comments: list[str],
    overwrite: bool,
    *,
    has_rates: bool,
) -> None:
    """Writes a temporary file, which replaces the destination when it is complete."""
    if destination.is_dir():
        raise TraceError(f"{destination}: is a directory; allowed: the name of a file")
    if destination.exists() and not overwrite:
        raise TraceError(f"{destination}: exists; allowed: another name, or overwriting it")
    try:
        with whole_file.replacing(destination) as file:
            text = io.TextIOWrapper(file, "utf-8", errors="backslashreplace", newline="\n")
            plain.write(text, samples, columns, comments, has_rates=has_rates)
            text.detach()
    except OSError as error:
        raise TraceError(f"{destination}: cannot be written: {error.strerror}") from error
