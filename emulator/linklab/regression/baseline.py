"""Reads and writes a suite's baseline: the accepted figures of every download.

A YAML file with a line for each cell, sorted, so that a diff shows which figures were accepted:

    reason: multilink asks for less at a time
    made_on: 2026-11-21
    fingerprint:
      programs: {…}
      scenarios: {…}
    cells:
    - {scenario: ls, algorithm: alg3, seed: 1, download_s: 30.612, …}

Figures that a client does not report are absent. Figures of a workload have their own mapping:
`workload: {startup_s: 1.5, …}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from linklab.core.errors import LinklabError
from linklab.regression.figures import OF_EVERY_RUN, OF_WORKLOADS, Cell, Figure, Values
from linklab.regression.fingerprint import Fingerprint
from linklab.runs.figures import figures_in
from linklab.scenario import ScenarioError
from linklab.schema import document
from linklab.schema.document import Limits

_HEAD = """\
# What the downloads of a regression suite came to when they were last accepted.
# Made by `linklab regress --update --reason …`: do not edit, see the suite beside it.
"""


_LIMITS = Limits(1 << 21, 200_000)
"""Enough for 10,000 downloads of 160 bytes and 17 values each."""


_COMPARED = figures_in(lambda one: one.bounds)


class BaselineError(LinklabError, RuntimeError):
    """The baseline is missing, damaged, or does not belong to the suite."""


@dataclass(frozen=True)
class Baseline:
    """Accepted figures by cell, their fingerprint, and why and when (ISO date) they were accepted."""

    reason: str
    made_on: str
    fingerprint: Fingerprint
    cells: dict[Cell, Values]


_Line = msgspec.defstruct(
    "_Line",
    [
        ("scenario", str),
        ("algorithm", str),
        ("seed", int),
        *((one.key, float) for one, how in _COMPARED if how.needed),
        *((one.key, float | None, None) for one, how in _COMPARED if not how.needed),
        ("workload", dict[str, float], msgspec.field(default_factory=dict)),
    ],
    frozen=True,
    forbid_unknown_fields=True,
)


class _Fingerprint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    programs: dict[str, str]
    scenarios: dict[str, str]
    energy_models: dict[str, str] = {}


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: str
    made_on: str
    fingerprint: _Fingerprint
    cells: list[_Line]  # type: ignore[valid-type]  # mypy knows no type that is made.


def write(baseline: Baseline, heading: str = _HEAD) -> str:
    """Returns the file's text, with comments as its heading. Equal baselines give equal text."""
    head: dict[str, Any] = {
        "reason": baseline.reason,
        "made_on": baseline.made_on,
        "fingerprint": {
            "programs": dict(sorted(baseline.fingerprint.programs.items())),
            "scenarios": dict(sorted(baseline.fingerprint.scenarios.items())),
        },
    }
    if baseline.fingerprint.energy_models:
        models = dict(sorted(baseline.fingerprint.energy_models.items()))
        head["fingerprint"]["energy_models"] = models
    text = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=100)
    lines = [f"- {_flow(cell, baseline.cells[cell])}\n" for cell in sorted(baseline.cells)]
    return heading + text + "cells:\n" + "".join(lines)


def _flow(cell: Cell, values: Values) -> str:
    found: dict[str, Any] = {**cell._asdict(), **_rounded(OF_EVERY_RUN, values)}
    own = _rounded(OF_WORKLOADS, values)
    if own:
        found["workload"] = _mapping(own)
    return _mapping(found)


def _rounded(figures: tuple[Figure, ...], values: Values) -> dict[str, float]:
    return {
        figure.key: round(value, figure.digits) if figure.digits else round(value)
        for figure in figures
        if (value := values.get(figure.key)) is not None
    }


def _mapping(found: dict[str, Any]) -> str:
    """Writes a mapping on one line. Its scalars are numbers and plain names, so none needs quotes."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in found.items()) + "}"


def parse(text: str, file_name: str) -> Baseline:
    """Reads a baseline from text. `file_name` names the file in errors. Raises BaselineError."""
    try:
        read = msgspec.convert(document.plain(text, file_name, _LIMITS), _File, strict=False)
    except ScenarioError as error:
        raise BaselineError(str(error)) from error
    except msgspec.ValidationError as error:
        raise BaselineError(f"{file_name}: is no baseline: {error}") from error
    cells: dict[Cell, Values] = {}
    rows: list[Any] = read.cells
    for row in rows:
        cell = Cell(row.scenario, row.algorithm, row.seed)
        if cell in cells:
            raise BaselineError(f"{file_name}: {cell} is there twice")
        unknown = set(row.workload) - {figure.key for figure in OF_WORKLOADS}
        if unknown:
            raise BaselineError(
                f"{file_name}: {cell}: no workload has {', '.join(sorted(unknown))}"
            )
        every = {figure.key: getattr(row, figure.key) for figure in OF_EVERY_RUN}
        cells[cell] = {**every, **row.workload}
        for key, value in cells[cell].items():
            if value is not None and not math.isfinite(value):
                raise BaselineError(
                    f"{file_name}: {cell}: {key} cannot be {value}; needed: a number"
                )
    fingerprint = Fingerprint(**msgspec.structs.asdict(read.fingerprint))
    return Baseline(read.reason, read.made_on, fingerprint, cells)


def load(path: Path) -> Baseline:
    """Reads a baseline from a file. Raises BaselineError."""
    if not path.exists():
        raise BaselineError(
            f"{path}: there is no baseline yet; make one with --update --reason TEXT"
        )
    try:
        text = document.read(path, str(path), _LIMITS)
    except ScenarioError as error:
        raise BaselineError(str(error)) from error
    return parse(text, str(path))
