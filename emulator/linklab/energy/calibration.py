"""Fits an energy model to measured downloads, by least squares of the relative errors. Pure.

A row is one measured download: its duration, its joules, and each link kind's active time and
bytes. Powers and energies per bit are kept at 0 or above. Only `both`, the term for links that run
together, may be negative.

The leave-one-out error of a row is its error by the fit to all other rows. It tells how good the
fit is for downloads that were not measured.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from linklab.core import statistics
from linklab.core.errors import LinklabError
from linklab.core.link_kinds import KINDS
from linklab.energy.model import EnergyModel, LinkEnergy, TailState

Numbers = NDArray[np.float64]

_COMMON: Final = {
    "base": "base_mw",
    "phone": "phone_mw",
    "shared": "shared_mw",
    "both": "both_mw",
}
_OF_LINKS: Final = {
    "active": "active_mw",
    "down": "down_mj_per_mbit",
    "up": "up_mj_per_mbit",
    "tail": "",
}
TERMS: Final = (*_COMMON, *(f"{kind}.{term}" for kind in KINDS for term in _OF_LINKS))
"""The terms that can be fitted. `KIND.tail` scales the powers of the model's tail states to the
energy measured after the downloads."""

LARGEST: Final = 100_000.0
"""In mW, and in mJ per Mbit. A phone's battery gives less."""


class CalibrationError(LinklabError, ValueError):
    """No model can be fitted to the rows. The message says to which rows and why."""


@dataclass(frozen=True, slots=True)
class LinkUse:
    """The use of a link kind: time from its first to its last byte, and the data it carried."""

    active_s: float = 0.0
    down_mbit: float = 0.0
    up_mbit: float = 0.0


@dataclass(frozen=True, slots=True)
class MeasuredEnergy:
    """A measured row: `energy_j` of the download, `tail_j` after it (None if not measured)."""

    label: str
    download_s: float
    energy_j: float
    tail_j: float | None
    links: Mapping[str, LinkUse]


@dataclass(frozen=True, slots=True)
class Residual:
    """A row's energy as measured, by the fit to all rows (`energy_j`), and by the fit to all other
    rows (`left_out_j`)."""

    label: str
    measured_j: float
    energy_j: float
    left_out_j: float

    @property
    def error(self) -> float:
        """The relative error of the fit to all rows."""
        return self.energy_j / self.measured_j - 1

    @property
    def left_out_error(self) -> float:
        """The relative error of the fit to all other rows."""
        return self.left_out_j / self.measured_j - 1


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted model, the names of the fitted terms, and the rows' residuals."""

    model: EnergyModel
    fitted: tuple[str, ...]
    residuals: tuple[Residual, ...]

    @property
    def rms(self) -> float:
        """The root mean square of the relative errors."""
        return statistics.rms(one.error for one in self.residuals)

    @property
    def left_out_rms(self) -> float:
        """The root mean square of the leave-one-out errors."""
        return statistics.rms(one.left_out_error for one in self.residuals)


_NUMBERS: Final = {
    "download_s": True,
    "energy_j": True,
    "tail_j": False,
    **{f"{kind}_{what}": False for kind in KINDS for what in ("s", "mbit", "up_mbit")},
}
"""Columns with numbers. True if every row needs a value."""

COLUMNS: Final = ("row", *_NUMBERS)


def parse(text: str, file_name: str = "<text>") -> list[MeasuredEnergy]:
    """Reads rows from CSV text with a header of `COLUMNS`. Columns of links may be absent or empty.

    `file_name` names the file in errors. Raises CalibrationError with the line.
    """
    reader = csv.reader(io.StringIO(text))
    header = [name.strip() for name in next(reader, [])]
    unknown = [name for name in header if name not in COLUMNS]
    missing = [name for name, needed in _NUMBERS.items() if needed and name not in header]
    if unknown or missing or len(set(header)) < len(header):
        what = f"unknown column {unknown[0]!r}" if unknown else "a column is missing or given twice"
        raise CalibrationError(
            f"{file_name}:1: {what}; needed: download_s, energy_j; allowed: {', '.join(COLUMNS)}"
        )
    rows = []
    for cells in reader:
        where = f"{file_name}:{reader.line_num}"
        if not cells or not "".join(cells).strip():
            continue
        if len(cells) != len(header):
            raise CalibrationError(f"{where}: {len(cells)} values for {len(header)} columns")
        rows.append(_row(dict(zip(header, cells, strict=True)), where))
    return rows


def _row(cells: dict[str, str], where: str) -> MeasuredEnergy:
    numbers = {name: _number(cells.get(name, ""), name, where) for name in _NUMBERS}
    for name, needed in _NUMBERS.items():
        if needed and not numbers[name]:
            raise CalibrationError(f"{where}: {name}: is {cells[name]!r}; needed: more than 0")
    links = {
        kind: LinkUse(
            numbers[f"{kind}_s"] or 0.0,
            numbers[f"{kind}_mbit"] or 0.0,
            numbers[f"{kind}_up_mbit"] or 0.0,
        )
        for kind in KINDS
        if numbers[f"{kind}_s"]
    }
    download_s = numbers["download_s"] or 0.0
    for kind, use in links.items():
        if use.active_s > download_s:
            raise CalibrationError(
                f"{where}: {kind}_s: {use.active_s:g} s of a download of {download_s:g} s"
            )
    label = cells.get("row", "").strip() or where.rpartition(":")[2]
    return MeasuredEnergy(label, download_s, numbers["energy_j"] or 0.0, numbers["tail_j"], links)


def _number(text: str, name: str, where: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise CalibrationError(f"{where}: {name}: {text!r} is not a number of at least 0")
    return value


def usual_terms(rows: Sequence[MeasuredEnergy]) -> tuple[str, ...]:
    """Lists the terms that rows determine: power and energy per bit of each link kind that they
    use, and `both` if links ran together.

    `base` is left out. In a download a link is active all the time, so `base` cannot be told apart
    from the links' power.
    """
    found = []
    if any(_both_s(row) > 0 for row in rows):
        found.append("both")
    for kind in KINDS:
        uses = [row.links[kind] for row in rows if kind in row.links]
        found += [f"{kind}.active"] if uses else []
        found += [f"{kind}.down"] if any(use.down_mbit for use in uses) else []
        found += [f"{kind}.up"] if any(use.up_mbit for use in uses) else []
    return tuple(found)


def fit(rows: Sequence[MeasuredEnergy], start: EnergyModel, terms: Sequence[str]) -> Fit:
    """Fits `terms` to the rows; the other terms stay as in `start`.

    Raises CalibrationError if there are too few rows, or a term cannot be told from others.
    """
    of_download = [term for term in terms if not term.endswith(".tail")]
    unknown = [term for term in terms if term not in TERMS]
    if unknown:
        raise CalibrationError(f"no term is called {unknown[0]!r}; allowed: {', '.join(TERMS)}")
    if of_download and len(rows) <= len(of_download):
        raise CalibrationError(
            f"{len(rows)} rows for {len(of_download)} terms; needed: at least {len(of_download) + 1}"
        )
    fixed = _with(start, dict.fromkeys(of_download, 0.0))
    known_mj = np.array([energy_mj(fixed, row) for row in rows])
    measured_mj = np.array([row.energy_j * 1e3 for row in rows])
    matrix = np.array([[_amount(row, term) for term in of_download] for row in rows])
    if of_download:
        _check_rank(matrix, of_download)
    wanted = (measured_mj - known_mj) / measured_mj
    low = np.array([-LARGEST if term == "both" else 0.0 for term in of_download])

    def solved(without: int | None = None) -> Numbers:
        """Returns the terms' values by all rows, or by all rows but `without`."""
        if not of_download:
            return np.zeros(0)
        used = [n for n in range(len(rows)) if n != without]
        relative = matrix[used] / measured_mj[used, None]
        return _least_squares(relative, wanted[used], low, LARGEST)

    values = solved()
    residuals = tuple(
        Residual(
            row.label,
            row.energy_j,
            float(matrix[n] @ values + known_mj[n]) / 1e3,
            float(matrix[n] @ solved(without=n) + known_mj[n]) / 1e3,
        )
        for n, row in enumerate(rows)
    )
    model = _with(fixed, dict(zip(of_download, map(float, values), strict=True)))
    return Fit(_with_tails(model, rows, terms), tuple(terms), residuals)


def left_out_errors(rows: Sequence[MeasuredEnergy], start: EnergyModel) -> list[float]:
    """Returns the relative error of each row by the fit to all rows of other scenarios. A row's
    scenario is the first word of its name.

    Rows of one scenario resemble each other, so leaving out one row says less of other links.
    Raises CalibrationError if there is one scenario only, or too few rows.
    """
    scenarios = [row.label.split()[0] for row in rows]
    if len(set(scenarios)) < 2:
        raise CalibrationError(f"all rows are of {scenarios[0]}; needed: two scenarios")
    models = {}
    for scenario in set(scenarios):
        others = [row for row, its in zip(rows, scenarios, strict=True) if its != scenario]
        models[scenario] = fit(others, start, usual_terms(others)).model
    return [
        error
        for row, scenario in zip(rows, scenarios, strict=True)
        for error in errors_by(models[scenario], [row])
    ]


def errors_by(model: EnergyModel, rows: Sequence[MeasuredEnergy]) -> list[float]:
    """Returns the relative error of each row's energy by a model."""
    return [energy_mj(model, row) / (row.energy_j * 1e3) - 1 for row in rows]


def energy_mj(model: EnergyModel, row: MeasuredEnergy) -> float:
    """Computes the energy of a row's download by a model, without promotions and tails."""
    total = sum(getattr(model, name) * _amount(row, term) for term, name in _COMMON.items())
    for kind in row.links:
        link = model.links.get(kind, LinkEnergy())
        total += sum(
            getattr(link, name) * _amount(row, f"{kind}.{term}")
            for term, name in _OF_LINKS.items()
            if name
        )
    return float(total)


def _both_s(row: MeasuredEnergy) -> float:
    """Returns the active seconds of all links but the longest. Assumes that links start together."""
    times = sorted(use.active_s for use in row.links.values())
    return sum(times[:-1])


def _amount(row: MeasuredEnergy, term: str) -> float:
    """Returns a row's amount of a term, in seconds or megabits."""
    if term in ("base", "phone"):
        return row.download_s
    if term == "shared":
        return max((use.active_s for use in row.links.values()), default=0.0)
    if term == "both":
        return _both_s(row)
    kind, _, what = term.partition(".")
    use = row.links.get(kind, LinkUse())
    return {"active": use.active_s, "down": use.down_mbit, "up": use.up_mbit}[what]


def _least_squares(matrix: Numbers, wanted: Numbers, low: Numbers | float, high: float) -> Numbers:
    """Returns the values between two bounds that fit `matrix · values = wanted` best."""
    from scipy import optimize  # Slow to load, and an extra.

    found = optimize.lsq_linear(matrix, wanted, bounds=(low, high), method="bvls")
    return np.asarray(found.x, dtype=np.float64)


def _check_rank(matrix: Numbers, terms: Sequence[str]) -> None:
    scale = np.abs(matrix).max(axis=0)
    for term, most in zip(terms, scale, strict=True):
        if most == 0:
            raise CalibrationError(f"no row has anything of {term}; leave it out of the terms")
    if np.linalg.matrix_rank(matrix / scale) < len(terms):
        raise CalibrationError(
            f"the rows cannot tell {', '.join(terms)} apart; leave one of them out of the terms"
        )


def _with(model: EnergyModel, values: Mapping[str, float]) -> EnergyModel:
    common: dict[str, Any] = {
        _COMMON[term]: value for term, value in values.items() if term in _COMMON
    }
    links = dict(model.links)
    for term, value in values.items():
        kind, _, what = term.partition(".")
        if what:
            changed: dict[str, Any] = {_OF_LINKS[what]: value}
            links[kind] = replace(links.get(kind, LinkEnergy()), **changed)
    in_order = {kind: links[kind] for kind in KINDS if kind in links}
    return replace(model, links=in_order, fitted_to=(), **common)


def _with_tails(
    model: EnergyModel, rows: Sequence[MeasuredEnergy], terms: Sequence[str]
) -> EnergyModel:
    """Scales the tails' powers to fit the measured tails.

    It minimises absolute errors, because many tails are nearly zero.
    """
    kinds = [term.removesuffix(".tail") for term in terms if term.endswith(".tail")]
    if not kinds:
        return model
    for kind in kinds:
        if kind not in model.links or model.links[kind].tail_s == 0:
            raise CalibrationError(f"{kind}.tail: the model to start from has no tail of {kind}")
    measured = [row for row in rows if row.tail_j is not None]
    if len(measured) <= len(kinds):
        raise CalibrationError(f"{len(measured)} rows with tail_j for {len(kinds)} tails")
    others = {kind: one for kind, one in model.links.items() if kind not in kinds}
    known = np.array(
        [
            sum(_tail_mj(row, k, one) for k, one in others.items()) + _phone_mj(row, model)
            for row in measured
        ]
    )
    matrix = np.array([[_tail_mj(row, k, model.links[k]) for k in kinds] for row in measured])
    wanted = np.array([(row.tail_j or 0.0) * 1e3 for row in measured]) - known
    scales = _least_squares(matrix, wanted, 0.0, np.inf)
    links = dict(model.links)
    for kind, scale in zip(kinds, scales, strict=True):
        tail = tuple(
            replace(state, power_mw=float(scale) * state.power_mw) for state in links[kind].tail
        )
        links[kind] = replace(links[kind], tail=tail)
    return replace(model, links=links)


def _tail_mj(row: MeasuredEnergy, kind: str, link: LinkEnergy) -> float:
    """Computes the energy of the part of a link's tail that falls after the download."""
    if kind not in row.links:
        return 0.0
    gone_s = row.download_s - row.links[kind].active_s
    return sum(state.power_mw * left_s for state, left_s in _left(link.tail, gone_s))


def _phone_mj(row: MeasuredEnergy, model: EnergyModel) -> float:
    """Computes the phone's share of the time after the download, until the radios sleep."""
    lefts_s = [
        model.links[kind].tail_s - (row.download_s - use.active_s)
        for kind, use in row.links.items()
        if kind in model.links
    ]
    return model.phone_mw * max([0.0, *lefts_s])


def _left(tail: Sequence[TailState], gone_s: float) -> Iterator[tuple[TailState, float]]:
    for state in tail:
        yield state, max(0.0, state.time_s - max(0.0, gone_s))
        gone_s -= state.time_s


def rounded(model: EnergyModel) -> EnergyModel:
    """Rounds a model for its file: powers to 1 mW, energies to 0.01 mJ per Mbit.

    No meter measures more precisely.
    """
    links = {
        kind: replace(
            one,
            active_mw=float(round(one.active_mw)),
            down_mj_per_mbit=round(one.down_mj_per_mbit, 2),
            up_mj_per_mbit=round(one.up_mj_per_mbit, 2),
            tail=tuple(replace(s, power_mw=float(round(s.power_mw))) for s in one.tail),
        )
        for kind, one in model.links.items()
    }
    return replace(
        model,
        base_mw=float(round(model.base_mw)),
        phone_mw=float(round(model.phone_mw)),
        shared_mw=float(round(model.shared_mw)),
        both_mw=float(round(model.both_mw)),
        links=links,
    )
