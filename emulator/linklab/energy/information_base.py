"""Computes eMPTCP's Energy Information Base: which links cost the least energy per byte. Pure.

eMPTCP 3.3 asks this for a long download with a given LTE rate. Below one Wi-Fi rate, LTE alone
costs least per byte. Above another, Wi-Fi alone does. Between the two, both links together do.

At each threshold both links together cost as much per byte as one alone. The model's powers are
linear in the rates, so the thresholds have a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from linklab.core.link_kinds import LTE, WIFI, LinkKind
from linklab.energy.model import EnergyModel


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The row of the table for an LTE rate; the thresholds are rates of Wi-Fi.

    Attributes:
        lte_only_below_bps: below this rate LTE alone costs least.
        wifi_only_from_bps: from this rate on Wi-Fi alone costs least (infinity: never).
    """

    lte_bps: float
    lte_only_below_bps: float
    wifi_only_from_bps: float


def power_mw(model: EnergyModel, rates_bps: dict[LinkKind, float]) -> float:
    """Computes a device's power while it downloads over these links at these rates."""
    links = [(model.link(kind), rate / 1e6) for kind, rate in rates_bps.items()]
    active = sum(link.active_mw + link.down_mj_per_mbit * mbps for link, mbps in links)
    return _common_mw(model) + model.both_mw * (len(links) - 1) + active


def _common_mw(model: EnergyModel) -> float:
    """Returns the power that belongs to no link. It is the same with one link and with several."""
    return model.base_mw + model.phone_mw + model.shared_mw


def joules_per_byte(model: EnergyModel, rates_bps: dict[LinkKind, float]) -> float:
    """Computes the energy per byte of a long download at these rates."""
    return power_mw(model, rates_bps) * 1e-3 * 8 / sum(rates_bps.values())


def thresholds(model: EnergyModel, lte_bps: float) -> Thresholds:
    """Returns the row for an LTE rate. Raises KeyError if the model lacks Wi-Fi or LTE."""
    return Thresholds(
        lte_bps,
        lte_only_below_bps=_worth_adding_from_bps(
            model, WIFI, power_mw(model, {LTE: lte_bps}), lte_bps
        ),
        wifi_only_from_bps=_worth_until_bps(model, lte_bps),
    )


def table(model: EnergyModel, lte_bps: Sequence[float]) -> list[Thresholds]:
    return [thresholds(model, rate) for rate in lte_bps]


def _worth_adding_from_bps(
    model: EnergyModel, kind: LinkKind, alone_mw: float, alone_bps: float
) -> float:
    """Returns the rate of a second link from which adding it lowers the energy per megabit."""
    added = model.link(kind)
    margin_mj = alone_mw / (alone_bps / 1e6) - added.down_mj_per_mbit
    return (model.both_mw + added.active_mw) / margin_mj * 1e6 if margin_mj > 0 else math.inf


def _worth_until_bps(model: EnergyModel, lte_bps: float) -> float:
    """Returns the Wi-Fi rate from which Wi-Fi alone costs less per megabit than LTE adds."""
    lte, wifi = model.link(LTE), model.link(WIFI)
    added_mj = (model.both_mw + lte.active_mw) / (lte_bps / 1e6) + lte.down_mj_per_mbit
    margin_mj = added_mj - wifi.down_mj_per_mbit
    fixed_mw = _common_mw(model) + wifi.active_mw
    return fixed_mw / margin_mj * 1e6 if margin_mj > 0 else math.inf
