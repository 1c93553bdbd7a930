import struct
from collections.abc import Callable

import pytest

from linklab.lab.shaping.conftest import INDEX, NESTED, WAKE, Recorder
from linklab.lab.shaping.hfsc_queue import HfscQueue
from linklab.lab.shaping.leaf_queue import LeafQueue
from linklab.lab.shaping.rate_queue_test import MARKING, Marking
from linklab.queues import registry


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Time stands still, and goes on by seconds when this is called."""
    now_ns = [10**9]
    monkeypatch.setattr("linklab.lab.shaping.hfsc_queue.time.monotonic_ns", lambda: now_ns[0])

    def go_on(seconds: float) -> None:
        now_ns[0] += round(seconds * 1e9)

    return go_on


def queue(netlink: Recorder, rate_bps: int, slack_s: float = 0.0) -> HfscQueue:
    return HfscQueue(
        netlink, INDEX, rate_bps, LeafQueue(netlink, INDEX, 500_000, registry.DEFAULT), slack_s
    )


def test_a_queue_is_built_with_its_limit_beside_what_wakes_it(netlink: Recorder) -> None:
    queue(netlink, 80_000_000)
    *_, waker, leaf = netlink.sent
    assert netlink.raw[-1].endswith(b"bfifo\0\0\0" + struct.pack("=HHI", 8, NESTED | 2, 500_000))
    assert waker["parent"] != leaf["parent"]
    rate = (0, 0, 10_000_000)
    assert netlink.taken() == ["add hfsc", rate, rate, "add plug", "add bfifo"]


def test_a_rate_changes_by_a_new_curve(netlink: Recorder) -> None:
    built = queue(netlink, 80_000_000)
    netlink.taken()
    built.set(1_000_000, is_held=False)
    assert netlink.taken() == [(0, 0, 125_000)]
    assert built.rate_bps == 1_000_000


def test_a_shut_queue_has_its_new_size_once_it_opens(netlink: Recorder) -> None:
    built = queue(netlink, 80_000_000)
    built.set(80_000_000, is_held=False, is_shut=True)
    netlink.taken()
    built.resize(20_000)
    assert netlink.taken() == []
    built.set(80_000_000, is_held=False)
    opened = next(raw for raw in reversed(netlink.raw) if b"bfifo" in raw)
    assert opened.endswith(struct.pack("=I", 20_000))


def test_the_same_again_is_not_asked_for(netlink: Recorder) -> None:
    built = queue(netlink, 80_000_000)
    built.set(80_000_000, is_held=True)
    netlink.taken()
    built.set(80_000_000, is_held=True)
    assert netlink.taken() == []


def test_what_is_owed_is_a_pause_at_the_new_rate(
    netlink: Recorder, clock: Callable[[float], None]
) -> None:
    """Of a frame begun 4 ms ago at 1 Mbit/s 1014 bytes are left: 2704 us at 3 Mbit/s."""
    built = queue(netlink, 1_000_000)
    netlink.taken()
    netlink.count(sent_bytes=1514, queue_packets=1)
    clock(0.004)
    built.set(3_000_000, is_held=False)
    assert netlink.taken() == [(0, 2704, 375_000), WAKE]
    clock(0.001)
    built.set(10_000, is_held=False)
    assert netlink.taken() == [(0, 511_200, 1_250), WAKE]


def test_an_empty_queue_owes_the_rest_of_its_last_frame_and_then_nothing(
    netlink: Recorder, clock: Callable[[float], None]
) -> None:
    built = queue(netlink, 1_000_000)
    netlink.taken()
    netlink.count(sent_bytes=1514)
    clock(0.004)
    built.set(3_000_000, is_held=False)
    assert netlink.taken() == [(0, 2704, 375_000)]
    clock(0.003)
    built.set(1_000_000, is_held=False)
    assert netlink.taken() == [(0, 0, 125_000)]


@pytest.mark.parametrize(("late_s", "caught_up_bytes"), [(0.002, 2_000), (0.010, 5_000)])
def test_a_backlog_that_lags_catches_up_as_much_as_the_slack_allows(
    netlink: Recorder, clock: Callable[[float], None], late_s: float, caught_up_bytes: int
) -> None:
    built = queue(netlink, 8_000_000, slack_s=0.005)
    netlink.taken()
    netlink.count(sent_bytes=15_140, queue_packets=1)
    clock(0.01514 + late_s)
    built.set(4_000_000, is_held=False)
    (first, us, rate), opened = netlink.taken()
    assert (rate, opened) == (500_000, WAKE)
    assert first * us / 1e6 == pytest.approx(caught_up_bytes, rel=1e-3)
    assert us <= 10


def test_a_lag_is_lost_where_the_queue_was_empty_or_no_timer_is_late(
    netlink: Recorder, clock: Callable[[float], None]
) -> None:
    for slack_s, backlog in ((0.005, 0), (0.0, 1)):
        built = queue(netlink, 8_000_000, slack_s=slack_s)
        netlink.taken()
        netlink.count(sent_bytes=0, queue_packets=backlog)
        clock(0.002)
        built.set(4_000_000, is_held=False)
        assert netlink.taken()[0] == (0, 0, 500_000)


def test_a_held_queue_pauses_for_as_long_as_a_curve_can(netlink: Recorder) -> None:
    built = queue(netlink, 80_000_000)
    netlink.taken()
    built.set(80_000_000, is_held=True)
    built.set(40_000_000, is_held=True)
    assert netlink.taken() == [(0, 2**32 - 1, 1)] * 2
    built.set(40_000_000, is_held=False)
    assert netlink.taken() == [(0, 0, 5_000_000)]


def test_time_in_which_a_queue_is_held_pays_nothing(
    netlink: Recorder, clock: Callable[[float], None]
) -> None:
    built = queue(netlink, 1_000_000)
    netlink.count(sent_bytes=1514, queue_packets=1)
    built.set(1_000_000, is_held=True)
    clock(10.0)
    netlink.taken()
    built.set(1_000_000, is_held=False)
    assert netlink.taken() == [(0, 12_112, 125_000), WAKE]


def test_a_pause_goes_once_the_queue_is_empty(
    netlink: Recorder, clock: Callable[[float], None]
) -> None:
    built = queue(netlink, 1_000_000)
    built.counters()
    netlink.count(sent_bytes=1514, queue_packets=1)
    built.set(3_000_000, is_held=False)
    netlink.taken()
    built.counters()
    assert netlink.taken() == []
    netlink.count(sent_bytes=3028)
    built.counters()
    built.counters()
    assert netlink.taken() == [(0, 0, 375_000)]


def test_a_held_queue_stays_so_while_it_is_empty(netlink: Recorder) -> None:
    built = queue(netlink, 1_000_000)
    built.set(1_000_000, is_held=True)
    netlink.taken()
    built.counters()
    assert netlink.taken() == []


def test_a_shut_queue_is_another_without_room(netlink: Recorder) -> None:
    built = queue(netlink, 80_000_000)
    netlink.taken()
    built.set(80_000_000, is_held=False, is_shut=True)
    shut = netlink.sent[0]
    assert shut.get_attr("TCA_OPTIONS")["limit"] == 0
    assert netlink.taken() == ["add plug", (0, 0, 10_000_000)]
    built.set(80_000_000, is_held=False)
    opened = netlink.sent[0]
    assert netlink.raw[-2].endswith(struct.pack("=HHI", 8, NESTED | 2, 500_000))
    assert opened["parent"] == shut["parent"]
    assert opened["handle"] != shut["handle"]
    assert netlink.taken() == ["add bfifo", (0, 0, 10_000_000)]


def test_what_is_dropped_while_it_is_shut_is_lost(netlink: Recorder) -> None:
    built = queue(netlink, 80_000_000)

    def counted(dropped_packets: int) -> tuple[int, int]:
        netlink.count(0, dropped_packets=dropped_packets)
        counters = built.counters()
        return counters.dropped_packets, counters.lost_packets

    assert counted(5) == (5, 0)
    built.set(80_000_000, is_held=False, is_shut=True)
    assert counted(9) == (5, 4)
    built.set(80_000_000, is_held=True, is_shut=True)
    assert counted(10) == (5, 5)
    built.set(80_000_000, is_held=False)
    assert counted(12) == (7, 5)
    built.set(80_000_000, is_held=False, is_shut=True)
    assert counted(20) == (7, 13)


def test_what_only_a_discipline_counts_outlasts_an_outage(
    netlink: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry._OF_SETTINGS, Marking, MARKING)
    built = HfscQueue(netlink, INDEX, 80_000_000, LeafQueue(netlink, INDEX, 500_000, Marking()))

    def counted(marked: int) -> int:
        netlink.own = struct.pack("=I", marked)
        return built.own_counters()["marked_packets"]

    assert [counted(0), counted(3)] == [0, 3]
    built.set(80_000_000, is_held=False, is_shut=True)
    assert counted(50) == 3  # This is another leaf.
    built.set(80_000_000, is_held=False)
    assert counted(2) == 5
