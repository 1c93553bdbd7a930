"""Tests how the two directions share the air, with a saturated TCP download."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linklab.core.frames import ACK_BYTES, FRAME_BYTES, SEGMENT_BYTES
from linklab.models import phy
from linklab.models.air import (
    ACCESS,
    ACCESS_AGGREGATED,
    ACCESS_BG,
    ACCESS_G,
    HEADER_BYTES,
    Air,
    AirCost,
)
from linklab.models.layer import NO_LOAD, STEP_S, Load
from linklab.models.phy import Standard

G_BPS = 54e6


def download(
    access: AirCost,
    phy_bps: float,
    acks: float = 0.5,
    until_s: float = 4.0,
    available: float = 1.0,
    wired_bps: float = 1e12,
) -> list[tuple[float, float]]:
    """Down- and uplink limits in bit/s at every step of a download that is never short of data,
    with so many acknowledgements a packet.
    """
    air = Air(access)
    t_s, down, up = 0.0, 0.0, 0.0
    rates = []
    while t_s < until_s:
        load = Load(
            down_bytes=int(down) * FRAME_BYTES,
            down_packets=int(down),
            up_bytes=int(up) * ACK_BYTES,
            up_packets=int(up),
        )
        air.observe(t_s, load, phy_bps)
        air.observe(t_s, load, phy_bps)
        rates.append(air.rates_bps(phy_bps, available))
        next_s = air.next_s()
        assert next_s > t_s
        packets = min(rates[-1][0], wired_bps) / 8 / FRAME_BYTES * (next_s - t_s)
        up_packets = packets * acks
        most = rates[-1][1] / 8 / ACK_BYTES * (next_s - t_s)
        down, up, t_s = down + packets, up + min(up_packets, most), next_s
    return rates


def goodput_bps(rates: list[tuple[float, float]]) -> float:
    """TCP payload of the second half, when all has settled."""
    later = rates[len(rates) // 2 :]
    return sum(down for down, _ in later) / len(later) * SEGMENT_BYTES / FRAME_BYTES


def test_super_aggregations_80211g() -> None:
    """Without ACKs on the air 11.27 Mbit/s more, and then 317 kbit/s of ACKs of 40 bytes."""
    without = goodput_bps(download(ACCESS_BG, G_BPS, acks=0))
    gain = without - goodput_bps(download(ACCESS_BG, G_BPS))
    assert gain == pytest.approx(11.27e6, rel=0.05)
    assert without / SEGMENT_BYTES / 2 * 40 == pytest.approx(317e3, rel=0.02)


def test_air_times_by_hand() -> None:
    """A frame has 1514 B of Ethernet's and 24 B of 802.11's own: 26 + 8 + 4 - 14."""
    assert HEADER_BYTES == 24
    assert ACCESS_G.down_packet_s(1514, G_BPS) == pytest.approx(165.5e-6 + 1538 * 8 / G_BPS)
    assert ACCESS_G.up_packet_s(66, G_BPS) == pytest.approx(165.5e-6 + 90 * 8 / G_BPS)
    assert ACCESS_G.turn_s(G_BPS) == ACCESS_G.down_packet_s(1514, G_BPS)
    assert ACCESS_BG.down_packet_s(1514, G_BPS) == pytest.approx(270e-6 + 1538 * 8 / G_BPS)
    assert ACCESS_BG.up_packet_s(66, G_BPS) == pytest.approx(650e-6 + 90 * 8 / 2e6)
    assert ACCESS_BG.up_packet_s(66, 1e6) == pytest.approx(650e-6 + 90 * 8 / 1e6)
    # 4 ms at 300 Mbit/s are 97.53 frames, which share an access of 198.5 µs.
    frames = 4e-3 * 300e6 / (1538 * 8)
    packet_s = (198.5e-6 / frames + 1538 * 8 / 300e6) / 0.79
    assert ACCESS_AGGREGATED.down_packet_s(1514, 300e6) == pytest.approx(packet_s)
    assert ACCESS_AGGREGATED.turn_s(300e6) == pytest.approx(frames * packet_s)
    # At 1 Mbit/s no second frame fits.
    assert ACCESS_AGGREGATED.turn_s(1e6) == pytest.approx((198.5e-6 + 1538 * 8 / 1e6) / 0.79)


def test_both_directions_shrink_equally_when_they_want_more_than_there_is() -> None:
    """Each has wanted 0.8 of the time: 1.6 become 1, and each leaves half to the other."""
    air = Air(ACCESS_G)
    down_s, ack_s = ACCESS_G.down_packet_s(1514, G_BPS), ACCESS_G.up_packet_s(66, G_BPS)
    down, up = round(0.8 / down_s), round(0.8 / ack_s)
    air.observe(1.0, Load(down * 1514, down, up * 66, up), G_BPS)
    full_bps = 1514 * 8 / down_s
    down_bps, up_bps = air.rates_bps(G_BPS, 1.0)
    # A downlink packet takes longer than half of a pair of accesses, so DCF gives it more.
    assert down_bps == pytest.approx(full_bps * down_s / (down_s + ack_s), rel=1e-3)
    assert up_bps == pytest.approx(full_bps * 0.5, rel=1e-3)
    # Out of range nothing is known of the use.
    air.observe(2.0, Load(2 * down * 1514, 2 * down, 2 * up * 66, 2 * up), 0.0)
    assert air.rates_bps(G_BPS, 1.0) == pytest.approx((full_bps, full_bps))


def test_80211g_among_its_own() -> None:
    assert goodput_bps(download(ACCESS_G, G_BPS, acks=0)) == pytest.approx(29.5e6, rel=0.01)
    assert goodput_bps(download(ACCESS_G, G_BPS)) == pytest.approx(23.9e6, rel=0.01)


@given(
    st.builds(AirCost, st.floats(5e-5, 1e-3), st.sampled_from((0.0, 4e-3)), st.floats(0.5, 1)),
    st.floats(6e6, 2e9),
)
@example(AirCost(0.0008186355352976317, 0.0, 0.5), 188563805.0)
def test_removing_acks_gains_what_super_aggregation_says(access: AirCost, phy_bps: float) -> None:
    """1 + t_ack / (2 t_data), as far as whole packets fill a step: of 1.7 ms there are 11 in one."""
    t_ack = access.up_packet_s(ACK_BYTES, phy_bps)
    t_data = access.down_packet_s(FRAME_BYTES, phy_bps)
    gain = goodput_bps(download(access, phy_bps, 0)) / goodput_bps(download(access, phy_bps))
    assert gain == pytest.approx(1 + t_ack / (2 * t_data), rel=0.05)


@given(st.sampled_from(("n", "ac")), st.sampled_from((20, 40)), st.integers(1, 4))
def test_tcp_alone_gets_65_to_70_percent(standard: Standard, width: int, streams: int) -> None:
    for _, phy_bps in phy.phy_rates(standard, width, streams):
        goodput = goodput_bps(download(ACCESS[standard], phy_bps))
        assert 0.65 <= goodput / phy_bps <= 0.70


def test_it_settles_at_the_first_look() -> None:
    """But for whole packets: 20 in a step of the slower cell."""
    for access in (ACCESS_G, ACCESS_BG):
        down = [rate for rate, _ in download(access, G_BPS)]
        settled = sum(down[-50:]) / 50
        assert down[0] > 1.2 * settled
        assert down[1:] == pytest.approx([settled] * len(down[1:]), rel=0.1)


def test_an_access_that_is_slower_than_the_air_does_not_feel_it() -> None:
    rates = download(ACCESS_G, G_BPS, wired_bps=8e6)
    assert min(down for down, _ in rates) > 8e6


@given(st.floats(6e6, 1e9), st.floats(0.05, 1), st.floats(0, 1), st.floats(0, 1))
def test_two_directions_that_want_everything_end_with_half_each(
    phy_bps: float, available: float, first_down: float, first_up: float
) -> None:
    """Wherever they begin. With steps so long that whole packets do not matter."""
    step_s = 100.0
    air = Air(ACCESS_G, step_s)
    packet_bits = FRAME_BYTES * 8
    packet_s = ACCESS_G.down_packet_s(FRAME_BYTES, phy_bps)
    down, up = 0, 0
    rates = (first_down * packet_bits / packet_s, first_up * packet_bits / packet_s)
    for step in range(100):
        air.observe(step * step_s, Load(down * FRAME_BYTES, down, up * FRAME_BYTES, up), phy_bps)
        if step > 1:
            rates = air.rates_bps(phy_bps, available)
        down += round(rates[0] * step_s / packet_bits)
        up += round(rates[1] * step_s / packet_bits)
    half_bps = available / 2 * packet_bits / packet_s
    assert list(rates) == pytest.approx([half_bps, half_bps], rel=0.01)


LOADS = st.lists(
    st.tuples(st.floats(0.001, 0.5), st.integers(0, 5000), st.integers(0, 5000)), max_size=20
)


@given(LOADS, st.floats(1e5, 1e9), st.floats(0.01, 1), st.sampled_from((ACCESS_G, ACCESS_BG)))
def test_never_nothing_and_never_more_than_the_air(
    sent: list[tuple[float, int, int]], phy_bps: float, available: float, access: AirCost
) -> None:
    air = Air(access)
    t_s, down, up = 0.0, 0, 0
    for passed_s, more_down, more_up in sent:
        t_s, down, up = t_s + passed_s, down + more_down, up + more_up
        load = Load(down * FRAME_BYTES, down, up * ACK_BYTES, up)
        air.observe(t_s, load, phy_bps)
        rates = air.rates_bps(phy_bps, available)
        air.observe(t_s, load, phy_bps)
        assert rates == air.rates_bps(phy_bps, available)
        assert air.next_s() > t_s
        assert (
            0
            < rates[0]
            <= FRAME_BYTES * 8 * available / access.down_packet_s(FRAME_BYTES, phy_bps) * 1.0001
        )
        assert (
            0
            < rates[1]
            <= FRAME_BYTES * 8 * available / access.up_packet_s(FRAME_BYTES, phy_bps) * 1.0001
        )


def test_it_looks_once_per_step() -> None:
    air = Air(ACCESS_G)
    air.observe(0.0, NO_LOAD, G_BPS)
    before = air.rates_bps(G_BPS, 1.0)
    air.observe(0.001, Load(up_bytes=6600, up_packets=100), G_BPS)
    assert air.rates_bps(G_BPS, 1.0) == before
    assert air.next_s() == STEP_S
    air.observe(STEP_S, Load(up_bytes=6600, up_packets=100), G_BPS)
    assert air.rates_bps(G_BPS, 1.0)[0] < before[0]
