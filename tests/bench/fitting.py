"""Fits links of a publication's scenarios so that each alone reaches its published rate. Pure.

A link's behaviour alone needs no lab, only its model at full load (`full_load.py`). A lab is slower
by what the oracle leaves out, mainly slow start. `lab_ratio` says by how much. `linklab reproduce`
uses other seeds, so its single-link rows check the fit. `make bench ARGS=calibration` finds the
profiles' keys.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from linklab.links.full_load import spans
from linklab.links.oracle import HORIZON_S
from linklab.models.between_runs import MAX_RELATIVE_SD, BetweenRunsSettings
from linklab.models.trace import Trace
from linklab.report.publication import values
from linklab.report.statement import RunGroup, Statement
from linklab.scenario import Scenario

SEEDS: Final = range(1001, 1201)

BIN_S: Final = 1.0
"""A run's rate is the median over its seconds. The publication has medians of medians (thesis 3.4).
"""

SCENARIOS: Final = ("hs-s6", "hs-s7", "ls", "ts", "tm", "ao")
"""The thesis' scenarios."""


@dataclass(frozen=True, slots=True)
class Target:
    """Holds a link's target alone: the median download, and the rates' standard deviation divided
    by their median, over runs."""

    download_s: float
    spread: float


ASSUMED: Final[Mapping[tuple[str, str], Target]] = {("ls", "lte"): Target(31.48, 0.095)}
"""Targets of links, by scenario and name, for which nothing was published alone. ls: 65.87 Mbit/s
is LTE's mean over its multi-link rows (thesis 5.1.2), 6.26 the mean of their σ. hs-s7's row relates
a reported rate to a download: 59.19 of 61.37 Mbit/s."""


@dataclass(frozen=True, slots=True)
class Alone:
    """Holds a link's results alone over many runs, in the terms of `Target`."""

    download_s: float
    spread: float


def targets(scenario: Scenario, stated: Iterable[Statement]) -> dict[str, Target]:
    """Returns the targets of links alone, as far as anything was published."""
    stated = list(stated)
    found = {link: one for (name, link), one in ASSUMED.items() if name == scenario.name}
    for link in scenario.links:
        cell = RunGroup(scenario.name, f"single-{link}")
        download_s = values(stated, "download").get(cell)
        rate_bps = values(stated, "link-rate", link).get(cell)
        deviation_bps = values(stated, "link-deviation", link).get(cell)
        if download_s is not None and rate_bps and deviation_bps is not None:
            found[link] = Target(download_s, deviation_bps / rate_bps)
    return {link: found[link] for link in scenario.links if link in found}


def alone(scenario: Scenario, link: str, seeds: Iterable[int] = SEEDS) -> Alone:
    """Computes the results of `link` alone at full load. Raises KeyError for a link that the
    scenario lacks."""
    runs = [_run(scenario, link, seed) for seed in seeds]
    rates = [rate for _, rate in runs]
    return Alone(
        statistics.median(download_s for download_s, _ in runs),
        statistics.stdev(rates) / statistics.median(rates),
    )


@dataclass(frozen=True, slots=True)
class Found:
    """Holds a link's keys `down` and `between_runs`."""

    down_bps: int
    between_runs: float


def calibrated(
    scenario: Scenario,
    link: str,
    target: Target,
    *,
    lab_ratio: float = 1.0,
    seeds: Iterable[int] = SEEDS,
    most_steps: int = 8,
) -> Found:
    """Finds the keys with which `link` reaches its target. `lab_ratio` is a lab's time divided by
    the model's. `down` gets four digits and `between_runs` three, as in a profile. If the link
    varies more than its target by itself, or no `between_runs` is enough, it is the least or the
    most allowed."""
    seeds = tuple(seeds)
    settings = scenario.links[link]
    strays = settings.model(BetweenRunsSettings)
    found = Found(settings.down_rate_bps, strays.relative_sd if strays else 0.0)
    for _ in range(most_steps):
        seen = alone(given(scenario, link, found), link, seeds)
        down_bps = found.down_bps * seen.download_s * lab_ratio / target.download_s
        # The link's own variance and that between runs add up.
        square = found.between_runs**2 + target.spread**2 - seen.spread**2
        spread = min(MAX_RELATIVE_SD, math.sqrt(max(0.0, square)))
        following = Found(int(float(f"{down_bps:.4g}")), round(spread, 3))
        if following == found:
            break
        found = following
    return found


def given(scenario: Scenario, link: str, found: Found) -> Scenario:
    """Returns the scenario with these keys in `link`, as far as they matter at full load. Queue and
    B of the algorithms are unchanged."""
    settings = scenario.links[link]
    changed = replace(settings, down_rate_bps=found.down_bps).without(BetweenRunsSettings)
    if found.between_runs:
        changed = changed.having(BetweenRunsSettings(found.between_runs))
    trace = settings.model(Trace)
    if trace is not None and trace.settings.down_mean_bps is not None:
        scaled = replace(trace.settings, down_mean_bps=found.down_bps)
        changed = changed.having(replace(trace, settings=scaled))
    return replace(scenario, links={**scenario.links, link: changed})


def _run(scenario: Scenario, link: str, seed: int) -> tuple[float, float]:
    """Returns the seconds of a download over the link alone, and the median of its rates per
    second."""
    times, sums = _progress(scenario, link, seed)
    begin_s, end_s = times[0], times[-1]
    seconds = int((end_s - begin_s) / BIN_S)
    if seconds == 0:
        return end_s, sums[-1] / (end_s - begin_s)
    got = [_at(times, sums, begin_s + BIN_S * n) for n in range(seconds + 1)]
    return end_s, statistics.median(after - before for before, after in pairwise(got)) / BIN_S


def _progress(scenario: Scenario, link: str, seed: int) -> tuple[list[float], list[float]]:
    """Returns when how many bytes of the payload had arrived, from the first to the last one."""
    if link not in scenario.links:
        raise KeyError(link)
    size = float(scenario.payload.size_bytes)
    times: list[float] = []
    sums: list[float] = []
    got = 0.0
    for span in spans(scenario, seed, [link]):
        rate = span.payload_bytes_per_s[link]
        if not times and rate > 0:
            times.append(span.start_s)
            sums.append(0.0)
        if rate > 0 and got + rate * (span.end_s - span.start_s) >= size:
            return [*times, span.start_s + (size - got) / rate], [*sums, size]
        if span.end_s > HORIZON_S:
            break
        got += rate * (span.end_s - span.start_s)
        if times:
            times.append(span.end_s)
            sums.append(got)
    raise ValueError(f"{scenario.name}: {link} alone does not deliver the payload, seed {seed}")


def _at(times: list[float], sums: list[float], t_s: float) -> float:
    """Returns the bytes at a time, by linear interpolation."""
    after = min(bisect_right(times, t_s), len(times) - 1)
    share = (t_s - times[after - 1]) / (times[after] - times[after - 1])
    return sums[after - 1] + min(1.0, share) * (sums[after] - sums[after - 1])
