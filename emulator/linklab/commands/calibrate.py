"""Implements `linklab calibrate energy`: fits an energy model to measured rows."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from linklab.commands.options import UsageError, add
from linklab.core import extras, units, whole_file
from linklab.display import printing
from linklab.energy import library
from linklab.energy.calibration import (
    CalibrationError,
    Fit,
    MeasuredEnergy,
    fit,
    parse,
    rounded,
    usual_terms,
)
from linklab.energy.model import TABLE, EnergyModel, to_yaml
from linklab.schema import document

EPILOG = """\
A row of the CSV file is a download that a power meter measured. Columns:
  row                     a name
  download_s, energy_j    needed: duration and energy
  tail_j                  energy of the radios after the download
  wifi_s, lte_s           seconds the link was active, first to last byte
  wifi_mbit, lte_mbit     megabits received, on the wire
  wifi_up_mbit, …         megabits sent
`linklab energy RUN --json` prints the links' values of a run.

Terms: base, shared, both, and wifi.active, .down, .up, .tail, the same of lte.
By default those that the rows determine. The idle power, base, stays as in
the starting model.

examples:
  linklab calibrate energy mine.csv -o my-phone.yaml --device "My phone"
  linklab calibrate energy mine.csv --model galaxy-s7 --terms both,lte.active"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("energy",), help="what to fit")
    parser.add_argument("rows", type=Path, metavar="ROWS.csv", help="the measurements")
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="the starting model, for terms that are not fitted (default: 0 mW)",
    )
    parser.add_argument("--terms", metavar="NAMES", help="comma-separated: the terms to fit")
    parser.add_argument("--device", metavar="WORDS", help="name of the measured device")
    parser.add_argument("-o", dest="out", type=Path, metavar="FILE", help="write the model there")
    add(parser, "--json")


def run(options: argparse.Namespace) -> int:
    """Prints the fit, and writes the model if asked to. Returns 0."""
    extras.require("report", "linklab calibrate")
    shown = str(options.rows)
    start = library.get(options.model) if options.model else _nothing()
    try:
        rows = parse(document.read(options.rows, shown), shown)
        terms = _terms(options, rows, start)
        found = fit(rows, start, terms)
    except CalibrationError as error:
        raise UsageError(str(error)) from None
    model = _named(found, options, len(rows))
    if options.out is not None:
        text = to_yaml(model)
        # The file's name may not be allowed as a model's name.
        library.parse(text, str(options.out))
        whole_file.write(options.out, text)
    if options.json:
        print(json.dumps(_to_json(found, model), indent=2))
    else:
        _show(found, model, printing.console())
        if options.out is not None:
            print(f"written: {options.out}")
    return 0


def _nothing() -> EnergyModel:
    return EnergyModel(name="measured", device="a device", source="measured", links={})


def _terms(
    options: argparse.Namespace, rows: list[MeasuredEnergy], start: EnergyModel
) -> tuple[str, ...]:
    if options.terms:
        return tuple(term.strip() for term in options.terms.split(","))
    tails = tuple(
        f"{kind}.tail"
        for kind, link in start.links.items()
        if link.tail and any(row.tail_j is not None and kind in row.links for row in rows)
    )
    return (*usual_terms(rows), *tails)


def _named(found: Fit, options: argparse.Namespace, count: int) -> EnergyModel:
    model = rounded(found.model)
    source = (
        f"fit to {options.rows.name}, {count} rows: rms {units.percent(found.rms, '.1')}, "
        f"leave-one-out {units.percent(found.left_out_rms, '.1')}"
    )
    return replace(
        model,
        name=options.out.stem if options.out else model.name,
        device=options.device or model.device,
        source=source,
    )


def _show(found: Fit, model: EnergyModel, console: Console) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("row")
    for header in ("measured\nJ", "model\nJ", "error\n%", "left out\n%"):
        table.add_column(header, justify="right")
    for one in found.residuals:
        table.add_row(
            one.label,
            f"{one.measured_j:.2f}",
            f"{one.energy_j:.2f}",
            f"{one.error * 100:+.1f}",
            f"{one.left_out_error * 100:+.1f}",
        )
    console.print(table)
    print(
        f"\nrms {units.percent(found.rms, '.1')}, leave-one-out "
        f"{units.percent(found.left_out_rms, '.1')}, "
        f"{len(found.residuals)} rows; fitted: {', '.join(found.fitted)}\n"
    )
    print(to_yaml(model), end="")


def _to_json(found: Fit, model: EnergyModel) -> dict[str, object]:
    return {
        "model": TABLE.write(model),
        "fitted": list(found.fitted),
        "rms": found.rms,
        "left_out_rms": found.left_out_rms,
        "rows": [
            {**asdict(one), "error": one.error, "left_out_error": one.left_out_error}
            for one in found.residuals
        ],
    }
