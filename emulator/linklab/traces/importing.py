"""Turns what others recorded into a trace of linklab's own, and tells what it is like.

Files are read once and as a stream. The destination appears when it is whole, or not at all.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from io import BufferedReader, FileIO
from pathlib import Path
from typing import BinaryIO, Final

import linklab
from linklab.core import whole_file
from linklab.core.limits import MAX_RTT_S
from linklab.traces import cellreplay, iperf3, mahimahi, plain, ucc
from linklab.traces.detection import FORMATS, HEAD_BYTES, format_of
from linklab.traces.merging import with_rtts, with_uplink
from linklab.traces.statistics import Counting, Statistics
from linklab.traces.trace import OPTIONAL, Recording, Sample, TraceError

BINNED: Final = ("mahimahi", "cellreplay")
"""Formats of opportunities, which are counted in bins."""

UPLINK_APART: Final = (*BINNED, "iperf3")
"""Formats whose uplink may be a file of its own."""

KEPT: Final = {
    "csv": frozenset(OPTIONAL),
    "mahimahi": frozenset({"up", "rtt"}),
    "cellreplay": frozenset({"up", "rtt"}),
    "ucc": frozenset({"up", "rtt"}),
    "iperf3": frozenset({"up"}),
}
"""What is kept of each format unless said otherwise. RTT and loss that iperf3 measured hold the
queue that its own load made, and the lab makes that queue again."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a file is read.

    `format` is one of `FORMATS`, None to tell it from the file. `uplink` is the recording of the
    uplink where that is a file of its own (`UPLINK_APART`), `light` CellReplay's light trace for
    the RTT. `bin_s` (0.001 to 3600 s, whole ms) and `opportunity_bytes` (1 to 65535) are for
    `BINNED` formats. `device` says which end of iperf3 the phone was, "client" or "server".
    `keep` names what of up, rtt and loss is kept, None for `KEPT`. `licence` is that of the
    source.
    """

    format: str | None = None
    uplink: Path | None = None
    light: Path | None = None
    bin_s: float | None = None
    opportunity_bytes: int | None = None
    device: str | None = None
    keep: Collection[str] | None = None
    licence: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What an import wrote, and what should be known about it."""

    source: str
    destination: str
    format: str
    samples: int
    columns: tuple[str, ...]
    down: Statistics
    up: Statistics | None
    notes: tuple[str, ...]


def import_file(
    source: Path, destination: Path, options: Options | None = None, *, overwrite: bool = False
) -> Report:
    """Reads the trace in `source` and writes it to `destination` as linklab's CSV.

    Raises TraceError, and leaves nothing behind then.
    """
    with ExitStack() as open_files:
        opened = _Opened(source, options or Options(), open_files)
        counting = _Counting()
        _write(
            destination,
            counting.through(opened.samples),
            opened.columns,
            opened.comments,
            overwrite,
        )
        return Report(
            source=str(source),
            destination=str(destination),
            format=opened.format,
            samples=counting.samples,
            columns=tuple(key for key in OPTIONAL if key in opened.columns),
            down=counting.down.result(),
            up=counting.up.result() if counting.has_up else None,
            notes=tuple(opened.notes),
        )


def samples(source: Path, options: Options | None = None) -> Iterator[Sample]:
    """The samples of a file in any format, as a stream. Raises TraceError."""
    with ExitStack() as open_files:
        yield from _Opened(source, options or Options(), open_files).samples


class _Opened:
    """A source with everything that belongs to it, ready to be read once."""

    def __init__(self, source: Path, options: Options, open_files: ExitStack) -> None:
        file = _open(source, open_files)
        self.format = options.format or format_of(file.peek(HEAD_BYTES), str(source))
        _check(options, self.format, str(source))
        self._options = options
        recording = self._read(file, str(source))
        self.samples = recording.samples
        self.notes = recording.notes
        columns = set(recording.columns)
        if (uplink := options.uplink) is not None:
            columns.add("up")
            self.samples = with_uplink(self.samples, lambda: self._uplink(uplink))
        if (light := options.light) is not None:
            columns.add("rtt")
            self.samples = with_rtts(self.samples, lambda: self._rtts(light))
        keep = KEPT[self.format] if options.keep is None else frozenset(options.keep)
        self.columns = frozenset(columns & keep)
        if dropped := sorted(columns - keep):
            self.samples = _without(self.samples, dropped)
            self.notes.append(f"left out, as not named to be kept: {', '.join(dropped)}")
        if "rtt" in self.columns:
            self.samples = _with_rtts_in_limits(self.samples, str(source))
        self.comments = self._comments(source, recording.comments)

    def _read(self, file: BinaryIO, name: str, *, only_up: bool = False) -> Recording:
        options = self._options
        if self.format == "csv":
            return plain.read(file, name)
        if self.format == "ucc":
            return ucc.read(file, name)
        if self.format == "iperf3":
            return iperf3.read(file, name, options.device or "client", only_up=only_up)
        default = cellreplay if self.format == "cellreplay" else mahimahi
        return mahimahi.read(
            file,
            name,
            bin_ms=mahimahi.BIN_MS if options.bin_s is None else round(options.bin_s * 1000),
            opportunity_bytes=options.opportunity_bytes or default.OPPORTUNITY_BYTES,
        )

    def _uplink(self, path: Path) -> Iterator[tuple[int, int]]:
        with ExitStack() as open_files:
            recording = self._read(_open(path, open_files), str(path), only_up=True)
            self.notes.extend(note for note in recording.notes if note not in self.notes)
            for sample in recording.samples:
                yield sample.length_ns, sample.down_bps if sample.up_bps is None else sample.up_bps

    def _rtts(self, path: Path) -> Iterator[tuple[int, float]]:
        with ExitStack() as open_files:
            file = _open(path, open_files)
            yield from cellreplay.read_light(file, str(path), self.notes)

    def _comments(self, source: Path, said: list[str]) -> list[str]:
        options = self._options
        of = [f"{self.format} {source.name}"]
        if options.uplink is not None:
            of.append(f"uplink {options.uplink.name}")
        if options.light is not None:
            of.append(f"RTT {options.light.name}")
        licence = [f"licence: {options.licence or 'that of the source'}"]
        if not options.licence and any(line.startswith("licence:") for line in said):
            licence = []
        return [
            *licence,
            *said,
            f"imported from: {', '.join(of)}, by linklab {linklab.__version__}",
        ]


def _check(options: Options, format: str, name: str) -> None:
    """Refuses options that do not exist or do not fit the format."""

    def refuse(what: str, allowed: str) -> None:
        raise TraceError(f"{name}: {what}; allowed: {allowed}")

    if format not in FORMATS:
        refuse(f"the format {format!r} is unknown", ", ".join(FORMATS))
    if options.uplink is not None and format not in UPLINK_APART:
        refuse(f"{format} has both directions in one file", f"uplink of {', '.join(UPLINK_APART)}")
    if options.light is not None and format not in BINNED:
        refuse(f"a light trace does not go with {format}", f"with {' or '.join(BINNED)}")
    if format not in BINNED:
        for what, value in (("bins", options.bin_s), ("opportunities", options.opportunity_bytes)):
            if value is not None:
                refuse(f"{format} has no {what}", f"with {' or '.join(BINNED)}")
    if options.bin_s is not None:
        bin_ms = options.bin_s * 1000
        if not (1 <= bin_ms <= 3_600_000 and abs(bin_ms - round(bin_ms)) < 1e-6):
            refuse(f"bins of {options.bin_s} s", "whole milliseconds, 1 ms to 3600 s")
    if options.opportunity_bytes is not None and not 1 <= options.opportunity_bytes <= 65535:
        refuse(f"opportunities of {options.opportunity_bytes} bytes", "1 to 65535 bytes")
    if options.device is not None and format != "iperf3":
        refuse(f"{format} has no ends", "a device with iperf3")
    if options.device not in (None, *iperf3.ENDS):
        refuse(f"the device {options.device!r} is unknown", ", ".join(iperf3.ENDS))
    if options.keep is not None:
        for key in options.keep:
            if key not in OPTIONAL:
                refuse(f"{key!r} is nothing to keep", ", ".join(OPTIONAL))


def _open(path: Path, open_files: ExitStack) -> BufferedReader:
    try:
        return open_files.enter_context(BufferedReader(FileIO(path), HEAD_BYTES))
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error


def _without(samples: Iterator[Sample], dropped: Collection[str]) -> Iterator[Sample]:
    fields = {"up": "up_bps", "rtt": "rtt_s", "loss": "loss_ratio"}
    changes = {fields[key]: None for key in dropped}
    for sample in samples:
        yield replace(sample, **changes)  # type: ignore[arg-type]


def _with_rtts_in_limits(samples: Iterator[Sample], name: str) -> Iterator[Sample]:
    """Raises TraceError for an RTT that no trace may have; iperf3 may have measured one."""
    for sample in samples:
        if sample.rtt_s is not None and sample.rtt_s > MAX_RTT_S:
            raise TraceError(
                f"{name}: an RTT of {sample.rtt_s:.4g} s; allowed: up to {MAX_RTT_S:g} s, or rtt "
                "left out of what is kept"
            )
        yield sample


class _Counting:
    """Counts what passes through."""

    def __init__(self) -> None:
        self.samples = 0
        self.down = Counting()
        self.up = Counting()
        self.has_up = False

    def through(self, samples: Iterator[Sample]) -> Iterator[Sample]:
        for sample in samples:
            self.samples += 1
            self.down.add(sample.length_ns, sample.down_bps)
            if sample.up_bps is not None:
                self.has_up = True
                self.up.add(sample.length_ns, sample.up_bps)
            yield sample


def _write(
    destination: Path,
    samples: Iterator[Sample],
    columns: Collection[str],
    comments: list[str],
    overwrite: bool,
) -> None:
    """Writes beside the destination and puts it there when whole."""
    if destination.is_dir():
        raise TraceError(f"{destination}: is a directory; allowed: the name of a file")
    if destination.exists() and not overwrite:
        raise TraceError(f"{destination}: exists; allowed: another name, or overwriting it")
    try:
        with whole_file.replacing(destination) as file:
            text = io.TextIOWrapper(file, "utf-8", errors="backslashreplace", newline="\n")
            plain.write(text, samples, columns, comments)
            text.detach()
    except OSError as error:
        raise TraceError(f"{destination}: cannot be written: {error.strerror}") from error
