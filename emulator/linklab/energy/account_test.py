"""Tests energies against sums computed by hand."""

from dataclasses import fields, replace

import pytest

from linklab.core.link_kinds import LTE, WIFI
from linklab.energy.account import Account, EnergyFigures, account
from linklab.energy.activity import Activity, Counted, RadioState
from linklab.energy.model import EnergyModel, LinkEnergy, Promotion, TailState

MBIT = 125_000

WIFI_ONLY = LinkEnergy(active_mw=400, down_mj_per_mbit=10, up_mj_per_mbit=100)
LTE_WITH_ALL = LinkEnergy(
    active_mw=1000,
    down_mj_per_mbit=20,
    idle_mw=10,
    promotion=Promotion(1200, 0.25),
    tail=(TailState(600, 1.0, "short"), TailState(300, 2.0, "long")),
)
MODEL = EnergyModel(
    "test",
    "a phone",
    "by hand",
    {"wifi": WIFI_ONLY, "lte": LTE_WITH_ALL},
    base_mw=700,
    shared_mw=50,
    both_mw=-30,
)


def carried(*samples: tuple[float, float, float]) -> tuple[Counted, ...]:
    """Counters at t, in Mbit down and up, from nothing at 0."""
    return tuple(
        Counted(t, round(down * MBIT), round(up * MBIT))
        for t, down, up in ((0.0, 0.0, 0.0), *samples)
    )


def of(start_s: float = 0.0, end_s: float = 4.0, **links: Activity) -> Account:
    return account(MODEL, links, start_s=start_s, end_s=end_s, payload_bytes=1_000_000)


def assert_adds_up(one: Account) -> None:
    figures = one.figures
    parts = sum(link.joules for link in figures.links.values())
    common = figures.base_j + figures.phone_j + figures.shared_j + figures.both_j
    assert figures.joules == pytest.approx(parts + common + (figures.processor_j or 0.0))
    assert figures.joules == pytest.approx(figures.main_j + figures.tail_j)


def test_one_link() -> None:
    one = of(wifi=Activity(WIFI, carried((1, 8, 0.5), (2, 16, 1), (4, 16, 1))))
    figures = one.figures
    assert figures.base_j == pytest.approx(4 * 0.7)
    assert figures.shared_j == pytest.approx(2 * 0.05)
    assert figures.both_j == 0
    wifi = figures.links["wifi"]
    assert wifi.active_s == pytest.approx(2)
    assert (wifi.down_bytes, wifi.up_bytes) == (16 * MBIT, 1 * MBIT)
    assert wifi.active_j == pytest.approx(0.8)
    assert wifi.transfer_j == pytest.approx(16 * 0.010 + 1 * 0.100)
    assert wifi.tail_j == wifi.promotion_j == figures.tail_j == 0
    assert figures.joules_per_byte == pytest.approx(figures.joules / 1e6)
    assert figures.mean_w == pytest.approx(figures.joules / 4)
    assert figures.peak_w == figures.p90_w == pytest.approx(0.7 + 0.05 + 0.4 + 8 * 0.01 + 0.05)
    assert [p.power_w for p in one.power[-4:]] == pytest.approx([0.7] * 4)
    assert_adds_up(one)


def test_both_links_and_a_tail_after_the_download() -> None:
    one = of(
        wifi=Activity(WIFI, carried((4, 4, 0))), lte=Activity(LTE, carried((1, 5, 0), (4, 5, 0)))
    )
    figures = one.figures
    assert figures.shared_j == pytest.approx(4 * 0.05)
    assert figures.both_j == pytest.approx(1 * -0.03)
    lte = figures.links["lte"]
    assert lte.active_j == pytest.approx(1.0)
    # It woke before the download, for which there is no time in the records.
    assert lte.promotion_j == pytest.approx(0.25 * 1.2)
    assert lte.tail_j == pytest.approx(0.6 + 2 * 0.3)
    assert lte.idle_j == 0
    assert figures.tail_j == pytest.approx(0)
    assert_adds_up(one)

    late = of(wifi=Activity(WIFI, carried((4, 4, 0))), lte=Activity(LTE, carried((4, 5, 0))))
    assert late.figures.tail_j == pytest.approx(0.6 + 2 * 0.3)
    assert late.power[-1].t_s + late.power[-1].length_s == pytest.approx(7)
    assert [p.power_w for p in late.power if p.t_s >= 4] == pytest.approx([0.6] * 2 + [0.3] * 4)
    assert_adds_up(late)


def test_the_power_of_each_link_is_a_mean_over_half_a_second() -> None:
    """Wi-Fi carries 1 Mbit/s. LTE carries 4 Mbit/s for 1.25 s, and then is in its tail."""
    power = of(
        wifi=Activity(WIFI, carried((4, 4, 0))),
        lte=Activity(LTE, carried((1.25, 5, 0), (4, 5, 0))),
    ).power
    assert [(one.t_s, one.length_s) for one in power[:3]] == [(0.0, 0.5), (0.5, 0.5), (1.0, 0.5)]
    lte_w = [1.0 + 4 * 0.020, 1.0 + 4 * 0.020, (1.0 + 4 * 0.020 + 0.6) / 2, 0.6]
    assert [one.links_w["lte"] for one in power[:4]] == pytest.approx(lte_w)
    assert [one.links_w["wifi"] for one in power[:8]] == pytest.approx([0.4 + 0.010] * 8)
    # Both are active for half of the third step.
    assert power[2].power_w == pytest.approx(0.7 + 0.05 - 0.03 / 2 + 0.410 + lte_w[2])


def test_for_90_percent_of_the_time_the_device_drew_at_most_p90() -> None:
    """A step at 16 Mbit/s, two at 4 Mbit/s, and seven without Wi-Fi."""
    wifi = Activity(WIFI, carried((0.5, 8, 0), (1.5, 12, 0), (5, 12, 0)))
    figures = of(end_s=5.0, wifi=wifi).figures
    assert figures.p90_w == pytest.approx(0.7 + 0.05 + 0.4 + 4 * 0.010)
    assert figures.peak_w == pytest.approx(0.7 + 0.05 + 0.4 + 16 * 0.010)


def test_the_phone_goes_on_until_its_radios_sleep() -> None:
    late = {
        "wifi": Activity(WIFI, carried((4, 4, 0))),
        "lte": Activity(LTE, carried((4, 5, 0))),
    }
    model = replace(MODEL, phone_mw=200.0)
    one = account(model, late, start_s=0, end_s=4, payload_bytes=1_000_000)
    without, figures = of(wifi=late["wifi"], lte=late["lte"]).figures, one.figures
    assert figures.window_s == pytest.approx(4 + 3)
    assert figures.phone_j == pytest.approx(7 * 0.2)
    assert figures.main_j == pytest.approx(without.main_j + 4 * 0.2)
    assert figures.tail_j == pytest.approx(without.tail_j + 3 * 0.2)
    assert [p.power_w for p in one.power if p.t_s >= 4] == pytest.approx([0.8] * 2 + [0.5] * 4)
    assert_adds_up(one)


def test_the_phone_s_share_counts_for_a_longer_time_and_nothing_else_does() -> None:
    late = {"lte": Activity(LTE, carried((4, 5, 0)))}
    model = replace(MODEL, phone_mw=200.0)
    one = account(model, late, start_s=0, end_s=4, payload_bytes=1_000_000)
    longer = replace(one, figures=one.figures.over(10.0))
    assert longer.figures.window_s == pytest.approx(10)
    assert longer.figures.phone_j == pytest.approx(10 * 0.2)
    assert longer.figures.main_j == one.figures.main_j
    assert longer.figures.tail_j == pytest.approx(one.figures.tail_j + 3 * 0.2)
    assert longer.figures.joules_per_byte == pytest.approx(longer.figures.joules / 1e6)
    assert_adds_up(longer)
    figures = of(lte=late["lte"]).figures
    assert figures.over(10.0) == figures, "a model without the term"


def test_the_download_alone_has_no_tail() -> None:
    late = {"lte": Activity(LTE, carried((4, 5, 0)))}
    model = replace(MODEL, phone_mw=200.0)
    one = account(model, late, start_s=0, end_s=4, payload_bytes=1_000_000).figures
    alone = one.until_the_end(4.0, 500_000)
    assert (alone.joules, alone.tail_j, alone.window_s) == (one.main_j, 0.0, 4.0)
    assert alone.phone_j == pytest.approx(4 * 0.2)
    assert alone.joules_per_byte == pytest.approx(one.main_j / 500_000)


def test_figures_of_an_earlier_linklab_have_no_phone_and_no_window() -> None:
    one = of(lte=Activity(LTE, carried((4, 5, 0)))).figures
    known = {name: getattr(one, name) for name in (part.name for part in fields(one))}
    del known["phone_j"], known["window_s"]
    earlier = EnergyFigures(**known)
    assert (earlier.phone_j, earlier.window_s) == (0.0, 0.0)
    assert earlier.until_the_end(4.0, 1).phone_j == 0.0
    assert earlier.over(10.0) == earlier


def test_each_active_link_after_the_first_counts() -> None:
    """Of three links for 2 s, of two for 1 s more, and of one for the last second."""
    figures = of(
        wifi=Activity(WIFI, carried((4, 4, 0))),
        lan=Activity(WIFI, carried((3, 4, 0), (4, 4, 0))),
        lte=Activity(LTE, carried((2, 5, 0), (4, 5, 0))),
    ).figures
    assert figures.both_j == pytest.approx((2 * 2 + 1 * 1) * -0.03)
    assert figures.shared_j == pytest.approx(4 * 0.05)


def test_only_bursts_count_in_the_energy_of_bursts() -> None:
    """Wi-Fi is active from 0 to 1 s and from 3 to 4 s, LTE from 3 to 4 s."""
    links = {
        "wifi": Activity(WIFI, carried((1, 4, 0), (3, 4, 0), (4, 8, 1))),
        "lte": Activity(LTE, carried((3, 0, 0), (4, 5, 0))),
    }
    bursts = [(-1.0, 0.25), (2.0, 2.0), (3.5, 9.0)]
    model = replace(MODEL, processor_mw=500.0)
    used = [(0.0, 0.0), (0.5, 0.1), (3.0, 1.5), (4.0, 2.0)]
    one = account(
        model, links, start_s=0, end_s=4, payload_bytes=1, processor=used, bursts=bursts
    ).figures
    assert one.bursts_s == pytest.approx(0.25 + 0.5)
    assert one.bursts_processor_j == pytest.approx(0.5 * (0.1 + 0.5))
    bytes_j = 8 * 0.010 + 1 * 0.100 + 5 * 0.020
    wifi_j, both_j = 0.25 * (0.7 + 0.05 + 0.4 + 0.010), 0.5 * (0.7 + 0.05 - 0.03 + 0.4 + 1.0)
    assert one.bursts_j == pytest.approx(wifi_j + both_j + bytes_j + 0.5 * 0.6)
    without = account(model, links, start_s=0, end_s=4, payload_bytes=1, processor=used).figures
    assert (without.bursts_j, without.bursts_processor_j, without.bursts_s) == (None, None, None)
    assert replace(one, bursts_j=None, bursts_processor_j=None, bursts_s=None) == without


def test_a_burst_as_long_as_the_download_has_all_but_the_tail() -> None:
    late = {"lte": Activity(LTE, carried((4, 5, 0)))}
    model = replace(MODEL, phone_mw=200.0)
    one = account(model, late, start_s=0, end_s=4, payload_bytes=1, bursts=[(0.0, 4.0)]).figures
    assert one.tail_j > 0
    assert one.bursts_j == pytest.approx(one.main_j)
    assert one.bursts_processor_j is None
    silent = {"wifi": Activity(WIFI, carried((4, 0, 0)))}
    model = replace(MODEL, processor_mw=500.0)
    used = [(0.0, 0.0), (4.0, 2.0)]
    none = account(
        model, silent, start_s=0, end_s=4, payload_bytes=1, processor=used, bursts=[]
    ).figures
    assert (none.bursts_j, none.bursts_processor_j, none.bursts_s) == (0, 0, 0)


def test_a_gap_is_part_of_the_tail_and_a_long_one_ends_in_sleep_and_promotion() -> None:
    lte = Activity(LTE, carried((1, 5, 0), (2.5, 5, 0), (3, 6, 0), (9, 6, 0), (10, 7, 0)))
    figures = of(end_s=10, lte=lte).figures
    part = figures.links["lte"]
    assert part.active_s == pytest.approx(2.5)
    # 1 to 2.5: 1 s short, .5 s long. 3 to 6: both. 6 to 8.75 idle, .25 s promotion. After 10: both.
    assert part.tail_j == pytest.approx(0.6 + 0.5 * 0.3 + 2 * (0.6 + 0.6))
    assert part.idle_j == pytest.approx(2.75 * 0.01)
    assert part.promotion_j == pytest.approx(2 * 0.25 * 1.2)
    assert figures.tail_j == pytest.approx(1.2)


def test_the_radio_s_states_count_where_they_are_known() -> None:
    states = (
        *(RadioState(0.0, "idle"), RadioState(0.5, "promotion")),
        *(RadioState(0.9, "connected"), RadioState(1.4, "drx"), RadioState(2.9, "idle")),
    )
    part = of(lte=Activity(LTE, carried((1, 1, 0), (4, 1, 0)), states)).figures.links["lte"]
    assert part.active_s == pytest.approx(0.5)
    assert part.promotion_j == pytest.approx(0.4 * 1.2)
    assert part.tail_j == pytest.approx(0.6 + 0.5 * 0.3)
    assert part.idle_j == pytest.approx((0.5 + 1.1) * 0.01)
    assert part.transfer_j == pytest.approx(1 * 0.02)


def test_a_radio_that_wakes_as_the_download_ends_is_awake_after_its_promotion() -> None:
    waking = Activity(
        LTE, carried((4, 0, 0)), (RadioState(0.0, "idle"), RadioState(3.9, "promotion"))
    )
    figures = of(lte=waking, other=Activity(LTE, carried((4, 1, 0)))).figures
    part = figures.links["lte"]
    assert part.promotion_j == pytest.approx(0.25 * 1.2)
    assert part.tail_j == pytest.approx(0.6 + 2 * 0.3)
    assert part.idle_j == pytest.approx(3.9 * 0.01)
    long = Activity(
        LTE, carried((4, 0, 0)), (RadioState(0.0, "idle"), RadioState(3.5, "promotion"))
    )
    assert of(lte=long).figures.links["lte"].promotion_j == pytest.approx(0.5 * 1.2)


def test_only_the_download_counts_and_its_last_sample_may_come_later() -> None:
    wifi = Activity(WIFI, carried((0.5, 0, 0), (1.5, 2, 0), (2.5, 4, 0)))
    figures = of(start_s=0.5, end_s=2.0, wifi=wifi).figures
    assert figures.base_j == pytest.approx(1.5 * 0.7)
    assert figures.window_s == pytest.approx(1.5)
    assert figures.mean_w == pytest.approx(figures.joules / 1.5)
    assert figures.links["wifi"].active_s == pytest.approx(1.5)
    assert figures.links["wifi"].transfer_j == pytest.approx(4 * 0.01)


def test_what_is_no_download_and_what_the_model_does_not_know_is_refused() -> None:
    wifi = Activity(WIFI, carried((1, 1, 0)))
    with pytest.raises(ValueError, match="no download"):
        of(end_s=0, wifi=wifi)
    with pytest.raises(ValueError, match="0 bytes in 1 s are no download"):
        account(MODEL, {"wifi": wifi}, start_s=0, end_s=1, payload_bytes=0)
    only_lte = EnergyModel("half", "x", "y", {"lte": LTE_WITH_ALL})
    with pytest.raises(ValueError, match="half does not know Wi-Fi"):
        account(only_lte, {"wifi": wifi}, start_s=0, end_s=1, payload_bytes=1)


def test_the_processor_counts_where_it_was_measured() -> None:
    wifi = {"wifi": Activity(WIFI, carried((4, 4, 0)))}
    model = replace(MODEL, processor_mw=500.0)
    used = [(0.1, 3.0), (1.1, 3.5), (2.1, 3.5), (4.5, 5.9)]
    one = account(model, wifi, start_s=0, end_s=4, payload_bytes=1, processor=used)
    without = account(model, wifi, start_s=0, end_s=4, payload_bytes=1)
    assert without.figures.processor_j is None, "in virtual time it is not known, and not 0"
    assert (
        account(
            MODEL, wifi, start_s=0, end_s=4, payload_bytes=1, processor=used
        ).figures.processor_j
        is None
    ), "a model without the term"
    # Half a second in the first, none in the next, all of the time from 2.1 s until the end.
    assert one.figures.processor_j == pytest.approx(0.5 * (0.5 + 1.9))
    assert one.figures.joules - without.figures.joules == pytest.approx(0.5 * 2.4)
    assert one.power[-1].power_w - without.power[-1].power_w == pytest.approx(0.5)
    # From 0.1 s to 0.5 s it is busy for half of the time.
    assert one.power[0].power_w - without.power[0].power_w == pytest.approx(0.5 * 0.2 / 0.5)
    assert_adds_up(one)
    ends_early = [(0.0, 0.0), (2.0, 1.0), (3.0, 2.0)]
    early = account(model, wifi, start_s=0, end_s=4, payload_bytes=1, processor=ends_early)
    assert early.figures.processor_j == pytest.approx(0.5 * 2.0)
