"""Computes the schedule of links with the least energy, as a Markov decision process. Pure.

There is one decision a second (eMPTCP 4.6, after Pluntke et al.). A state is the level of each
link's rate, and whether the LTE radio is awake. The transitions of the rates are learnt from other
runs.

The schedule minimises the energy of the coming seconds, not the energy per byte. So it prefers the
link that draws less power, even if that link carries little.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Final

from linklab.core.link_kinds import LTE, WIFI, LinkKind
from linklab.energy.information_base import power_mw
from linklab.energy.model import EnergyModel

DISCOUNT: Final = 0.95
"""The weight of a joule that is spent one second later. So about 20 s ahead matter."""

_CLOSE_J: Final = 1e-6
_KINDS: Final[dict[str, LinkKind]] = {kind.name: kind for kind in (WIFI, LTE)}
_WIFI, _LTE = _KINDS


class Use(Enum):
    """The links that carry data."""

    WIFI = frozenset({_WIFI})
    LTE = frozenset({_LTE})
    BOTH = frozenset({_WIFI, _LTE})


State = tuple[int, int, bool]
"""The levels of Wi-Fi's and LTE's rates, and whether LTE is awake."""


def level(rate_bps: float) -> int:
    """Returns the level of a rate: one level an octave, 0 below 62.5 kbit/s."""
    return max(0, math.floor(math.log2(max(rate_bps, 1.0) / 62_500)) + 1)


class RateChain:
    """A Markov chain of a link's rate from second to second, learnt from recorded rates."""

    def __init__(self, rates_bps: Sequence[float]) -> None:
        """Learns the chain. Raises ValueError if there are no rates."""
        if not rates_bps:
            raise ValueError("no rate to learn from")
        levels = [level(one) for one in rates_bps]
        counts = Counter(levels)
        self.usual = counts.most_common(1)[0][0]
        self.rates_bps = {
            one: sum(rate for rate, of in zip(rates_bps, levels, strict=True) if of == one) / count
            for one, count in counts.items()
        }
        steps: dict[int, Counter[int]] = {one: Counter() for one in counts}
        for before, after in pairwise(levels):
            steps[before][after] += 1
        self.next = {
            one: {to: count / found.total() for to, count in found.items()} or {one: 1.0}
            for one, found in steps.items()
        }

    def known(self, rate_bps: float) -> int:
        """Returns the learnt level that is nearest to a rate."""
        return min(self.next, key=lambda one: abs(one - level(rate_bps)))


def _cost_j(model: EnergyModel, use: Use, rates_bps: Mapping[str, float], awake: bool) -> float:
    """Computes the energy of a second, with LTE's promotion or tail."""
    used = {_KINDS[name]: rates_bps[name] for name in use.value}
    spent_j = power_mw(model, used) * 1e-3
    lte = model.link(LTE)
    if _LTE in use.value and not awake and lte.promotion is not None:
        spent_j += lte.promotion.power_mw * lte.promotion.time_s * 1e-3
    if awake and _LTE not in use.value:
        spent_j += sum(one.power_mw * one.time_s for one in lte.tail) * 1e-3
    return spent_j


def schedule(model: EnergyModel, wifi: RateChain, lte: RateChain) -> dict[State, Use]:
    """Computes the links to use in each state, by value iteration.

    Raises KeyError if the model lacks Wi-Fi or LTE.
    """
    states: list[State] = [
        (one, other, awake) for one in wifi.next for other in lte.next for awake in (False, True)
    ]
    costs = {
        (state, use): _cost_j(
            model,
            use,
            {_WIFI: wifi.rates_bps[state[0]], _LTE: lte.rates_bps[state[1]]},
            state[2],
        )
        for state in states
        for use in Use
    }
    values = dict.fromkeys(states, 0.0)
    while True:
        ahead = {
            (one, other, awake): _expected(values, wifi.next[one], lte.next[other], awake)
            for one, other, awake in states
        }

        def cost(state: State, use: Use, ahead: Mapping[State, float] = ahead) -> float:
            after = ahead[state[0], state[1], _LTE in use.value]
            return costs[state, use] + DISCOUNT * after

        best = {state: min(Use, key=lambda use, at=state: cost(at, use)) for state in states}  # type: ignore[misc]
        found = {state: cost(state, use) for state, use in best.items()}
        if max(abs(found[state] - values[state]) for state in states) < _CLOSE_J:
            return best
        values = found


def _expected(
    values: Mapping[State, float],
    wifi: Mapping[int, float],
    lte: Mapping[int, float],
    awake: bool,
) -> float:
    return sum(
        chance * other_chance * values[one, other, awake]
        for one, chance in wifi.items()
        for other, other_chance in lte.items()
    )


def by_the_second(spans: Iterable[tuple[float, float, float]], length_s: int) -> list[float]:
    """Returns the mean rate of each of the first `length_s` seconds.

    `spans` are tuples of start, end and rate.
    """
    sums = [0.0] * length_s
    for start_s, end_s, rate_bps in spans:
        if start_s >= length_s:
            break
        last_s = min(end_s, float(length_s))
        for second in range(math.floor(start_s), math.ceil(last_s)):
            sums[second] += rate_bps * max(0.0, min(last_s, second + 1) - max(start_s, second))
    return sums
