"""Tests the estimated capacity of links with known properties, from downloads over them."""

import itertools
from collections.abc import Callable

import pytest

from linklab.field import capacity, link_history
from linklab.field import simulated_for_test as simulated
from linklab.field.capacity import CARRIER, HELD, LOST, Capacity
from linklab.field.simulated_for_test import SimulatedLink

MBIT = 1e6


def of(link: SimulatedLink, end_s: float = 10.0) -> Capacity:
    records = simulated.records([link], end_s)
    return capacity.of_history(
        link_history.of_records(records, link.name, link.device, end_s), end_s
    )


def breaks(known: Capacity) -> list[tuple[float, float, str]]:
    """To 20 ms, of samples that are 100 ms apart."""
    return [(_to_20_ms(one.start_s), _to_20_ms(one.end_s), one.kind) for one in known.breaks]


def _to_20_ms(t_s: float) -> float:
    return round(round(t_s * 50) / 50, 2)


def mean_bps(known: Capacity, begin_s: float, end_s: float) -> float:
    return sum(
        one.rate_bps * max(0.0, min(end_s, one.end_s) - max(begin_s, one.start_s))
        for one in known.steps
    ) / (end_s - begin_s)


def test_steps_follow_each_other_from_the_start_to_the_end() -> None:
    steps = of(SimulatedLink(asked=((0.1, 3.0), (5.0, 9.0)))).steps
    assert steps[0].start_s == 0.0
    assert steps[-1].end_s == 10.0
    for one, other in itertools.pairwise(steps):
        assert one.end_s == pytest.approx(other.start_s)
        assert one.end_s > one.start_s


def test_a_link_with_a_queue_is_what_it_carries() -> None:
    known = of(SimulatedLink(rate_bps=lambda t_s: 20 * MBIT if t_s < 5 else 35 * MBIT))
    assert known.breaks == ()
    assert known.base_rtts == ((0.0, 0.02),)
    assert known.filled_s == pytest.approx(9.8, abs=0.11)
    for second in range(1, 5):
        assert mean_bps(known, second, second + 1) == pytest.approx(20 * MBIT, rel=0.003)
    for second in range(5, 9):
        assert mean_bps(known, second, second + 1) == pytest.approx(35 * MBIT, rel=0.003)


def test_a_connection_that_speeds_up_does_not_slow_its_link_down() -> None:
    def rate(t_s: float) -> float:
        return 20 * MBIT * min(1.0, t_s)

    known = of(SimulatedLink(rate_bps=rate, queued_s=lambda t_s: 0.05 if t_s > 1 else 0.0))
    assert mean_bps(known, 0, 1) == pytest.approx(20 * MBIT, rel=0.01)


def test_what_is_steady_without_a_queue_is_taken_as_it_is() -> None:
    """Losses or the server held it back; what the link could do nobody knows."""
    known = of(
        SimulatedLink(
            rate_bps=lambda t_s: (6 if 3 < t_s < 7 else 20) * MBIT,
            queued_s=lambda t_s: 0.0 if 3 < t_s < 7.05 else 0.05,
        )
    )
    assert known.unfilled_s == pytest.approx(4.0, abs=0.2)
    assert mean_bps(known, 4, 6) == pytest.approx(6 * MBIT, rel=0.01)
    assert mean_bps(known, 8, 9) == pytest.approx(20 * MBIT, rel=0.01)


def test_pauses_between_requests_are_not_the_links() -> None:
    asked = tuple((0.1 + n * 0.5, 0.1 + n * 0.5 + 0.35) for n in range(19))
    known = of(SimulatedLink(asked=asked, queued_s=lambda _: 0.0))
    assert known.unfilled_s == 0
    assert known.mean_bps() == pytest.approx(20 * MBIT, rel=0.05)


def test_an_idle_time_has_the_rate_of_those_beside_it() -> None:
    known = of(
        SimulatedLink(
            rate_bps=lambda t_s: (10 if t_s < 5 else 20) * MBIT, asked=((0.1, 3.0), (6.0, 10.0))
        )
    )
    assert mean_bps(known, 3.1, 6) == pytest.approx(15 * MBIT, rel=0.02)
    assert not any(one.is_seen for one in known.steps if 3.1 < one.start_s < 5.9)


def silent(begin_s: float, end_s: float) -> Callable[[float], float]:
    return lambda t_s: 0.0 if begin_s <= t_s < end_s else 20 * MBIT


def test_packets_that_waited_make_a_break_that_held_them() -> None:
    def queued(t_s: float) -> float:
        return 0.5 if 5.26 <= t_s < 5.4 else 0.05

    known = of(SimulatedLink(queued_s=queued, rate_bps=silent(3.26, 5.26)))
    assert breaks(known) == [(3.26, 5.26, HELD)]
    assert mean_bps(known, 2, 3.2) == pytest.approx(20 * MBIT, rel=0.01)
    assert mean_bps(known, 5.3, 9) == pytest.approx(20 * MBIT, rel=0.01)


def test_packets_that_never_came_make_a_break_that_lost_them() -> None:
    known = of(SimulatedLink(rate_bps=silent(3.0, 5.0)))
    began_s = 3.0 - 0.05 - 0.02 / 2  # What had passed the far end by then still came.
    assert breaks(known) == [(_to_20_ms(began_s), 5.0, LOST)]
    assert known.breaks[0].has_ended


def test_a_link_that_never_came_back_is_gone_to_the_end() -> None:
    taken = {"t_ns": 6_000_000_000, "event": "request", "id": 999, "link": "lte", "from": "wifi"}
    known = of(SimulatedLink(asked=((0.1, 5.0),), more=(taken,), rate_bps=silent(3.0, 10.0)))
    assert breaks(known) == [(2.94, 10.0, LOST)]
    assert not known.breaks[0].has_ended


def test_a_packet_or_two_do_not_end_a_silence() -> None:
    def trickle(t_s: float) -> float:
        return 20 * MBIT if not 3 <= t_s < 6 else 24 * 1514 * 8 if 0 <= t_s - 4.21 < 0.05 else 0

    known = of(
        SimulatedLink(rate_bps=trickle, queued_s=lambda t_s: 0.4 if 5.9 < t_s < 6.2 else 0.05)
    )
    assert breaks(known) == [(3.0, 6.0, HELD)]


def test_a_new_connection_after_a_silence_tells_when_the_device_was_back() -> None:
    again = {
        "t_ns": 5_040_000_000,
        "event": "connected",
        "tcp_ns": 20_000_000,
        "tls_ns": 20_000_000,
    }
    known = of(SimulatedLink(more=(again,), rate_bps=silent(3.0, 5.05)))
    assert breaks(known) == [(3.0, 5.0, CARRIER)]
    refused = {"t_ns": 4_000_000_000, "event": "ban", "error": "no answer in time"}
    known = of(SimulatedLink(more=(refused, again), rate_bps=silent(3.0, 5.05)))
    assert [one.kind for one in known.breaks] == [LOST]


def test_a_first_connection_that_takes_long_was_held() -> None:
    known = of(SimulatedLink(tcp_s=0.34, asked=((0.4, 10.0),)))
    assert breaks(known) == [(0.0, 0.34, HELD)]


def test_a_silence_after_work_was_given_away_is_no_break() -> None:
    taken = {"t_ns": 9_000_000_000, "event": "request", "id": 999, "link": "lte", "from": "wifi"}
    assert of(SimulatedLink(more=(taken,), rate_bps=silent(9.1, 10.0))).breaks == ()


@pytest.mark.parametrize("rate_bps", [4 * MBIT, 80 * MBIT])
def test_a_hole_and_its_burst_are_a_link_that_carried_on(rate_bps: float) -> None:
    """As a program sees it that gets bytes in their order, where nobody counted packets."""

    def rate(t_s: float) -> float:
        return 0.0 if 4.0 <= t_s < 4.6 else rate_bps * (7 if 4.6 <= t_s < 4.7 else 1)

    known = of(SimulatedLink(rate_bps=rate, counts_segments=False))
    assert known.breaks == ()
    assert known.overflowed
    for tenth in range(35, 55):
        at_s = tenth / 10
        assert mean_bps(known, at_s, at_s + 0.1) == pytest.approx(rate_bps, rel=0.02)


def test_the_longest_queue_is_its_size_where_packets_were_lost_at_it() -> None:
    def queued(t_s: float) -> float:
        return 0.2 * min(t_s, 5) / 5 if t_s < 5.05 else 0.1

    known = of(SimulatedLink(queued_s=queued))
    assert known.queue_bytes == pytest.approx(0.2 * 20 * MBIT / 8, rel=0.02)
    assert not known.overflowed
    assert of(
        SimulatedLink(queued_s=queued, out_of_order=lambda t_s: 9 if t_s > 5 else 0)
    ).overflowed
    after_a_break = SimulatedLink(
        queued_s=queued,
        rate_bps=silent(6.5, 8.5),
        out_of_order=lambda t_s: 20 if t_s > 8.5 else 9 if t_s > 5 else 0,
    )
    assert of(after_a_break).overflowed
    at_random = SimulatedLink(queued_s=queued, out_of_order=lambda t_s: round(3 * t_s))
    assert not of(at_random).overflowed


def test_a_later_connection_has_a_round_trip_of_its_own() -> None:
    again = {
        "t_ns": 5_000_000_000,
        "event": "connected",
        "tcp_ns": 20_000_000,
        "tls_ns": 20_000_000,
    }
    slow = SimulatedLink(more=(again,), rtt_s=0.02)
    records = [
        one
        if one.t_s <= 5 or one.event != "sample"
        else type(one)(
            one.t_ns,
            one.event,
            one.link,
            segments=one.segments,
            rtt_ns=one.rtt_ns + 30_000_000,
            min_rtt_ns=50_000_000,
        )
        for one in simulated.records([slow], 10.0)
    ]
    known = capacity.of_history(link_history.of_records(records, "wifi", "wlan0", 10.0), 10.0)
    assert known.base_rtts == ((0.0, 0.02), (5.0, 0.05))


def test_a_link_that_carried_nothing_tells_nothing() -> None:
    with pytest.raises(capacity.CapacityError, match="carried nothing"):
        of(SimulatedLink(asked=()))


def test_a_download_that_was_over_at_once_tells_the_least() -> None:
    known = of(SimulatedLink(asked=((0.1, 0.25),), queued_s=lambda _: 0.0), 0.3)
    assert not any(one.is_seen for one in known.steps)
    assert known.mean_bps() == pytest.approx(20 * MBIT, rel=0.1)
