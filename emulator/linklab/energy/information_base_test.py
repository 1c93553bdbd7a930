"""Tests the table of eMPTCP and its meaning."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from linklab.core.link_kinds import KINDS, LTE, WIFI
from linklab.core.paths import REPOSITORY
from linklab.energy import library
from linklab.energy.information_base import joules_per_byte, power_mw, thresholds
from linklab.energy.model import EnergyModel, LinkEnergy

OF_THE_CLIENT: list[dict[str, Any]] = json.loads(
    (REPOSITORY / "client/internal/energy/testdata/information_base.json").read_text(
        encoding="utf-8"
    )
)
"""What multilink computes from the same models; Go's test writes it."""

S3 = library.get("galaxy-s3")

PUBLISHED = {0.5: (0.043, 0.234), 1.0: (0.134, 0.502), 1.5: (0.209, 0.803), 2.0: (0.304, 1.070)}
"""eMPTCP table 2, Mbit/s: LTE only below, Wi-Fi only from."""


COMES_OUT = [
    (lte_mbps, column)
    for lte_mbps in PUBLISHED
    for column in (0, 1)
    if (lte_mbps, column) != (0.5, 0)
]


@pytest.mark.parametrize(("lte_mbps", "column"), COMES_OUT)
def test_the_published_table_comes_out(lte_mbps: float, column: int) -> None:
    row = thresholds(S3, lte_mbps * 1e6)
    computed = (row.lte_only_below_bps, row.wifi_only_from_bps)[column] / 1e6
    published = PUBLISHED[lte_mbps][column]
    assert computed == pytest.approx(published, rel=0.15)
    others = [both[column] for other, both in PUBLISHED.items() if other != lte_mbps]
    assert abs(computed - published) < min(abs(computed - other) for other in others)


def test_the_first_published_threshold_does_not_come_out() -> None:
    """It is 0.086 of LTE's rate, the other three are 0.13 to 0.15 of it. The model has 0.15."""
    computed = thresholds(S3, 0.5e6).lte_only_below_bps / 1e6
    assert computed == pytest.approx(0.075, abs=0.001)
    assert computed > 1.7 * PUBLISHED[0.5][0]


@pytest.mark.parametrize("lte_mbps", [*PUBLISHED, 8.0, 60.0])
def test_how_phone_and_radios_share_the_322_mw_does_not_change_the_table(lte_mbps: float) -> None:
    """The fit to table 2 gives their sum alone."""
    together = replace(S3, phone_mw=0.0, shared_mw=322.0)
    assert S3.phone_mw > 0
    assert thresholds(S3, lte_mbps * 1e6) == thresholds(together, lte_mbps * 1e6)


def test_at_8_mbit_s_as_the_scenarios_need_it() -> None:
    row = thresholds(S3, 8e6)
    assert row.lte_only_below_bps == pytest.approx(1.2e6, rel=0.01)
    assert row.wifi_only_from_bps == pytest.approx(4.3e6, rel=0.02)


@pytest.mark.parametrize("name", library.names())
@pytest.mark.parametrize("lte_bps", [0.5e6, 2e6, 8e6, 60e6])
def test_thresholds_are_where_costs_are_equal(name: str, lte_bps: float) -> None:
    model = library.get(name)
    row = thresholds(model, lte_bps)
    for border, alone in ((row.lte_only_below_bps, LTE), (row.wifi_only_from_bps, WIFI)):
        if border == float("inf"):
            continue
        both = {WIFI: border, LTE: lte_bps}
        assert joules_per_byte(model, both) == pytest.approx(
            joules_per_byte(model, {alone: both[alone]})
        )
        faster = {WIFI: border * 1.1, LTE: lte_bps}
        better = joules_per_byte(model, faster) < joules_per_byte(model, {alone: faster[alone]})
        assert better == (alone is LTE)


@pytest.mark.parametrize(("wifi_mj", "finite"), [(99.5, True), (100.0, False), (100.5, False)])
def test_a_link_that_costs_more_per_bit_is_never_worth_it(wifi_mj: float, finite: bool) -> None:
    """LTE costs 100 mJ/Mbit at any rate, and Wi-Fi as much as stated and 10 mW."""
    links = {
        "wifi": LinkEnergy(active_mw=10, down_mj_per_mbit=wifi_mj),
        "lte": LinkEnergy(down_mj_per_mbit=100),
    }
    row = thresholds(EnergyModel("x", "x", "x", links), 1e6)
    assert row.lte_only_below_bps == (pytest.approx(20e6) if finite else math.inf)
    assert row.wifi_only_from_bps == (pytest.approx(20e6) if finite else math.inf)


@pytest.mark.parametrize(("links", "further"), [(1, 0), (2, 1), (3, 2), (4, 3)])
def test_both_counts_for_each_link_after_the_first(links: int, further: int) -> None:
    kinds = list(KINDS.values())[:links]
    model = EnergyModel(
        "x", "x", "x", {kind.name: LinkEnergy(active_mw=10) for kind in kinds}, both_mw=100
    )
    assert power_mw(model, dict.fromkeys(kinds, 1e6)) == 10 * links + 100 * further


def test_without_a_shared_part_both_links_are_never_worth_it() -> None:
    """The two lines coincide, as for GreenBag's phone."""
    additive = replace(S3, phone_mw=0.0, shared_mw=0.0)
    for model in (additive, library.get("galaxy-s2-hd-lte")):
        row = thresholds(model, 8e6)
        assert row.lte_only_below_bps == pytest.approx(row.wifi_only_from_bps)


@pytest.mark.parametrize(
    "row", OF_THE_CLIENT, ids=lambda row: f"{row['model']}-{row['lte_bps']:.0f}"
)
def test_multilink_has_the_same_numbers(row: dict[str, Any]) -> None:
    model = library.get(row["model"])
    wifi, lte = {WIFI: row["wifi_bps"]}, {LTE: row["lte_bps"]}
    borders = thresholds(model, row["lte_bps"])
    radio = model.link(LTE)
    woken = radio.promotion
    got = {
        "power_wifi_mw": power_mw(model, wifi),
        "power_lte_mw": power_mw(model, lte),
        "power_both_mw": power_mw(model, wifi | lte),
        "both_j_per_byte": joules_per_byte(model, wifi | lte),
        "lte_only_below_bps": borders.lte_only_below_bps,
        "wifi_only_from_bps": borders.wifi_only_from_bps,
        "lte_promotion_j": woken.power_mw * woken.time_s / 1e3 if woken else 0.0,
        "lte_tail_j": sum((one.power_mw - radio.idle_mw) * one.time_s / 1e3 for one in radio.tail),
        "lte_tail_s": radio.tail_s,
    }
    assert got == {
        key: pytest.approx(math.inf if row[key] is None else row[key], rel=1e-12) for key in got
    }


def test_multilink_knows_every_model() -> None:
    assert {row["model"] for row in OF_THE_CLIENT} == set(library.names())
