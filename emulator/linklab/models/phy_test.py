import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.models import phy
from linklab.models.phy import Standard

STANDARDS: tuple[Standard, ...] = ("g", "n", "ac")
THRESHOLDS_DB = [2, 5, 9, 11, 15, 18, 20, 25, 29, 31]
"""The least SNR in 20 MHz of each scheme of n and ac."""


@st.composite
def channels(draw: st.DrawFn) -> tuple[Standard, int, int]:
    standard = draw(st.sampled_from(STANDARDS))
    width = draw(st.sampled_from(phy.WIDTHS_MHZ[standard]))
    return standard, width, draw(st.integers(1, phy.MAX_STREAMS[standard]))


@pytest.mark.parametrize(
    ("standard", "width", "mbits"),
    [
        ("g", 20, [6, 9, 12, 18, 24, 36, 48, 54]),
        ("n", 20, [6.5, 13, 19.5, 26, 39, 52, 58.5, 65]),
        ("n", 40, [13.5, 27, 40.5, 54, 81, 108, 121.5, 135]),
        ("ac", 20, [6.5, 13, 19.5, 26, 39, 52, 58.5, 65, 78]),
        ("ac", 40, [13.5, 27, 40.5, 54, 81, 108, 121.5, 135, 162, 180]),
        ("ac", 80, [29.25, 58.5, 87.75, 117, 175.5, 234, 263.25, 292.5, 351, 390]),
    ],
)
def test_the_rates_of_one_stream(standard: Standard, width: int, mbits: list[float]) -> None:
    """Assumption 2, and IEEE 802.11 tables 17-4, 19-27 to 19-38, 21-29 to 21-52."""
    rates = phy.phy_rates(standard, width, 1)
    assert [rate / 1e6 for _, rate in rates] == pytest.approx(mbits)
    wider_db = 3 * math.log2(width / 20)
    thresholds = [2, 3, 5, 9, 11, 15, 18, 20] if standard == "g" else THRESHOLDS_DB[: len(mbits)]
    assert [least_db for least_db, _ in rates] == [one + wider_db for one in thresholds]


@pytest.mark.parametrize(
    ("width", "scheme", "without"),
    [(20, 9, {1, 2, 4, 5, 7, 8}), (40, 9, set()), (80, 9, {6}), (80, 6, {3, 7}), (80, 5, set())],
)
def test_the_streams_for_which_ac_lacks_a_scheme(
    width: int, scheme: int, without: set[int]
) -> None:
    """IEEE 802.11 tables 21-30 to 21-52."""
    threshold_db = THRESHOLDS_DB[scheme] + 3 * math.log2(width / 20)
    lacking = {
        streams
        for streams in range(1, 9)
        if threshold_db not in dict(phy.phy_rates("ac", width, streams))
    }
    assert lacking == without


def test_a_phone_next_to_its_access_point_and_far_away() -> None:
    assert phy.snr_db(-54) == 40
    assert phy.phy_rate_bps("n", 20, 1, phy.snr_db(-54)) == 65e6
    assert phy.phy_rate_bps("n", 20, 1, phy.snr_db(-84)) == 19.5e6
    assert phy.phy_rate_bps("n", 20, 1, phy.snr_db(-92.1)) == 0
    assert phy.phy_rate_bps("ac", 80, 1, 7.9) == 0
    assert phy.phy_rate_bps("ac", 80, 1, 8) == 29.25e6


@given(channels(), st.floats(-20, 60), st.floats(0, 10))
def test_more_signal_is_never_slower(
    channel: tuple[Standard, int, int], snr_db: float, more_db: float
) -> None:
    rate = phy.phy_rate_bps(*channel, snr_db)
    assert 0 <= rate <= phy.phy_rate_bps(*channel, snr_db + more_db)
    assert (rate > 0) == (snr_db >= phy.lowest_snr_db(channel[1]))


@given(channels(), st.floats(-20, 60))
def test_streams_multiply(channel: tuple[Standard, int, int], snr_db: float) -> None:
    standard, width, streams = channel
    one = dict(phy.phy_rates(standard, width, 1))
    for least_db, rate in phy.phy_rates(standard, width, streams):
        if least_db in one:
            assert rate == pytest.approx(one[least_db] * streams)


@given(st.sampled_from((20, 40, 80)), st.floats(-20, 60))
def test_below_the_threshold_every_decibel_halves(width: int, snr_db: float) -> None:
    share = phy.delivered_share(snr_db, width)
    missing_db = max(0.0, phy.lowest_snr_db(width) - snr_db)
    assert share == pytest.approx(2**-missing_db)
    assert phy.delivered_share(phy.lowest_snr_db(width) - 3, width) == 1 / 8


@pytest.mark.parametrize(
    ("standard", "width", "streams", "allowed"),
    [
        ("g", 40, 1, "allowed: 20 MHz"),
        ("n", 80, 1, "allowed: 20, 40 MHz"),
        ("n", 20, 5, "allowed: 1 to 4"),
        ("g", 20, 2, "allowed: 1 to 1"),
        ("ac", 80, 0, "allowed: 1 to 8"),
        ("ac", 80, 9, "allowed: 1 to 8"),
    ],
)
def test_channels_that_do_not_exist(
    standard: Standard, width: int, streams: int, allowed: str
) -> None:
    with pytest.raises(ValueError, match=allowed):
        phy.phy_rate_bps(standard, width, streams, 40)
