"""Tests schedules whose optimum is known."""

from dataclasses import replace

import pytest

from linklab.core.link_kinds import LTE, WIFI
from linklab.energy import library
from linklab.energy.path_schedule import RateChain, Use, by_the_second, level, schedule

S3 = library.get("galaxy-s3")


def test_levels_are_octaves() -> None:
    assert [level(rate) for rate in (0, 62_499, 62_500, 124_999, 125_000, 8e6)] == [
        0,
        0,
        1,
        1,
        2,
        8,
    ]


def test_a_course_is_learnt_from_rates() -> None:
    chain = RateChain([1e6, 1e6, 10e6, 1e6, 1e6, 12e6])
    slow, fast = level(1e6), level(10e6)
    assert (chain.usual, set(chain.next)) == (slow, {slow, fast})
    assert chain.next[slow] == {slow: 0.5, fast: 0.5}
    assert chain.next[fast] == {slow: 1.0}
    assert chain.rates_bps == {slow: 1e6, fast: 11e6}
    assert [chain.known(rate) for rate in (0.1e6, 1e6, 200e6)] == [slow, slow, fast]
    with pytest.raises(ValueError, match="no rate"):
        RateChain([])


@pytest.mark.parametrize("wifi", [[12e6], [0.8e6], [1e6] * 40 + [10e6] * 40, [0.0]])
def test_on_the_paper_s_phone_it_is_wifi_alone_whatever_that_brings(wifi: list[float]) -> None:
    """As the paper found (eMPTCP 4.6), LTE at 8 Mbit/s: its radio is never woken."""
    found = schedule(S3, RateChain(wifi), RateChain([8e6]))
    assert {use for (*_, awake), use in found.items() if not awake} == {Use.WIFI}


def test_where_lte_draws_less_it_is_lte_once_it_pays_to_wake_it() -> None:
    wifi = replace(S3.link(WIFI), active_mw=2000.0)
    hungry = replace(S3, links={**S3.links, "wifi": wifi})
    found = schedule(hungry, RateChain([12e6]), RateChain([1e6]))
    assert set(found.values()) == {Use.LTE}


def test_an_lte_that_costs_much_to_wake_is_used_only_while_it_is_awake() -> None:
    wifi = replace(S3.link(WIFI), active_mw=2000.0)
    lte = S3.link(LTE)
    assert lte.promotion is not None
    dear = replace(lte, promotion=replace(lte.promotion, power_mw=1e9))
    found = schedule(
        replace(S3, links={**S3.links, "wifi": wifi, "lte": dear}),
        RateChain([12e6]),
        RateChain([1e6]),
    )
    assert {use for (*_, awake), use in found.items() if not awake} == {Use.WIFI}
    assert {use for (*_, awake), use in found.items() if awake} == {Use.LTE}


def test_an_lte_that_is_awake_is_kept_for_a_short_while() -> None:
    """Wi-Fi that draws more than LTE for a second in four: to fall asleep costs the tail each time."""
    wifi = replace(S3.link(WIFI), active_mw=600.0, down_mj_per_mbit=300.0)
    hungry = replace(S3, links={**S3.links, "wifi": wifi})
    slow, fast = level(1e6), level(3e6)
    found = schedule(hungry, RateChain([1e6, 1e6, 1e6, 3e6] * 20), RateChain([1e6]))
    assert found[fast, level(1e6), True] is Use.LTE
    assert found[slow, level(1e6), True] is Use.LTE
    assert found[slow, level(1e6), False] is Use.WIFI


def test_rates_by_the_second() -> None:
    spans = [(0.0, 0.5, 8.0), (0.5, 2.25, 4.0), (2.25, float("inf"), 2.0)]
    assert by_the_second(spans, 4) == pytest.approx([6.0, 4.0, 2.5, 2.0])
