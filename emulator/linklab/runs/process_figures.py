"""Processor load and memory of a run's processes, as chapter 6 of the thesis tells them. Pure.

What is sampled ten times a second is looked at as it is and once a second, as in the thesis. A load
is 1 where one core is wholly busy. The percentages of a phone do not transfer to another processor;
ratios between algorithms may.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from linklab.core import statistics
from linklab.core.records import ProcessRecord
from linklab.runs.run_figures import ProcessFigures
from linklab.runs.time_series import TimeSeries

ONCE_A_SECOND: Final = "1 Hz"
"""How often the thesis looked (3.4)."""

EVERY_S: Final = {ONCE_A_SECOND: 1.0, "10 Hz": 0.1}
"""How far apart samples are, by what that is called."""

_EARLY_S = 0.05
"""Half of what is between two samples."""

_LEAST_SAMPLES = 3
"""Two loads, and so a deviation."""


@dataclass(frozen=True, slots=True)
class Usage:
    """A process over time, in seconds since the scenario began: its loads and its memory."""

    loads: TimeSeries
    memory_bytes: TimeSeries


def of_records(records: Iterable[ProcessRecord]) -> dict[str, dict[str, ProcessFigures]]:
    """Each process's figures by how often it was looked at; those that were too short for two
    loads are left out."""
    found: dict[str, dict[str, ProcessFigures]] = {}
    for process, samples in _by_process(records).items():
        for title, every_s in EVERY_S.items():
            chosen = _every(samples, every_s)
            if len(chosen) >= _LEAST_SAMPLES:
                cpu_s = samples[-1].cpu_s - samples[0].cpu_s
                found.setdefault(process, {})[title] = _figures(chosen, cpu_s)
    return found


def over_time(records: Iterable[ProcessRecord], every_s: float) -> dict[str, Usage]:
    """Each process in steps of so many seconds, nearly."""
    return {
        process: Usage(_loads(chosen), _memory(chosen))
        for process, samples in _by_process(records).items()
        for chosen in [_every(samples, every_s)]
    }


def _by_process(records: Iterable[ProcessRecord]) -> dict[str, list[ProcessRecord]]:
    found: dict[str, list[ProcessRecord]] = {}
    for record in records:
        found.setdefault(record.process, []).append(record)
    return found


def _loads(samples: Sequence[ProcessRecord]) -> TimeSeries:
    return [
        (before.t_s, (after.cpu_s - before.cpu_s) / (after.t_s - before.t_s))
        for before, after in itertools.pairwise(samples)
    ]


def _memory(samples: Sequence[ProcessRecord]) -> TimeSeries:
    return [(one.t_s, float(one.rss_bytes)) for one in samples if one.rss_bytes is not None]


def _every(samples: Sequence[ProcessRecord], every_s: float) -> list[ProcessRecord]:
    """The first sample, and each that is so much later than the one before, or nearly: looks come
    late, and the next one in time. The last too where it is half of that later."""
    chosen = list(samples[:1])
    for sample in samples[1:]:
        if sample.t_s - chosen[-1].t_s >= every_s - _EARLY_S:
            chosen.append(sample)
    if samples and samples[-1].t_s - chosen[-1].t_s >= every_s / 2:
        chosen.append(samples[-1])
    return chosen


def _figures(samples: Sequence[ProcessRecord], cpu_s: float) -> ProcessFigures:
    loads = [load for _, load in _loads(samples)]
    resident = _memory(samples)
    sizes = [size for _, size in resident]
    return ProcessFigures(
        samples=len(samples),
        load_p05=statistics.percentile(loads, 5),
        load_median=statistics.median(loads),
        load_p90=statistics.percentile(loads, 90),
        load_max=max(loads),
        load_variation=statistics.coefficient_of_variation(loads) if any(loads) else None,
        cpu_s=cpu_s,
        memory_bytes=statistics.median(sizes) if sizes else None,
        memory_variation=statistics.coefficient_of_variation(sizes) if len(sizes) > 1 else None,
        memory_integral_byte_s=(
            statistics.simpson(sizes, [t_s for t_s, _ in resident]) if len(sizes) > 1 else None
        ),
    )
