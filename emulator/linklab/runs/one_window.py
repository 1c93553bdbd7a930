"""Counts the phone's share of compared runs for the same time. Pure.

An energy model may say what the phone draws besides its radios (`phone` in `energy/model.py`). In a
comparison the phone draws it until the last radio of all clients sleeps. Otherwise a client with a
long tail would pay for a phone that others need not have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from linklab.runs.run_figures import RunFigures


def in_one_window(runs: Iterable[tuple[int, RunFigures]]) -> list[RunFigures]:
    """Returns the figures of one scenario's runs, in their order. `runs` has each run's seed.

    Runs of one seed get the same time for the phone's share: the longest of them.
    """
    given = list(runs)
    windows_s: dict[int, float] = {}
    for seed, one in given:
        if one.energy is not None:
            windows_s[seed] = max(one.energy.window_s, windows_s.get(seed, 0.0))
    return [
        one if one.energy is None else replace(one, energy=one.energy.over(windows_s[seed]))
        for seed, one in given
    ]
