import math
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linklab.models.roaming import (
    BEACON_S,
    HANDOVERS,
    AccessPoint,
    Attachment,
    Handover,
    Roaming,
    RoamingSettings,
    Waypoint,
    position_m,
)

JOIN_DBM = -92.0
LEAVE_DBM = -97.0
HALL = RoamingSettings(
    access_points=(AccessPoint("ap1", 0, 0), AccessPoint("ap2", 60, 0)),
    path=(Waypoint(0, 0, 1), Waypoint(60, 60, 1)),
)
"""A walk of a minute, 1 m/s, from one access point to the next."""

DESK = RoamingSettings(
    access_points=(AccessPoint("ap1", signal_dbm=-50), AccessPoint("ap2", signal_dbm=-60)),
)


def history(roaming: Roaming, until_s: float) -> list[tuple[float, Attachment]]:
    """Every change of where the client is or seems to be attached, at the very times."""
    found: list[tuple[float, Attachment]] = []
    t_s = 0.0
    while t_s <= until_s:
        attached = roaming.at(t_s)
        assert roaming.at(t_s) == attached
        if not found or apart_from_signal(attached) != apart_from_signal(found[-1][1]):
            found.append((t_s, attached))
        assert roaming.next_s() > t_s
        t_s = roaming.next_s()
    return found


def apart_from_signal(attached: Attachment) -> Attachment:
    return replace(attached, signal_dbm=None)


def names(found: list[tuple[float, Attachment]]) -> list[str]:
    return [attached.access_point for _, attached in found]


def made(settings: RoamingSettings, *forced: tuple[float, str | None]) -> Roaming:
    return Roaming(settings, JOIN_DBM, LEAVE_DBM, forced)


def test_a_walk_hands_over_where_the_other_is_stronger_by_the_hysteresis() -> None:
    found = history(made(HALL), 60)
    assert names(found) == ["ap1", "", "ap2"]
    left_s, joined_s = found[1][0], found[2][0]
    # 35 log10 of the ratio of distances is 6 dB at 60 / (1 + 10^(-6/35)) m, but for the 1 m aside.
    ratio = 10 ** (6 / 35)
    assert left_s == pytest.approx(60 * ratio / (1 + ratio), abs=0.01)
    assert joined_s == left_s + 0.3


def test_the_handover_begins_at_the_exact_time_and_not_at_a_beacon() -> None:
    left_s = history(made(HALL), 60)[1][0]
    assert made(HALL).at(left_s).access_point == ""
    assert made(HALL).at(left_s - 2e-9).access_point == "ap1"
    assert abs(left_s / BEACON_S - round(left_s / BEACON_S)) > 1e-6


def test_there_and_back_without_flapping() -> None:
    walk = replace(HALL, path=(*HALL.path, Waypoint(120, 0, 1)))
    found = history(made(walk), 200)
    assert names(found) == ["ap1", "", "ap2", "", "ap1"]
    assert found[3][0] - 60 == pytest.approx(found[1][0], abs=0.01)


@pytest.mark.parametrize(
    ("preset", "outage_s", "carrier", "lease"),
    [
        ("fast-transition", 0.05, True, 0),
        ("reassociation", 0.3, False, 0),
        ("full-scan", 1.5, False, 0),
        ("full-scan-dhcp", 3.0, False, 1),
    ],
)
def test_presets(preset: str, outage_s: float, carrier: bool, lease: int) -> None:
    settings = replace(DESK, handover=HANDOVERS[preset])
    found = history(made(settings, (1.2345, "ap2")), 10)
    assert found == [
        (0.0, Attachment("ap1", -50, True, 0)),
        (1.2345, Attachment("", None, carrier, 0)),
        (1.2345 + outage_s, Attachment("ap2", -60, True, lease)),
    ]


def test_who_stands_still_is_not_asked_again() -> None:
    roaming = made(DESK)
    assert roaming.at(0.0).signal_dbm == -50
    assert roaming.next_s() == math.inf
    waits = made(replace(HALL, path=(Waypoint(0, 0, 0), Waypoint(50, 0, 0), Waypoint(60, 60, 0))))
    waits.at(0.0)
    assert waits.next_s() == 50
    waits.at(50)
    assert waits.next_s() == pytest.approx(50.0, abs=BEACON_S)
    waits.at(100)
    assert waits.next_s() == math.inf


def test_who_was_sent_to_a_weaker_one_stays_there() -> None:
    found = history(made(DESK, (1, "ap2"), (5, None), (9, None)), 20)
    assert names(found) == ["ap1", "", "ap2", "", "ap1", "", "ap2"]


def test_who_was_sent_away_may_come_back_by_the_hysteresis_more() -> None:
    """Forced to ap2 while ap1 is ahead, then walking on towards ap1."""
    walk = replace(HALL, path=(Waypoint(0, 25, 0), Waypoint(10, 25, 0), Waypoint(35, 0, 0)))
    found = history(made(walk, (1, "ap2")), 60)
    assert names(found) == ["ap1", "", "ap2", "", "ap1"]
    ahead_db = 35 * math.log10(35 / 25)
    x_m = next(
        x / 100 for x in range(2500, 100, -1) if 35 * math.log10((6000 - x) / x) >= ahead_db + 6
    )
    assert found[3][0] == pytest.approx(10 + 25 - x_m, abs=0.02)


def test_out_of_reach_and_back() -> None:
    """The carrier is lost, and joining takes as long as a handover."""
    settings = RoamingSettings(
        access_points=(AccessPoint("ap", 0, 0),),
        path=(Waypoint(0, 0, 0), Waypoint(100, 200, 0), Waypoint(200, 0, 0)),
        handover=HANDOVERS["full-scan-dhcp"],
    )
    found = history(made(settings), 250)
    assert names(found) == ["ap", "", "ap"]
    assert not found[1][1].carrier
    # 17 dBm less 47 dB: 30 + 35 log10(d) = 97 where it is lost, 92 where it can be joined.
    assert found[1][0] == pytest.approx(10 ** (67 / 35) / 2, abs=0.01)
    assert found[2][0] == pytest.approx(200 - 10 ** (62 / 35) / 2 + 3, abs=0.01)
    assert found[2][1].lease == 1


def test_nobody_there() -> None:
    settings = RoamingSettings((AccessPoint("ap", signal_dbm=-93),))
    assert history(made(settings, (3, None)), 10) == [(0.0, Attachment("", None, False, 0))]


def test_the_only_one_is_joined_again() -> None:
    settings = RoamingSettings((AccessPoint("ap", signal_dbm=-50),))
    found = history(made(settings, (2, None)), 10)
    assert [(t_s, one.access_point) for t_s, one in found] == [(0, "ap"), (2, ""), (2.3, "ap")]


def test_a_live_handover_is_at_once_and_another_one_replaces_it() -> None:
    roaming = made(DESK)
    roaming.at(5.0)
    roaming.force(5.0, "ap2")
    assert roaming.at(5.0).access_point == ""
    assert roaming.next_s() == 5.3
    roaming.force(5.1, "ap1")
    assert roaming.next_s() == 5.1
    assert roaming.at(5.3).access_point == ""
    assert roaming.next_s() == 5.1 + 0.3
    assert roaming.at(5.1 + 0.3).access_point == "ap1"


def test_one_that_is_past_begins_when_asked() -> None:
    roaming = made(DESK)
    roaming.at(5.0)
    roaming.force(1.0)
    assert roaming.at(5.0).access_point == ""
    assert roaming.next_s() == 5.3


def test_an_unknown_access_point() -> None:
    with pytest.raises(ValueError, match="allowed: ap1, ap2"):
        made(DESK, (1, "ap3"))


def test_a_target_out_of_reach_is_lost_again() -> None:
    settings = RoamingSettings(
        (AccessPoint("near", signal_dbm=-50), AccessPoint("far", signal_dbm=-99))
    )
    found = history(made(settings, (1, "far")), 10)
    assert names(found) == ["near", "", "near"]
    assert found[2][0] == pytest.approx(1.6)


def test_what_was_just_joined_is_kept_until_the_next_beacon() -> None:
    """Who rushes past an access point while joining it leaves it again, but not at once."""
    points = tuple(AccessPoint(f"ap{n}", 30.0 * n, 0) for n in range(4))
    rush = RoamingSettings(points, (Waypoint(0, 0, 0), Waypoint(3, 90, 0)), HANDOVERS["full-scan"])
    found = history(made(rush), 10)
    assert names(found) == ["ap0", "", "ap1", "", "ap2", "", "ap3"]
    joined_s, left_s = found[2][0], found[3][0]
    assert joined_s == found[1][0] + 1.5
    assert left_s == pytest.approx((joined_s // BEACON_S + 1) * BEACON_S)


def test_positions() -> None:
    path = (Waypoint(1, 0, 0), Waypoint(3, 4, 2), Waypoint(5, 4, 2))
    assert position_m(path, 0) == (0, 0)
    assert position_m(path, 2) == (2, 1)
    assert position_m(path, 3) == position_m(path, 4) == position_m(path, 9) == (4, 2)


PLACES = st.floats(-100, 100).map(lambda place_m: round(place_m, 2))
"""Metres, by the centimetre: how much nearer another access point is decides no beacon by rounding."""
HANDOVER = st.builds(Handover, st.floats(0.001, 3), st.booleans(), st.booleans())


@st.composite
def walks(draw: st.DrawFn) -> RoamingSettings:
    points = draw(st.lists(st.tuples(PLACES, PLACES), min_size=1, max_size=4))
    times = sorted(draw(st.sets(st.integers(0, 40), min_size=1, max_size=5)))
    return RoamingSettings(
        access_points=tuple(AccessPoint(f"ap{n}", *place) for n, place in enumerate(points)),
        path=tuple(Waypoint(float(t_s), draw(PLACES), draw(PLACES)) for t_s in times),
        handover=draw(HANDOVER),
        hysteresis_db=draw(st.floats(0, 10)),
    )


FORCED = st.lists(st.tuples(st.floats(0, 40), st.none()), max_size=3)

DASH = RoamingSettings(
    access_points=(AccessPoint("ap0", 0, 0), AccessPoint("ap1", 1, 0)),
    path=tuple(Waypoint(*at) for at in ((0, -2, 0), (3, 6, 84), (4, 0, 0))),
    handover=Handover(2.0, keeps_carrier=True, keeps_address=False),
    hysteresis_db=0.0,
)
"""Out of reach when the handover ends, with a wait before the next one can begin."""


@given(walks(), FORCED)
@example(DASH, [])
def test_every_break_is_as_long_as_stated(
    settings: RoamingSettings, forced: list[tuple[float, None]]
) -> None:
    """Or twice as long, and so on, where what it went for was out of reach when it came there
    and another one was not."""
    found = history(made(settings, *forced), 60)
    handover = settings.handover
    leases = 0
    for index, (t_s, attached) in enumerate(found):
        assert (attached.access_point == "") == (attached.signal_dbm is None)
        assert attached.carrier or not attached.access_point
        if index == 0 or not attached.access_point:
            continue
        leases += not handover.keeps_address
        assert attached.lease == leases
        before_s, before = found[index - 1]
        assert before.access_point == ""
        assert t_s - before_s >= handover.outage_s - 1e-9
        shortened = any(before_s < forced_s <= t_s for forced_s, _ in forced)
        if before.carrier and not shortened and before_s > 0 and index > 1:
            tries = (t_s - before_s) / handover.outage_s
            assert tries == pytest.approx(round(tries), abs=1e-5)


def test_who_was_strongest_when_it_was_forced_keeps_nothing_more_than_the_hysteresis() -> None:
    """On the way back the first one leads by 6 dB where it is 1.484 times as near: at 45.85 s."""
    there_and_back = (Waypoint(0, 0, 1), Waypoint(35, 35, 1), Waypoint(70, 0, 1))
    found = history(made(replace(HALL, path=there_and_back), (35.0, "ap2")), 70)
    left_s = next(t_s for t_s, one in found if t_s > 36 and one.access_point != "ap2")
    assert left_s == pytest.approx(45.85, abs=0.1)
    assert next(one.access_point for t_s, one in found if t_s > left_s) == "ap1"


@given(walks(), FORCED, st.lists(st.floats(0, 60), max_size=30))
def test_asking_more_or_less_often_changes_nothing(
    settings: RoamingSettings, forced: list[tuple[float, None]], asked: list[float]
) -> None:
    found = history(made(settings, *forced), 60)
    roaming = made(settings, *forced)
    for t_s in sorted(asked):
        expected = [attached for changed_s, attached in found if changed_s <= t_s][-1]
        attached = roaming.at(t_s)
        assert (attached.access_point, attached.lease) == (expected.access_point, expected.lease)


@given(walks(), st.floats(0, 40))
def test_signals_are_those_of_the_distance(settings: RoamingSettings, t_s: float) -> None:
    attached = made(settings).at(t_s)
    if attached.signal_dbm is None:
        return
    point = next(one for one in settings.access_points if one.name == attached.access_point)
    x_m, y_m = position_m(settings.path, t_s)
    distance_m = max(1.0, math.dist((x_m, y_m), (point.x_m, point.y_m)))
    assert attached.signal_dbm == pytest.approx(17 - 47 - 35 * math.log10(distance_m))
    assert attached.signal_dbm >= LEAVE_DBM
