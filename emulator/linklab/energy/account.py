"""Computes the energy of a download, and the power over time, by an energy model. Pure.

A download lasts from the client's start to the last byte. The tail is the energy that the device
draws after that, until its radios are idle. It is kept apart (thesis 3.4). Power is a mean over half a
second, the lab's sampling interval. The thesis sampled once a second.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from linklab.core.bounded import ByName, Count, Figure, Name
from linklab.core.bursts import grown
from linklab.energy.activity import Activity
from linklab.energy.model import EnergyModel
from linklab.energy.phases import Phase, Radio

POWER_STEP_S: Final = 0.5
"""The distance between two values of the power over time."""

_J_PER_MJ = 1e-3


@dataclass(frozen=True, slots=True)
class LinkEnergyFigures:
    """The energy of one link; `joules` is the sum of the others.

    Attributes:
        active_s: time in which the link carried something.
        active_j: energy of that time, without `transfer_j`.
        transfer_j: energy that depends on the bytes carried.
        tail_j: energy of the tail states, during the download and after it.
        idle_j: energy of the idle radio during the download.
        down_bytes, up_bytes: bytes on the wire during the download.
    """

    joules: Figure
    active_s: Figure
    active_j: Figure
    transfer_j: Figure
    promotion_j: Figure
    tail_j: Figure
    idle_j: Figure
    down_bytes: Count
    up_bytes: Count


@dataclass(frozen=True, slots=True)
class EnergyFigures:
    """The energy of one run by one model.

    `joules` is the sum of `main_j` and `tail_j`. It is also the sum of `base_j`, `phone_j`,
    `shared_j`, `both_j`, `processor_j` and the links' `joules`.

    Attributes:
        main_j: energy of the download.
        tail_j: energy that was drawn after the download.
        base_j, phone_j, shared_j, both_j: energy that belongs to no single link.
        window_s: the time for which `phone_j` counts: from the client's start until all radios are
            idle, or the longer time of `over`. 0 in figures of an earlier linklab.
        bursts_j: energy while packets came or went (E_na of the MPTCP study, 2.3.1). None if their
            times are not known.
        bursts_processor_j: `processor_j` of these times (E_cpu), with the samples that they touch.
        bursts_s: how long they last together.
        processor_j: None if the model has no such term, or in virtual time.
        mean_w, p90_w, peak_w: powers of the download. For 90 % of the download the device drew
            at most `p90_w`.
    """

    model: Name
    joules: Figure
    joules_per_byte: Figure
    main_j: Figure
    tail_j: Figure
    mean_w: Figure
    p90_w: Figure
    peak_w: Figure
    base_j: Figure
    shared_j: Figure
    both_j: Figure
    links: ByName[LinkEnergyFigures]
    processor_j: Figure | None = None
    phone_j: Figure = 0.0
    window_s: Figure = 0.0
    bursts_j: Figure | None = None
    bursts_processor_j: Figure | None = None
    bursts_s: Figure | None = None

    def over(self, window_s: float) -> EnergyFigures:
        """Counts the phone's share for a longer time; the download itself stays as it is."""
        if not self.window_s or not self.phone_j:
            return self
        more_j = self.phone_j * (window_s / self.window_s - 1)
        return replace(
            self,
            joules=self.joules + more_j,
            joules_per_byte=self.joules_per_byte * (1 + more_j / self.joules),
            tail_j=self.tail_j + more_j,
            phone_j=self.phone_j + more_j,
            window_s=window_s,
        )

    def until_the_end(self, download_s: float, payload_bytes: int) -> EnergyFigures:
        """Returns the figures of the download alone, without anything after it."""
        phone_j = self.phone_j * download_s / self.window_s if self.window_s else 0.0
        return replace(
            self,
            joules=self.main_j,
            joules_per_byte=self.main_j / payload_bytes,
            tail_j=0.0,
            phone_j=phone_j,
            window_s=download_s,
        )


@dataclass(frozen=True, slots=True)
class Power:
    """The device's mean power from `t_s` (since the scenario began) for `length_s`.

    `links_w` is each link's share.
    """

    t_s: float
    length_s: float
    power_w: float
    links_w: dict[str, float]


@dataclass(frozen=True, slots=True)
class Account:
    """Holds the figures, and the power from the client's start until all radios are idle."""

    figures: EnergyFigures
    power: tuple[Power, ...]


def account(
    model: EnergyModel,
    activities: Mapping[str, Activity],
    *,
    start_s: float,
    end_s: float,
    payload_bytes: int,
    processor: Sequence[tuple[float, float]] = (),
    bursts: Sequence[tuple[float, float]] | None = None,
) -> Account:
    """Computes the energy of a download of `payload_bytes` from `start_s` to `end_s`.

    `processor` holds pairs of a time and the processor seconds that the client used until then. It
    is empty if they are not known. `bursts` holds the beginning and end of each burst, in their
    order. It is None if they are not known.

    Raises ValueError if no time passed, nothing was downloaded, or the model lacks a link kind.
    """
    if end_s <= start_s or payload_bytes <= 0:
        raise ValueError(f"{payload_bytes} bytes in {end_s - start_s:g} s are no download")
    if unknown := model.unknown(one.kind for one in activities.values()):
        raise ValueError(f"the energy model {model.name} does not know {', '.join(unknown)}")
    radios = {
        name: Radio(one, model.link(one.kind), start_s, end_s) for name, one in activities.items()
    }
    used = processor if model.processor_mw else ()
    sums = _Sums(model, radios, end_s, used)
    marks = sorted({t_s for radio in radios.values() for t_s in radio.marks})
    idle_s = max([end_s, *marks[-1:]])
    steps = _steps(start_s, end_s) + _steps(end_s, idle_s)
    power = []
    for from_s, to_s in steps:
        power.append(sums.step(_stretches(marks, from_s, to_s)))
    figures = _figures(sums, power, start_s, end_s, payload_bytes, idle_s)
    if bursts is not None:
        inside = [(max(one, start_s), min(other, end_s)) for one, other in bursts]
        inside = [(one, other) for one, other in inside if one < other]
        figures = _with_bursts(figures, _Sums(model, radios, end_s, ()), marks, inside)
        if used:
            busy_s, _ = grown(used, inside)
            processor_j = model.processor_mw * busy_s * _J_PER_MJ
            figures = replace(
                figures,
                bursts_j=(figures.bursts_j or 0.0) + processor_j,
                bursts_processor_j=processor_j,
            )
    return Account(figures, tuple(power))


def _stretches(marks: Sequence[float], from_s: float, to_s: float) -> list[tuple[float, float]]:
    """Divides a time at the marks, so that power is constant in each stretch."""
    inside = marks[bisect_right(marks, from_s) : bisect_left(marks, to_s)]
    return list(itertools.pairwise([from_s, *inside, to_s]))


def _with_bursts(
    figures: EnergyFigures,
    sums: _Sums,
    marks: Sequence[float],
    bursts: Sequence[tuple[float, float]],
) -> EnergyFigures:
    """Adds the energy of the bursts to a run's figures.

    The bytes of the whole download count: all came and went in bursts, while samples tell their
    times less precisely.
    """
    for from_s, to_s in bursts:
        sums.step(_stretches(marks, from_s, to_s))
    common_mj = sums.base_mj + sums.phone_mj + sums.shared_mj + sums.both_mj
    links_mj = sum(sum(one.phases_mj.values()) for one in sums.links.values())
    bytes_j = sum(one.transfer_j for one in figures.links.values())
    return replace(
        figures,
        bursts_j=(common_mj + links_mj) * _J_PER_MJ + bytes_j,
        bursts_s=sum(to_s - from_s for from_s, to_s in bursts),
    )


def _steps(from_s: float, to_s: float) -> list[tuple[float, float]]:
    """Divides a time into steps of `POWER_STEP_S`; the last step may be shorter."""
    count = math.ceil((to_s - from_s) / POWER_STEP_S)
    edges = [*(from_s + n * POWER_STEP_S for n in range(count)), to_s]
    return [pair for pair in itertools.pairwise(edges) if pair[0] < pair[1]]


@dataclass(slots=True)
class _LinkSums:
    active_s: float = 0.0
    transfer_mj: float = 0.0
    phases_mj: dict[Phase, float] = field(default_factory=lambda: dict.fromkeys(Phase, 0.0))


class _Sums:
    """Adds up millijoules over stretches of constant power."""

    def __init__(
        self,
        model: EnergyModel,
        radios: Mapping[str, Radio],
        end_s: float,
        processor: Sequence[tuple[float, float]],
    ) -> None:
        self.model, self.radios, self._end_s = model, radios, end_s
        self.base_mj = self.phone_mj = self.shared_mj = self.both_mj = 0.0
        self._processor = processor
        self.processor_mj = 0.0 if processor else None
        self.links = {name: _LinkSums() for name in radios}
        self.head_mj = 0.0
        for name, radio in radios.items():
            self.head_mj += radio.head_mj
            self.links[name].phases_mj[Phase.PROMOTION] += radio.head_mj

    def step(self, stretches: list[tuple[float, float]]) -> Power:
        """Adds consecutive stretches, and returns their mean power."""
        total_mj = 0.0
        links_mj = dict.fromkeys(self.links, 0.0)
        for from_s, to_s in stretches:
            drawn = self._links_mj(from_s, to_s)
            for name, mj in drawn.items():
                links_mj[name] += mj
            total_mj += self._common_mj(from_s, to_s) + sum(drawn.values())
        from_s, to_s = stretches[0][0], stretches[-1][1]
        length_s = to_s - from_s
        links_w = {name: mj * _J_PER_MJ / length_s for name, mj in links_mj.items()}
        return Power(from_s, length_s, total_mj * _J_PER_MJ / length_s, links_w)

    def _links_mj(self, from_s: float, to_s: float) -> dict[str, float]:
        middle_s, length_s = (from_s + to_s) / 2, to_s - from_s
        drawn = {}
        for name, radio in self.radios.items():
            now, sums = radio.at(middle_s), self.links[name]
            over = middle_s > self._end_s and now.phase is Phase.IDLE
            phase_mj = 0.0 if over else now.power_mw * length_s
            transfer_mj = radio.transfer_mw(middle_s) * length_s
            sums.phases_mj[now.phase] += phase_mj
            sums.transfer_mj += transfer_mj
            if now.phase is Phase.ACTIVE:
                sums.active_s += length_s
            drawn[name] = phase_mj + transfer_mj
        return drawn

    def _common_mj(self, from_s: float, to_s: float) -> float:
        middle_s, length_s = (from_s + to_s) / 2, to_s - from_s
        active = sum(one.at(middle_s).phase is Phase.ACTIVE for one in self.radios.values())
        base_mj = self.model.base_mw * length_s if middle_s < self._end_s else 0.0
        phone_mj = self.model.phone_mw * length_s
        shared_mj = self.model.shared_mw * length_s if active else 0.0
        both_mj = self.model.both_mw * max(0, active - 1) * length_s
        self.base_mj += base_mj
        self.phone_mj += phone_mj
        self.shared_mj += shared_mj
        self.both_mj += both_mj
        common_mj = base_mj + phone_mj + shared_mj + both_mj
        return common_mj + self._processor_mj(from_s, min(to_s, self._end_s))

    def _processor_mj(self, from_s: float, to_s: float) -> float:
        if self.processor_mj is None or to_s <= from_s:
            return 0.0
        busy_s = _between(self._processor, to_s) - _between(self._processor, from_s)
        self.processor_mj += self.model.processor_mw * busy_s
        return self.model.processor_mw * busy_s


def _between(sampled: Sequence[tuple[float, float]], t_s: float) -> float:
    """Returns the sampled value at a time, by linear interpolation."""
    after = bisect_right(sampled, t_s, key=lambda one: one[0])
    if after == 0 or after == len(sampled):
        return sampled[min(after, len(sampled) - 1)][1]
    (from_s, low), (to_s, high) = sampled[after - 1], sampled[after]
    return low + (high - low) * (t_s - from_s) / (to_s - from_s)


def _figures(
    sums: _Sums,
    power: list[Power],
    start_s: float,
    end_s: float,
    payload_bytes: int,
    idle_s: float,
) -> EnergyFigures:
    during = [one for one in power if one.t_s < end_s]
    main_j = sum(one.power_w * one.length_s for one in during) + sums.head_mj * _J_PER_MJ
    tail_j = sum(one.power_w * one.length_s for one in power[len(during) :])
    return EnergyFigures(
        model=sums.model.name,
        joules=main_j + tail_j,
        joules_per_byte=(main_j + tail_j) / payload_bytes,
        main_j=main_j,
        tail_j=tail_j,
        mean_w=main_j / (end_s - start_s),
        p90_w=_p90_w(during),
        peak_w=max(one.power_w for one in during),
        base_j=sums.base_mj * _J_PER_MJ,
        shared_j=sums.shared_mj * _J_PER_MJ,
        both_j=sums.both_mj * _J_PER_MJ,
        processor_j=None if sums.processor_mj is None else sums.processor_mj * _J_PER_MJ,
        phone_j=sums.phone_mj * _J_PER_MJ,
        window_s=idle_s - start_s,
        links={name: _link(one, sums.radios[name]) for name, one in sums.links.items()},
    )


def _p90_w(power: list[Power]) -> float:
    """Returns the least power that the device stayed at or below for 90 % of the time."""
    left_s = 0.9 * sum(one.length_s for one in power)
    ascending = sorted(power, key=lambda one: one.power_w)
    for one in ascending:
        left_s -= one.length_s
        if left_s <= 0:
            return one.power_w
    return ascending[-1].power_w


def _link(sums: _LinkSums, radio: Radio) -> LinkEnergyFigures:
    phases = sums.phases_mj
    return LinkEnergyFigures(
        joules=(sum(phases.values()) + sums.transfer_mj) * _J_PER_MJ,
        active_s=sums.active_s,
        active_j=phases[Phase.ACTIVE] * _J_PER_MJ,
        transfer_j=sums.transfer_mj * _J_PER_MJ,
        promotion_j=phases[Phase.PROMOTION] * _J_PER_MJ,
        tail_j=phases[Phase.TAIL] * _J_PER_MJ,
        idle_j=phases[Phase.IDLE] * _J_PER_MJ,
        down_bytes=radio.carried.down_bytes,
        up_bytes=radio.carried.up_bytes,
    )
