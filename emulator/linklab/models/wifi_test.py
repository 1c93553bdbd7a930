"""Tests a whole Wi-Fi link with a saturated download."""

import math
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.frames import ACK_BYTES, FRAME_BYTES, SEGMENT_BYTES
from linklab.core.link_state import LinkState
from linklab.models.air import ACCESS_BG, ACCESS_G
from linklab.models.layer import NO_LOAD, Load
from linklab.models.loss import gemodel
from linklab.models.phy import Standard
from linklab.models.roaming import HANDOVERS, AccessPoint, RoamingSettings, Waypoint
from linklab.models.stations import StationSettings
from linklab.models.wifi import Wifi, WifiSettings

WIRED = LinkState(True, 1_000_000_000, 1_000_000_000, 0.01, 0.0, 0.0)
DESK = RoamingSettings((AccessPoint("ap1", signal_dbm=-50), AccessPoint("ap2", signal_dbm=-60)))

History = list[tuple[float, LinkState]]


def drive(layer: Wifi, until_s: float, base: LinkState = WIRED, acks: float = 0.5) -> History:
    """Asks as the player does over a link that always has something to send."""
    t_s, down, up = 0.0, 0.0, 0.0
    history: History = []
    while t_s <= until_s:
        load = Load(int(down) * FRAME_BYTES, int(down), int(up) * ACK_BYTES, int(up), 10**6)
        state = layer.apply(t_s, load, base)
        assert layer.apply(t_s, load, base) == state
        assert layer.next_s() > t_s
        history.append((t_s, state))
        if state.up and not state.blackout:
            packets = state.down_rate_bps / 8 / FRAME_BYTES * (layer.next_s() - t_s)
            down, up = down + packets, up + packets * acks
        t_s = layer.next_s()
    return history


AC = WifiSettings("ac", DESK, width_mhz=80)
G = WifiSettings("g", DESK)


def made(
    settings: WifiSettings = AC, forced: Iterable[tuple[float, str | None]] = (), seed: int = 1
) -> Wifi:
    return Wifi(settings, Random(seed), forced)


def mean_bps(history: History) -> float:
    ended = history[1:]
    bits = sum(
        state.down_rate_bps * (end_s - t_s)
        for (t_s, state), (end_s, _) in zip(history, ended, strict=False)
    )
    return bits / (history[-1][0] - history[0][0])


def test_a_desk_beside_the_access_point() -> None:
    (_, first), *history = drive(made(), 3)
    assert (first.access_point, first.signal_dbm, first.lease) == ("ap1", -50, 0)
    assert (first.loss_ratio, first.loss_burst_packets) == (0.001, 2)
    assert first.up
    assert not first.blackout
    goodput = mean_bps(history) * SEGMENT_BYTES / FRAME_BYTES
    assert 0.65 <= goodput / 390e6 <= 0.70


def test_the_wired_access_caps_the_air_and_the_air_the_wired_access() -> None:
    slow = replace(WIRED, down_rate_bps=8_000_000, up_rate_bps=1_000_000)
    assert {(s.down_rate_bps, s.up_rate_bps) for _, s in drive(made(), 1, slow)} == {
        (8_000_000, 1_000_000)
    }
    assert made(G).apply(0.0, NO_LOAD, WIRED).down_rate_bps < 31e6


def test_the_cell_of_super_aggregation() -> None:
    cell = replace(G, access=ACCESS_BG)
    without = mean_bps(drive(made(cell), 5, acks=0)) * SEGMENT_BYTES / FRAME_BYTES
    gain = without - mean_bps(drive(made(cell), 5)) * SEGMENT_BYTES / FRAME_BYTES
    assert gain == pytest.approx(11.27e6, rel=0.05)


@pytest.mark.parametrize(
    ("preset", "carrier", "lease"),
    [
        ("fast-transition", True, 0),
        ("full-scan-dhcp", False, 1),
    ],
)
def test_a_handover_as_the_client_sees_it(preset: str, carrier: bool, lease: int) -> None:
    handover = HANDOVERS[preset]
    layer = made(replace(AC, roaming=replace(DESK, handover=handover)), [(1.2345, None)])
    history = drive(layer, 6)
    away = [(t_s, state) for t_s, state in history if state.access_point == ""]
    assert away[0][0] == 1.2345
    assert all((s.up, s.blackout, s.signal_dbm) == (carrier, carrier, None) for _, s in away)
    assert {s.lease for _, s in away} == {0}
    back_s, back = next((t_s, s) for t_s, s in history if s.access_point == "ap2")
    assert back_s == 1.2345 + handover.outage_s
    assert (back.up, back.blackout, back.lease, back.signal_dbm) == (True, False, lease, -60)


def test_a_live_handover() -> None:
    layer = made()
    layer.apply(2.0, NO_LOAD, WIRED)
    layer.force(2.0, "ap2")
    assert not layer.apply(2.0, NO_LOAD, WIRED).up
    assert layer.apply(2.3, NO_LOAD, WIRED).access_point == "ap2"


def test_a_lost_carrier_below_stays_lost() -> None:
    fast = replace(DESK, handover=HANDOVERS["fast-transition"])
    layer = made(replace(AC, roaming=fast), [(1.0, None)])
    for t_s, access_point in ((0.0, "ap1"), (1.0, ""), (2.0, "ap2")):
        state = layer.apply(t_s, NO_LOAD, replace(WIRED, up=False))
        assert (state.up, state.access_point) == (False, access_point)


def test_the_edge_is_slow_lossy_and_lasts_as_long_as_greenbag_saw() -> None:
    """Hundreds of kbit/s for 5 to 10 s while walking out of reach, then nothing at all."""
    walk = RoamingSettings(
        (AccessPoint("ap", 0, 0),), (Waypoint(0, 0, 0), Waypoint(100, 140, 0)), exponent=4.0
    )
    history = drive(made(WifiSettings("n", walk)), 100)
    dip = [(t_s, s) for t_s, s in history if s.up and s.down_rate_bps < 1e6]
    assert 4 <= dip[-1][0] - dip[0][0] <= 10
    assert all(state.down_rate_bps > 100e3 for _, state in dip)
    assert {state.loss_ratio for _, state in dip} == {0.01}
    rates = [state.down_rate_bps for _, state in history if state.up]
    assert rates[0] > 45e6
    assert not history[-1][1].up
    signals = [state.signal_dbm for _, state in history if state.signal_dbm is not None]
    assert signals == sorted(signals, reverse=True)
    assert signals[-1] == -97
    losses = [state.loss_ratio for _, state in history if state.up]
    assert losses == sorted(losses)
    assert losses[0] == 0.001


def test_other_stations_take_fair_shares_of_the_air() -> None:
    """Two of eMPTCP's, busy a third of the time: E[1 / (1 + busy)] is 19/27 of the air."""
    layer = Wifi(replace(G, stations=StationSettings(2)), Random(3), step_s=10.0)
    alone_bps = FRAME_BYTES * 8 / ACCESS_G.down_packet_s(FRAME_BYTES, 54e6)
    history: History = [(0.0, layer.apply(0.0, NO_LOAD, WIRED))]
    while history[-1][0] < 50_000:
        t_s = layer.next_s()
        history.append((t_s, layer.apply(t_s, NO_LOAD, WIRED)))
    assert {round(alone_bps / state.down_rate_bps, 3) for _, state in history} == {1, 2, 3}
    assert mean_bps(history) / alone_bps == pytest.approx(19 / 27, abs=0.02)


def test_a_station_that_sends_slowly_has_the_air_no_longer_where_both_fill_4_ms_with_frames() -> (
    None
):
    alone = made(AC).apply(0.0, NO_LOAD, WIRED)
    layer = made(replace(AC, stations=StationSettings(1, 0.01, 100.0, 29_250_000)))
    history: History = [(0.0, layer.apply(0.0, NO_LOAD, WIRED))]
    while history[-1][1].down_rate_bps == alone.down_rate_bps:
        history.append((layer.next_s(), layer.apply(layer.next_s(), NO_LOAD, WIRED)))
    assert alone.down_rate_bps / history[-1][1].down_rate_bps == pytest.approx(2.0, rel=0.001)


@pytest.mark.parametrize("others_bps", [None, 9_000_000])
def test_each_further_station_takes_as_much_of_the_air(others_bps: int | None) -> None:
    """Packets of all stations in turn: a download takes its own air time and that of the others."""
    packet_s = 165.5e-6 + 1538 * 8 / (others_bps or 54e6)
    own_s = 165.5e-6 + 1538 * 8 / 54e6
    others = StationSettings(3, 1.0, 1.0, others_bps)
    alone_bps = made(G).apply(0.0, NO_LOAD, WIRED).down_rate_bps
    layer = Wifi(replace(G, stations=others), Random(1), step_s=10.0)
    slower, t_s = set(), 0.0
    for _ in range(100):
        slower.add(round(alone_bps / layer.apply(t_s, NO_LOAD, WIRED).down_rate_bps, 2))
        t_s = layer.next_s()
    assert slower == {round(1 + busy * packet_s / own_s, 2) for busy in range(4)}


def test_what_the_radio_does_not_have() -> None:
    with pytest.raises(ValueError, match="allowed: 20, 40 MHz"):
        made(replace(AC, standard="n"))
    with pytest.raises(ValueError, match="allowed: ap1, ap2"):
        made(AC, [(1.0, "ap3")])


PLACES = st.floats(-150, 150)


CHANNELS: tuple[tuple[Standard, int], ...] = (("g", 20), ("n", 20), ("n", 40), ("ac", 80))


@st.composite
def networks(draw: st.DrawFn) -> WifiSettings:
    standard, width = draw(st.sampled_from(CHANNELS))
    points = draw(st.lists(st.tuples(PLACES, PLACES), min_size=1, max_size=3))
    path = tuple(Waypoint(t_s, draw(PLACES), draw(PLACES)) for t_s in (0.0, 1.0, 2.5))
    preset = draw(st.sampled_from(sorted(HANDOVERS)))
    return WifiSettings(
        standard,
        RoamingSettings(
            tuple(AccessPoint(f"ap{n}", *place) for n, place in enumerate(points)),
            path,
            HANDOVERS[preset],
        ),
        width,
        stations=StationSettings(
            draw(st.integers(0, 3)), 1.0, 1.0, draw(st.none() | st.integers(10**6, 10**9))
        ),
    )


BASES = st.builds(
    replace,
    st.just(WIRED),
    down_rate_bps=st.integers(1000, 10**10),
    up_rate_bps=st.integers(1000, 10**10),
    loss_ratio=st.floats(0, 0.5),
)


@given(
    networks(), BASES, st.integers(), st.lists(st.tuples(st.floats(0, 3), st.none()), max_size=2)
)
def test_possible_states_and_the_same_again(
    settings: WifiSettings, base: LinkState, seed: int, forced: list[tuple[float, None]]
) -> None:
    history = drive(Wifi(settings, Random(seed), forced), 4, base)
    for _, state in history:
        assert 0 < state.down_rate_bps <= base.down_rate_bps
        assert 0 < state.up_rate_bps <= base.up_rate_bps
        assert base.loss_ratio <= state.loss_ratio < 1
        assert (state.access_point == "") == (not state.up or state.blackout)
        assert state.delay_s == base.delay_s
        gemodel(state.loss_ratio, state.loss_burst_packets)
    assert drive(Wifi(settings, Random(seed), forced), 4, base) == history


def test_the_scale_of_the_edge_is_the_channels() -> None:
    """The edge of a channel four times as wide begins 6 dB higher."""
    for width, least_dbm in ((20, -85.0), (80, -79.0)):
        for signal_dbm, loss in ((least_dbm, 0.001), (least_dbm - 0.1, 0.01)):
            place = RoamingSettings((AccessPoint("ap", signal_dbm=signal_dbm),))
            layer = made(replace(AC, width_mhz=width, roaming=place))
            assert layer.apply(0.0, NO_LOAD, WIRED).loss_ratio == loss
    assert layer.next_s() < math.inf
