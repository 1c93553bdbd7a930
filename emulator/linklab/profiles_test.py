"""Tests every shipped scenario: its keys, its links, and what its source states about them."""

import functools
import math
import statistics
from dataclasses import replace

import pytest

from linklab import scenario
from linklab.core.frames import goodput_ratio
from linklab.links import oracle
from linklab.links.full_load import spans
from linklab.links.stack import models
from linklab.report import listing, publication
from linklab.scenario import Scenario

NAMES = scenario.names_in()
PAPERS = ("eMPTCP", "GreenBag", "MPTCP study", "super-aggregation")


@functools.cache
def shipped(name: str) -> Scenario:
    return scenario.find(name)


@functools.cache
def least_s(name: str, link: str | None = None) -> float:
    """What the payload takes over one link or, without a name, over both."""
    one = shipped(name)
    return oracle.oracle_s(one) if link is None else oracle.single_link_s(one, link)


@pytest.mark.parametrize("name", NAMES)
def test_each_says_what_it_is_and_can_be_carried_out(name: str) -> None:
    one = shipped(name)
    assert one.title
    assert one.source or one.description
    assert scenario.parse(scenario.to_yaml(one)) == one
    # In coarse steps, five times as fast as those of a run: walks and stations take seconds.
    assert 0.1 < oracle.oracle_s(replace(one, step_s=0.1)) < 300


@pytest.mark.parametrize("name", NAMES)
def test_what_comes_from_a_paper_is_stated_about_by_the_paper(name: str) -> None:
    one = shipped(name)
    if listing.publication(one) in PAPERS:
        assert publication.about(one)


def test_every_system_has_its_scenarios() -> None:
    counts = dict.fromkeys((*PAPERS, "thesis"), 0)
    for name in NAMES:
        whose = listing.publication(shipped(name))
        if whose in counts:
            counts[whose] += 1
    assert counts == {
        "eMPTCP": 16,
        "GreenBag": 15,
        "MPTCP study": 4,
        "super-aggregation": 4,
        "thesis": 7,
    }


@pytest.mark.parametrize("drops", range(5))
def test_greenbag_s_drops_leave_the_average_as_it_is(drops: int) -> None:
    """V-A4: stable with recovery, whatever their number; 110 % of 110 s, each from 6 to 25 s."""
    one = shipped(f"greenbag-drops-{drops}")
    assert len(one.events) == drops
    assert all(6 <= event.duration_s <= 25 for event in one.events)
    assert least_s(one.name) == pytest.approx(121, abs=0.2)


@pytest.mark.parametrize("ratio", [1, 3, 5])
@pytest.mark.parametrize(("kind", "share"), [("segments", 0.9), ("balance", 0.8)])
def test_greenbag_s_video_is_a_share_of_6_mbit(kind: str, share: float, ratio: int) -> None:
    one = shipped(f"greenbag-{kind}-1-{ratio}")
    wifi, lte = (link.down_rate_bps for link in one.links.values())
    assert (wifi + lte) * goodput_ratio() == pytest.approx(6e6, rel=1e-3)
    assert lte / wifi == pytest.approx(ratio, rel=1e-3)
    assert one.payload.size_bytes * 8 == pytest.approx(share * 6e6 * 40)


@pytest.mark.parametrize(
    ("name", "wifi", "lte"),
    [("stationary-1", 3.85, 5.16), ("stationary-2", 5.0, 4.07), ("mobile", 4.94, 4.72)],
)
def test_greenbag_s_averages_are_those_of_table_ii(name: str, wifi: float, lte: float) -> None:
    """Over the video's 117 s; Wi-Fi with its drops. LTE is a trace with that mean over all of it."""
    one = shipped(f"greenbag-{name}")
    got = 0.0
    for span in spans(one, 1, ["wifi"]):
        got += span.payload_bytes_per_s["wifi"] * (min(span.end_s, 117) - span.start_s) * 8
        if span.end_s >= 117:
            break
    assert got / 117e6 == pytest.approx(wifi, rel=2e-3)
    assert one.links["lte"].down_rate_bps * goodput_ratio() == pytest.approx(lte * 1e6, rel=2e-3)
    assert one.payload.size_bytes * 8 == pytest.approx(6.1e6 * 117, rel=1e-3)


def test_emptcp_s_ratios_follow_from_its_links() -> None:
    """What 5.3 says of Wi-Fi alone against both links: 6 times as long as MPTCP, which takes longer
    than both could."""
    bad = least_s("emptcp-16mb-bad-bad", "wifi") / least_s("emptcp-16mb-bad-bad")
    assert 6 < bad < 8
    good = least_s("emptcp-16mb-good-bad", "wifi") / least_s("emptcp-16mb-good-bad")
    assert good == pytest.approx(1.2, rel=0.05)


def test_emptcp_s_wifi_goes_on_and_off() -> None:
    """4.3: half of the time each, at no more than 1 and at 10 Mbit/s."""
    one = shipped("emptcp-on-off")
    on_s = []
    for seed in range(1, 101):
        model = models(one, seed)["wifi"]
        t_s, on = 0.0, 0.0
        while t_s < 400:
            rate = model.at(t_s).down_rate_bps
            assert rate in (1_000_000, 10_000_000)
            next_s = min(model.next_s(), 400.0)
            on += (next_s - t_s) * (rate == 10_000_000)
            t_s = next_s
        on_s.append(on)
    error_s = 4 * statistics.stdev(on_s) / math.sqrt(len(on_s))
    assert statistics.mean(on_s) == pytest.approx(200, abs=error_s)


def test_emptcp_s_walk_is_out_of_range_from_25_to_40_s_without_losing_the_access_point() -> None:
    """Figure 12 and 4.6: under the 1 Mbit/s of 4.2's bad Wi-Fi around the middle of it."""
    model = models(shipped("emptcp-mobility"), 1)["wifi"]
    rates = {}
    for tick in range(250 * 5):
        state = model.at(tick / 5)
        assert state.access_point == "ap1"
        assert state.up
        rates[tick / 5] = state.down_rate_bps
    assert max(rate for t_s, rate in rates.items() if 28 <= t_s <= 36) < 2_000_000
    assert rates[32.4] < 1_000_000
    in_range = [rate > 5_000_000 for rate in rates.values()]
    assert statistics.mean(in_range) > 0.7
    assert rates[5.0] > 10_000_000


def test_the_blackouts_take_a_fifth_of_the_time() -> None:
    one = shipped("superagg-blackout")
    assert [event.at_s for event in one.events] == [5.0 + 10 * turn for turn in range(20)]
    assert all(event.outage and event.duration_s == 2 for event in one.events)


def test_a_tenth_of_the_cafe_s_packets_waits_for_more_than_100_ms() -> None:
    """And 28 Mbit/s are left: what a packet waits is the rest of the pause in which it comes."""
    waits_s = left_s = 0.0
    for seed in range(1, 21):
        model = models(shipped("cafe"), seed)["wifi"]
        t_s, begun_s = 0.0, math.nan
        while t_s < 600:
            state = model.at(t_s)
            next_s = model.next_s()
            if state.hold_down and math.isnan(begun_s):
                begun_s = t_s
            elif not state.hold_down:
                if not math.isnan(begun_s):
                    waits_s += max(0.0, t_s - begun_s - 0.1)
                begun_s = math.nan
                left_s += next_s - t_s
            t_s = next_s
    assert waits_s / (20 * 600) == pytest.approx(0.1, abs=0.01)
    rate_bps = shipped("cafe").links["wifi"].down_rate_bps
    assert rate_bps * left_s / (20 * 600) == pytest.approx(28e6, rel=0.03)
