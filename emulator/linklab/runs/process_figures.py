"""Computes processor load and memory of a run's processes, as chapter 6 of the thesis does. Pure.

The samples, ten a second, are evaluated as they are and once a second, as in the thesis. A load of
1 is one busy core. A phone's percentages do not apply to another processor, but ratios between
algorithms may.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from linklab.core import statistics
from linklab.core.bursts import grown
from linklab.core.records import ProcessRecord
from linklab.runs.run_figures import ProcessFigures
from linklab.runs.time_series import TimeSeries

ONCE_A_SECOND: Final = "1 Hz"
"""The thesis' sampling rate (3.4)."""

EVERY_S: Final = {ONCE_A_SECOND: 1.0, "10 Hz": 0.1}
"""Seconds between samples, by the name of the rate."""

_EARLY_S = 0.05
"""Half the time between two samples."""

_LEAST_SAMPLES = 3
"""Three samples give two loads, and so a deviation."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Holds load and memory of a process over time, in seconds since the scenario began."""

    loads: TimeSeries
    memory_bytes: TimeSeries


def of_records(records: Iterable[ProcessRecord]) -> dict[str, dict[str, ProcessFigures]]:
    """Returns each process's figures by sampling rate. Processes with fewer than two loads are left
    out."""
    found: dict[str, dict[str, ProcessFigures]] = {}
    for process, samples in _by_process(records).items():
        for title, every_s in EVERY_S.items():
            chosen = _every(samples, every_s)
            if len(chosen) >= _LEAST_SAMPLES:
                cpu_s = samples[-1].cpu_s - samples[0].cpu_s
                found.setdefault(process, {})[title] = _figures(chosen, cpu_s)
    return found


def load_in(
    records: Iterable[ProcessRecord], process: str, bursts: Sequence[tuple[float, float]]
) -> float | None:
    """Returns a process's mean load in the samples that touch one of these times. None if there are
    none."""
    samples = [(one.t_s, one.cpu_s) for one in records if one.process == process]
    busy_s, length_s = grown(samples, bursts)
    return busy_s / length_s if length_s else None


def over_time(records: Iterable[ProcessRecord], every_s: float) -> dict[str, Usage]:
    """Returns the usage of each process in steps of about `every_s` seconds."""
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
    """Returns the first sample, and each one that is about `every_s` after the one chosen before. A
    late sample does not delay the next one. The last sample is included if it is at least half of
    `every_s` later."""
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
