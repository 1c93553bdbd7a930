"""Computes figures of a run's first seconds, for publications that measured for a fixed time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from linklab.core.frames import goodput_ratio
from linklab.core.records import QueueRecord, Tail
from linklab.energy.model import EnergyModel
from linklab.runs import run_energy
from linklab.runs.loaded_runs import LoadedRun
from linklab.runs.run_figures import FigureError, LinkFigures


def of(run: LoadedRun, first_s: float, model: EnergyModel | None = None) -> LoadedRun:
    """Returns the run as if it had ended after `first_s`. The payload follows from the links'
    counters at that time. Energy is counted until then, without a tail, by `model` or by the run's
    own model.

    Raises FigureError if the run failed or ended earlier.
    """
    if run.figures is None:
        raise FigureError(f"{run.run_dir}: {run.failure}")
    if run.figures.download_s < first_s:
        raise FigureError(
            f"{run.run_dir}: over after {run.figures.download_s:.1f} s, before the {first_s:g} s that "
            "are asked for; needed: a larger payload"
        )
    queues = Tail(run.run_dir, QueueRecord).read()
    end_s, direction = run.job.shift_s + first_s, run.scenario.workload.direction
    carried = {
        name: _sent_bytes(
            (one for one in queues if (one.link, one.direction) == (name, direction)), end_s
        )
        for name in run.scenario.links
    }
    total = sum(carried.values())
    links = {
        name: LinkFigures(
            bytes=round(count * goodput_ratio(run.scenario.links[name].families)),
            share=count / total if total else 0,
        )
        for name, count in carried.items()
    }
    payload_bytes = sum(link.bytes for link in links.values())
    energy, used = None, model or run_energy.model_of(run.run_dir)
    if used is not None:
        cost = run_energy.of_lab(
            used,
            run.scenario,
            run.run_dir,
            queues,
            start_s=run.job.shift_s,
            download_s=first_s,
            payload_bytes=payload_bytes,
        )
        energy = cost.figures.until_the_end(first_s, payload_bytes)
    figures = replace(
        run.figures,
        download_s=first_s,
        goodput_bps=payload_bytes * 8 / first_s,
        efficiency=None,
        link_delta_s=None,
        links=links,
        energy=energy,
    )
    return replace(run, figures=figures, first_s=first_s)


def _sent_bytes(samples: Iterable[QueueRecord], t_s: float) -> float:
    """Returns the bytes that a queue had sent at `t_s`, by linear interpolation between samples. A
    sample that is due at `t_s` comes some µs later."""
    from_s, before = 0.0, 0
    for one in samples:
        if one.t_s > t_s:
            return before + (one.sent_bytes - before) * (t_s - from_s) / (one.t_s - from_s)
        from_s, before = one.t_s, one.sent_bytes
    return before
