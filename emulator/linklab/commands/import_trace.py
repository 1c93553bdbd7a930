"""Implements `linklab import`: turns a recorded capacity into a trace, or recorded downloads into a
scenario."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from linklab.commands import import_recordings
from linklab.commands.options import UsageError, add, given
from linklab.core.printable import printable
from linklab.importers.format import ENDS, Options
from linklab.importers.importing import ImportReport, import_file
from linklab.importers.registry import FORMATS
from linklab.traces.statistics import Delays, Statistics
from linklab.traces.trace import OPTIONAL, TraceError

EPILOG = """\
examples:
  linklab import drive.json -o drive.csv     iperf3 -R --json on the phone
  linklab import ATT-LTE-driving.down --uplink ATT-LTE-driving.up -o att.csv
  linklab import B_2018.01.29_13.30.05.csv -o static.csv --keep up
  linklab import ping.log -o delays.csv
  linklab import Lumos5G-v1.0.csv --only run_num=3 -o walk.csv

  linklab import results/1 --scenario drive.yaml   of multilink get --run-dir
  linklab import results/1 results/2 results/3 --scenario drive.yaml
  linklab import wlan0.pcap rmnet0.pcap --scenario drive.yaml

A scenario plays the recorded rates with this on a link:
  trace: {file: ./drive.csv, rate: recorded}
Without `rate: recorded` the link's `down` and `up` are the trace's means."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="the recording; with --scenario, run directories of downloads, or captures of links",
    )
    parser.add_argument(
        "--scenario",
        type=Path,
        metavar="FILE.yaml",
        help="make a scenario of recorded downloads, with its traces beside it",
    )
    add(parser, "--kind")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the trace (default: FILE's name .csv)"
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        metavar="NAME",
        help=f"format of the recording (default: detected): {', '.join(FORMATS)}",
    )
    parser.add_argument("--uplink", type=Path, metavar="FILE", help="the uplink's recording")
    parser.add_argument(
        "--bin", type=float, metavar="S", help="seconds per sample: means of short ones"
    )
    parser.add_argument(
        "--every", type=float, metavar="S", help="seconds between the probes of ping (default 1)"
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="COLUMN=VALUE",
        help="which recording of a file with several; repeat it for more columns",
    )
    parser.add_argument(
        "--opportunity-bytes", type=int, metavar="N", help="bytes of one delivery opportunity"
    )
    parser.add_argument(
        "--device", choices=ENDS, help="which end of iperf3 the phone was (default client)"
    )
    parser.add_argument(
        "--keep", metavar="COLUMNS", help=f"which of {','.join(OPTIONAL)} to keep; '' for none"
    )
    parser.add_argument(
        "--licence", metavar="TEXT", help="the recording's licence, for the trace's header"
    )
    parser.add_argument("--force", action="store_true", help="replace the output if it exists")
    add(parser, "--json")


def run(options: argparse.Namespace) -> int:
    """Imports one recording. Raises UsageError if that is not possible."""
    if options.scenario is not None:
        return import_recordings.run(options, _of_traces(options))
    if len(options.files) > 1 or options.files[0].is_dir():
        raise UsageError(
            f"{options.files[-1]}: several files or a directory make no trace; allowed: one file, or "
            "--scenario FILE.yaml with run directories of downloads"
        )
    if options.kind:
        raise UsageError("--kind: a trace has no kind; allowed: with --scenario")
    try:
        (file,) = options.files
        output = options.output or Path(f"{file.stem}.csv")
        report = import_file(file, output, _options(options), overwrite=options.force)
    except TraceError as error:
        raise UsageError(str(error)) from error
    if options.json:
        print(json.dumps(asdict(report), indent=2, default=str))
    else:
        _show(report)
    return 0


def _of_traces(options: argparse.Namespace) -> list[str]:
    """Lists the given options that only apply to traces."""
    names = (
        *("output", "format", "uplink", "bin", "every", "only", "opportunity_bytes"),
        *("device", "keep", "licence"),
    )
    return given(options, *names)


def _options(options: argparse.Namespace) -> Options:
    return Options(
        format=options.format,
        uplink=options.uplink,
        bin_s=options.bin,
        every_s=options.every,
        only=_chosen(options.only),
        opportunity_bytes=options.opportunity_bytes,
        device=options.device,
        keep=None if options.keep is None else [k for k in options.keep.split(",") if k],
        licence=options.licence or "",
    )


def _chosen(words: list[str] | None) -> dict[str, str] | None:
    """Returns the values by column. Raises UsageError."""
    if words is None:
        return None
    chosen: dict[str, str] = {}
    for word in words:
        column, equals, value = word.partition("=")
        if not (column and equals):
            raise UsageError(f"--only {word}: allowed is COLUMN=VALUE, such as run_num=3")
        if chosen.setdefault(column, value) != value:
            raise UsageError(f"--only {word}: {column} is given twice; allowed: once")
    return chosen


def _show(report: ImportReport) -> None:
    what = f"{report.samples} samples from {report.format} {report.source}"
    print(f"{report.destination}: {what}")
    for direction, statistics in (("down", report.down), ("up", report.up)):
        if statistics is not None:
            _line(direction, statistics)
    if report.delays is not None:
        _delays(report.delays)
    for note in report.notes:
        print(f"note: {printable(note, keep='')}")


def _line(direction: str, one: Statistics) -> None:
    print(
        f"{direction:<5}{one.duration_s:.1f} s, mean {one.mean_bps / 1e6:.2f} Mbit/s, "
        f"CV {_figure(one.cv)}, autocorrelation {_figure(one.autocorrelation_1s)} at 1 s, "
        f"{_figure(one.autocorrelation_10s)} at 10 s"
    )
    print(f"     {one.gaps} gaps over 0.5 s, longest {one.longest_gap_s:.1f} s")


def _delays(one: Delays) -> None:
    parts = [f"{one.duration_s:.1f} s"]
    if one.median_s is not None and one.p95_s is not None:
        parts.append(f"median {one.median_s * 1e3:.1f} ms, 95 % up to {one.p95_s * 1e3:.1f} ms")
    if one.loss_ratio is not None:
        parts.append(f"loss {one.loss_ratio * 100:.3g} %")
    print(f"{'rtt':<5}{', '.join(parts)}")


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
