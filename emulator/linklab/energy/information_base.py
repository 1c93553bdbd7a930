"""The Energy Information Base of eMPTCP: which links cost least per byte, from a model. Pure.

eMPTCP 3.3 asks, for a long download over LTE at one rate, below which Wi-Fi rate LTE alone costs
least per byte, and from which on Wi-Fi alone does; between them both together do. With a model
whose powers are linear in the rates both follow in closed form: where both links together cost as
much per byte as the one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from linklab.core.link_kinds import LTE, WIFI, LinkKind
from linklab.energy.model import EnergyModel


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A row of the table, rates in bit/s: LTE alone below `lte_only_below_bps` of Wi-Fi, Wi-Fi
    alone from `wifi_only_from_bps` on (infinity: never), both between."""

    lte_bps: float
    lte_only_below_bps: float
    wifi_only_from_bps: float


def power_mw(model: EnergyModel, rates_bps: dict[LinkKind, float]) -> float:
    """What a device draws that downloads at these rates over these links at a time."""
    links = [(model.link(kind), rate / 1e6) for kind, rate in rates_bps.items()]
    active = sum(link.active_mw + link.down_mj_per_mbit * mbps for link, mbps in links)
    return model.base_mw + model.shared_mw + model.both_mw * (len(links) - 1) + active


def joules_per_byte(model: EnergyModel, rates_bps: dict[LinkKind, float]) -> float:
    """What a byte of a long download costs."""
    return power_mw(model, rates_bps) * 1e-3 * 8 / sum(rates_bps.values())


def thresholds(model: EnergyModel, lte_bps: float) -> Thresholds:
    """The row for a rate of LTE. Raises KeyError where the model does not know a kind of link."""
    return Thresholds(
        lte_bps,
        lte_only_below_bps=_worth_adding_from_bps(
            model, WIFI, power_mw(model, {LTE: lte_bps}), lte_bps
        ),
        wifi_only_from_bps=_worth_until_bps(model, lte_bps),
    )


def table(model: EnergyModel, lte_bps: Sequence[float]) -> list[Thresholds]:
    """The rows for several rates of LTE."""
    return [thresholds(model, rate) for rate in lte_bps]


def _worth_adding_from_bps(
    model: EnergyModel, kind: LinkKind, alone_mw: float, alone_bps: float
) -> float:
    """The rate from which a further link adds less per megabit than one costs that is there."""
    added = model.link(kind)
    margin_mj = alone_mw / (alone_bps / 1e6) - added.down_mj_per_mbit
    return (model.both_mw + added.active_mw) / margin_mj * 1e6 if margin_mj > 0 else math.inf


def _worth_until_bps(model: EnergyModel, lte_bps: float) -> float:
    """The rate of Wi-Fi from which a megabit over it alone costs less than LTE adds for its own."""
    lte, wifi = model.link(LTE), model.link(WIFI)
    added_mj = (model.both_mw + lte.active_mw) / (lte_bps / 1e6) + lte.down_mj_per_mbit
    margin_mj = added_mj - wifi.down_mj_per_mbit
    fixed_mw = model.base_mw + model.shared_mw + wifi.active_mw
    return fixed_mw / margin_mj * 1e6 if margin_mj > 0 else math.inf
