"""Implements `linklab energy`: computes runs' energy, and lists energy models."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from linklab.commands.options import UsageError, add
from linklab.core import extras, statistics
from linklab.core.error_report import report_error
from linklab.core.extras import MissingExtra
from linklab.core.link_kinds import LTE, WIFI, link_title
from linklab.display import printing
from linklab.energy import calibration, information_base, library
from linklab.energy.account import EnergyFigures
from linklab.energy.information_base import Thresholds
from linklab.energy.model import TABLE, EnergyModel, to_yaml
from linklab.runs import directory_energy
from linklab.runs.run_figures import FigureError
from linklab.schema import document

EPILOG = """\
examples:
  linklab energy                                list the models
  linklab energy runs/hs-s7-alg3-seed1          joules of a run
  linklab energy on-a-phone --energy-model galaxy-s7   of one on hardware
  linklab energy --energy-model galaxy-s3 --eib        eMPTCP's table"""

_EIB_MBPS = (0.5, 1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""The first four rates are those of eMPTCP table 2."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="a run directory")
    add(parser, "--energy-model", more="instead of the runs' own; without runs: show it")
    parser.add_argument(
        "--eib",
        action="store_true",
        help="print which links cost least per byte at which rates (eMPTCP's Energy Information "
        "Base)",
    )
    parser.add_argument(
        "--power", action="store_true", help="print power over time as CSV, with --json in the JSON"
    )
    add(parser, "--json")


def run(options: argparse.Namespace) -> int:
    """Prints the energy of runs, a model, its thresholds, or all models. Returns 1 if a run has no
    energy."""
    if options.power and not options.runs:
        raise UsageError("--power is of runs: give some")
    model = None if options.energy_model is None else library.get(options.energy_model)
    if options.eib:
        if model is None or options.runs:
            raise UsageError("--eib is of a model: give --energy-model, and no runs")
        _thresholds(model, as_json=options.json)
        return 0
    if options.runs:
        return _runs(options, model)
    if model is not None:
        print(json.dumps(TABLE.write(model), indent=2) if options.json else to_yaml(model), end="")
        print("\n" if options.json else "", end="")
        return 0
    _models(as_json=options.json)
    return 0


def _models(*, as_json: bool) -> None:
    models = [library.get(name) for name in library.names()]
    if as_json:
        print(json.dumps([TABLE.write(one) for one in models], indent=2))
        return
    table = _table("model", "device", "source")
    for one in models:
        table.add_row(one.name, one.device, one.source)
    printing.console().print(table)
    try:
        extras.require("report", "the error of models out of sample")
    except MissingExtra as error:
        print(f"\n{error}")
        return
    print("\nerror of the energy of downloads that a model was not fitted to, %:")
    errors = _table("model", "of", *("rows", "rms", "from", "to"))
    for found in errors_elsewhere():
        bounds = (f"{value * 100:+.1f}" for value in (min(found.errors), max(found.errors)))
        rms = f"{statistics.rms(found.errors) * 100:.1f}"
        errors.add_row(found.model, found.of, str(len(found.errors)), rms, *bounds)
    printing.console().print(errors)


@dataclass(frozen=True)
class Elsewhere:
    """Holds a model's relative errors `of` downloads that it was not fitted to."""

    model: str
    of: str
    errors: list[float]


def errors_elsewhere() -> Iterator[Elsewhere]:
    """Yields each measured model's errors of scenarios left out of the fit, and of other devices."""
    rows = {
        name: calibration.parse(document.read(file, str(file)), str(file))
        for name in library.measured()
        for file in (library.rows_of(name),)
    }
    for name, own in rows.items():
        model = library.get(name)
        if len({row.label.split()[0] for row in own}) > 1:
            left_out = calibration.left_out_errors(own, model)
            yield Elsewhere(name, "each scenario, left out", left_out)
        for other, measured in rows.items():
            if other != name:
                yield Elsewhere(
                    name, f"the device of {other}", calibration.errors_by(model, measured)
                )


def _thresholds(model: EnergyModel, *, as_json: bool) -> None:
    if missing := model.unknown((WIFI, LTE)):
        raise UsageError(f"{model.name} does not know {', '.join(missing)}")
    rows = information_base.table(model, [mbps * 1e6 for mbps in _EIB_MBPS])
    if as_json:
        print(json.dumps([_finite(row) for row in rows], indent=2))
        return
    table = _table(f"{LTE.title} Mbit/s", "LTE alone: Wi-Fi below", "Wi-Fi alone: from", right=True)
    for row in rows:
        from_bps = row.wifi_only_from_bps
        table.add_row(
            f"{row.lte_bps / 1e6:g}",
            f"{row.lte_only_below_bps / 1e6:.3f}",
            "never" if math.isinf(from_bps) else f"{from_bps / 1e6:.3f}",
        )
    printing.console().print(table)


def _finite(row: Thresholds) -> dict[str, float | None]:
    return {name: None if math.isinf(value) else value for name, value in asdict(row).items()}


def _runs(options: argparse.Namespace, model: EnergyModel | None) -> int:
    said = []
    failures = 0
    for run_dir in options.runs:
        one: dict[str, object] = {"run_dir": str(run_dir)}
        try:
            cost = directory_energy.of_directory(run_dir, model)
        except (FigureError, OSError) as error:
            failures += 1
            one["error"] = str(error)
        else:
            one |= {"energy": asdict(cost.figures)}
            if options.power:
                one["power"] = [asdict(step) for step in cost.power]
            if not options.json and not options.power:
                print(f"{run_dir}: {in_words(cost.figures)}")
        said.append(one)
    if options.json:
        print(json.dumps(said, indent=2))
    elif options.power:
        _print_power(said)
    for one in said if not options.json else ():
        if "error" in one:
            report_error(str(one["error"]))
    return 1 if failures else 0


def _print_power(said: list[dict[str, object]]) -> None:
    """Prints the power over time of all runs as CSV. A row without a link is the whole device."""
    print("run_dir,t_s,length_s,link,power_w")
    for one in said:
        steps = one.get("power", [])
        assert isinstance(steps, list)
        for step in steps:
            for link, watts in {"": step["power_w"], **step["links_w"]}.items():
                at = f"{step['t_s']:.6f},{step['length_s']:.6f}"
                print(f"{one['run_dir']},{at},{link},{watts:.4f}")


def in_words(cost: EnergyFigures) -> str:
    """Returns a run's energy in a few lines."""
    lines = [
        f"{cost.joules:.1f} J by {cost.model}, {cost.tail_j:.1f} J of it after the download; "
        f"{cost.joules_per_byte * 1e6:.3f} J/MB, mean {cost.mean_w:.2f} W, "
        f"p90 {cost.p90_w:.2f} W, peak {cost.peak_w:.2f} W"
    ]
    longest = max([5, *(len(link_title(name)) for name in cost.links)])
    for name, link in cost.links.items():
        lines.append(
            f"  {link_title(name):<{longest}} {link.joules:7.1f} J: active {link.active_j:.1f} "
            f"in {link.active_s:.1f} s, bytes {link.transfer_j:.1f}, promotion "
            f"{link.promotion_j:.1f}, tail {link.tail_j:.1f}"
        )
    common = cost.base_j + cost.phone_j + cost.shared_j + cost.both_j + (cost.processor_j or 0.0)
    processor = "" if cost.processor_j is None else f", processor {cost.processor_j:.1f}"
    phone = f", phone {cost.phone_j:.1f} in {cost.window_s:.1f} s" if cost.phone_j else ""
    lines.append(
        f"  {'all':<{longest}} {common:7.1f} J: base {cost.base_j:.1f}{phone}, shared "
        f"{cost.shared_j:.1f}, both links {cost.both_j:.1f}{processor}"
    )
    if cost.bursts_j is not None:
        lines.append(
            f"  in bursts of packets {cost.bursts_j:.1f} J, {cost.bursts_s or 0:.1f} s long"
        )
    return "\n".join(lines)


def _table(*headers: str, right: bool = False) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header, justify="right" if right else "left")
    return table
