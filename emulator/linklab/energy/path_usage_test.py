"""Tests eMPTCP's decisions against values computed by hand for its own phone.

With LTE at 5 Mbit/s, the assumed rate of an unknown link, Wi-Fi alone costs least from 2.7 Mbit/s
on. With LTE at 8 Mbit/s it does from 4.3 Mbit/s on.
"""

import pytest

from linklab.energy import library
from linklab.energy.information_base import thresholds
from linklab.energy.path_usage import (
    KAPPA_BYTES,
    PHI,
    HighestRate,
    HoltWinters,
    Observation,
    PathUsage,
    RateForecast,
    settling_s,
)

S3 = library.get("galaxy-s3")
ONLY_WIFI = "name: x\ndevice: x\nsource: x\nlinks: {wifi: {active: 1 mW}}\n"
AT_5, AT_8 = (thresholds(S3, lte).wifi_only_from_bps for lte in (5e6, 8e6))


def seen(
    wifi: float | None,
    lte: float | None = None,
    *,
    most: int = 2 * KAPPA_BYTES,
    open_s: float = 10.0,
    idle: bool = False,
) -> Observation:
    return Observation(wifi, lte, most_bytes=most, open_s=open_s, rtt_s=0.1, is_idle=idle)


@pytest.fixture(params=[True, False], ids=["forecast", "highest"])
def usage(request: pytest.FixtureRequest) -> PathUsage:
    """By each estimate of LTE's rate."""
    return PathUsage(S3, forecasts_lte=request.param)


def published() -> PathUsage:
    return PathUsage(S3, forecasts_lte=True)


def after(usage: PathUsage, *looks: Observation) -> bool:
    return [usage.look(one) for one in looks][-1]


def test_holt_and_winters_by_hand() -> None:
    one = HoltWinters()
    assert one.next_bps == 0
    one.add(10.0)
    assert one.next_bps == 10
    one.add(20.0)  # level .8·20 + .2·10 = 18, trend .2·8 + .8·0 = 1.6
    assert one.next_bps == pytest.approx(19.6)
    one.add(20.0)  # level .8·20 + .2·19.6 = 19.92, trend .2·1.92 + .8·1.6 = 1.664
    assert one.next_bps == pytest.approx(21.584)
    one.add(10.0)  # level .8·10 + .2·21.584 = 12.3168, trend .2·-7.6032 + .8·1.664 = -.18944
    assert one.next_bps == pytest.approx(12.12736)


def test_a_forecast_is_never_below_nothing() -> None:
    one = HoltWinters()
    for sample in (10.0, 10.0, 5.0, 0.0, 0.0, 0.0):
        one.add(sample)
    assert one.level_bps + one.trend_bps < 0
    assert one.next_bps == 0


def test_the_old_forecast_counts_until_there_are_enough_samples_anew() -> None:
    link = RateForecast()
    for count in range(PHI):
        assert (link.known_bps, link.settled) == (5e6, False), count
        link.add(8e6)
    assert link.known_bps == pytest.approx(8e6)
    link.pause()
    for _ in range(PHI - 1):
        link.add(1e6)
    assert link.known_bps == pytest.approx(8e6)
    assert not link.settled
    link.add(1e6)
    assert link.settled


def test_old_samples_are_used_together_with_new_ones() -> None:
    """eMPTCP 3.2, of a link that was deactivated."""
    link, all_samples = RateForecast(), HoltWinters()
    for sample in (8e6, 6e6, *[7e6] * PHI, 5e6):
        link.add(sample)
        all_samples.add(sample)
    link.pause()
    for sample in (1e6, *[2e6] * (PHI - 1)):
        link.add(sample)
        all_samples.add(sample)
    assert link.known_bps == all_samples.next_bps
    new = HoltWinters()
    for sample in (1e6, *[2e6] * (PHI - 1)):
        new.add(sample)
    assert link.known_bps != pytest.approx(new.next_bps, rel=0.01)


def test_the_highest_rate_is_that_since_the_link_was_last_resumed() -> None:
    link = HighestRate()
    for _ in range(PHI + 1):
        link.add(8e6)
        assert link.known_bps == 5e6
    link.add(8e6)
    assert link.known_bps == pytest.approx(8e6)
    link.pause()
    for _ in range(PHI + 2):
        assert link.known_bps == pytest.approx(8e6)
        link.add(1e6)
    assert link.known_bps == pytest.approx(1e6)


def test_equation_1_gives_the_papers_time() -> None:
    # 10 Mbit/s and .19 s under load: 2.67 s (eMPTCP 4.1).
    assert settling_s(10e6, 0.19) == pytest.approx(2.67, abs=0.02)
    # A first window of 14,600 B in 0.1 s: one doubling of the window, and PHI samples.
    assert settling_s(14_600 * 8 / 0.1, 0.1) == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("changed", "opens"),
    [
        ({}, True),
        ({"most": KAPPA_BYTES - 1}, True),  # τ has passed.
        ({"most": 1_000_000, "open_s": 2.9}, True),  # κ has come.
        ({"most": 999_999, "open_s": 2.9}, False),
        ({"idle": True}, False),
    ],
)
def test_lte_is_opened_after_kappa_or_tau_and_not_for_who_is_idle(
    changed: dict[str, object], opens: bool
) -> None:
    usage = published()
    looks = [seen(1e6, **changed)] * PHI  # type: ignore[arg-type]
    assert after(usage, *looks[:-1]) is False  # Too few samples.
    assert after(usage, looks[-1]) is opens
    assert usage.has_opened_lte is opens


@pytest.mark.parametrize(
    ("rtt_s", "open_s", "opens"),
    [
        (0.1, 2.9, False),
        (0.1, 3.0, True),
        # .6 s · (log2((75 kB + 14.6 kB)/14.6 kB) + 10) = 7.57 s: more than τ.
        (0.6, 3.0, False),
        (0.6, 7.5, False),
        (0.6, 7.6, True),
    ],
)
def test_lte_waits_for_tau_or_the_time_of_equation_1(
    rtt_s: float, open_s: float, opens: bool
) -> None:
    usage = published()
    now = Observation(1e6, None, most_bytes=0, open_s=open_s, rtt_s=rtt_s, is_idle=False)
    assert after(usage, *[now] * PHI) is opens


def test_lte_is_not_opened_for_a_wifi_that_costs_least() -> None:
    assert pytest.approx(2.67e6, rel=0.01) == AT_5
    assert after(published(), *[seen(AT_5 * 0.89)] * PHI) is True
    for rate in (AT_5 * 0.91, AT_5, 10e6):
        assert after(published(), *[seen(rate)] * 100) is False


def test_lte_is_suspended_and_resumed_with_a_margin_of_10_percent(usage: PathUsage) -> None:
    assert after(usage, *[seen(1e6)] * PHI) is True
    assert after(usage, *[seen(1e6, 8e6)] * (PHI + 2)) is True
    assert pytest.approx(4.28e6, rel=0.01) == AT_8

    def gently(*hundredths: int, lte: float | None) -> bool:
        """So that the trend does not overshoot."""
        return after(usage, *[seen(AT_8 * to / 100, lte) for to in hundredths for _ in range(9)])

    assert gently(*range(25, 109), lte=8e6) is True
    assert gently(109, 110, 111, lte=8e6) is False
    # What is suspended is known by what it last carried.
    assert gently(*range(110, 91, -1), lte=0.0) is False
    assert gently(90, 89, lte=None) is True


def test_a_subflow_that_is_there_is_resumed_without_kappa_or_tau(usage: PathUsage) -> None:
    after(usage, *[seen(1e6)] * PHI, *[seen(1e6, 8e6)] * (PHI + 2), *[seen(10e6, 8e6)] * 20)
    assert (usage.uses_lte, usage.has_opened_lte) == (False, True)
    assert after(usage, *[seen(1e6, most=0, open_s=0.0)] * PHI) is True


def test_the_next_connections_wait_anew_and_know_the_links(usage: PathUsage) -> None:
    after(usage, *[seen(1e6)] * PHI, *[seen(1e6, 8e6)] * (PHI + 2))
    usage.ended()
    assert after(usage, *[seen(1e6, most=0, open_s=0.0)] * PHI) is False
    assert after(usage, seen(1e6)) is True
    assert usage.lte.known_bps == pytest.approx(8e6)


def test_links_that_carry_nothing(usage: PathUsage) -> None:
    after(usage, *[seen(1e6)] * PHI)
    assert after(usage, *[seen(10e6, 8e6)] * 20) is False
    assert after(usage, *[seen(0.0)] * 20) is True
    usage.lte.known_bps = 0.0
    assert all(usage.look(seen(0.0)) for _ in range(20))  # Wi-Fi alone is no better.
    assert after(usage, *[seen(1e6)] * 20) is False  # LTE costs, and brings nothing.
    assert after(usage, *[seen(0.0)] * 20) is True


def test_a_forecast_follows_an_lte_that_becomes_slow(usage: PathUsage) -> None:
    """Beside an LTE of 1 Mbit/s Wi-Fi alone costs least from 0.59 Mbit/s on, margin included. Beside
    one of 8 Mbit/s, the highest rate, it does from 4.7 Mbit/s on."""
    after(usage, *[seen(0.4e6)] * PHI, *[seen(0.4e6, 8e6)] * (PHI + 2))
    slower = [seen(0.4e6, tenths * 1e5) for tenths in range(80, 9, -1) for _ in range(3)]
    assert after(usage, *slower, *[seen(0.4e6, 1e6)] * 9) is True
    forecasts = isinstance(usage.lte, RateForecast)
    assert usage.lte.known_bps == pytest.approx(1e6 if forecasts else 8e6, rel=0.01)
    assert after(usage, *[seen(0.7e6, 1e6)] * 9) is not forecasts


def test_the_highest_rate_does_not_take_an_lte_for_slow_that_gets_nothing() -> None:
    usage = PathUsage(S3, forecasts_lte=False)
    after(usage, *[seen(1e6)] * PHI, *[seen(1e6, 8e6)] * (PHI + 2))
    assert usage.lte.known_bps == pytest.approx(8e6)
    # The sample before a gap and the one after it are of a part of their time.
    for sample in (8e6, 2e6, 0.0, 0.0, 3e6, 8e6, 1e6, 0.0, 2e6):
        usage.look(seen(1e6, sample))
    assert usage.lte.known_bps == pytest.approx(8e6)
    # Nor is a time of little. An LTE that has become slow is found out at its next use.
    after(usage, *[seen(0.1e6, 2e6)] * 50)
    assert usage.lte.known_bps == pytest.approx(8e6)
    assert after(usage, *[seen(10e6, 2e6)] * 20) is False
    assert after(usage, *[seen(0.1e6, 2e6)] * 50) is True
    assert usage.lte.known_bps == pytest.approx(2e6, rel=0.01)


def test_the_highest_rate_counts_an_lte_sample_between_two_others_in_use() -> None:
    """A look without a new sample breaks no row, and samples while LTE is suspended count nothing."""
    usage = PathUsage(S3, forecasts_lte=False)
    assert isinstance(usage.lte, HighestRate)
    assert after(usage, *[seen(1e6, 9e6)] * PHI) is True
    after(usage, seen(1e6, 2e6), seen(1e6), seen(1e6, 8e6))
    assert usage.lte.recent.samples == 0
    usage.look(seen(1e6, 4e6))
    assert (usage.lte.recent.samples, usage.lte.recent.level_bps) == (1, 8e6)


def test_samples_while_lte_is_suspended_count_nothing() -> None:
    usage = published()
    assert after(usage, *[seen(1e6, 9e6)] * PHI) is True
    assert after(usage, *[seen(1e6, 2e6)] * PHI) is True
    assert usage.lte.known_bps == pytest.approx(2e6)
    assert after(usage, *[seen(10e6)] * PHI) is False
    after(usage, *[seen(10e6, 8e6)] * PHI)
    assert usage.lte.known_bps == pytest.approx(2e6)


def test_a_model_that_knows_no_lte_is_refused() -> None:
    with pytest.raises(KeyError):
        PathUsage(library.parse(ONLY_WIFI), forecasts_lte=True)


def test_without_wi_fi_there_is_nothing_to_wait_for(usage: PathUsage) -> None:
    """A connection that is young, and silent because its link is gone."""
    gone = Observation(
        None, None, most_bytes=0, open_s=0.1, rtt_s=0.1, is_idle=True, has_wifi=False
    )
    assert usage.look(gone)
    assert after(usage, *[seen(10e6, 1e6)] * (PHI + 1)) is False  # It is back, and good.
