import struct
from collections.abc import Callable
from typing import Any

import pytest
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from linklab.lab.kernel.netlink import Channel
from linklab.lab.shaping.shaping import Delay, RateQueue, ShapingError, Transit
from linklab.lab.shaping.tc import Counters

INDEX = 7
OPEN = "open"


class Recorder(Channel):
    """Takes what the kernel would be told; `seed` is what it says netem's seed is."""

    def __init__(self, seed: int | None = None) -> None:
        self.sent: list[tcmsg] = []
        self.raw: list[bytes] = []
        self._seed = seed
        self.count(0)

    def request(self, message: bytes | bytearray) -> bytes:
        read = tcmsg(bytes(message))
        read.decode()
        assert read["index"] == INDEX
        if read["header"]["type"] == 38:
            return self._answer()
        self.sent.append(read)
        self.raw.append(bytes(message))
        return b""

    def count(self, sent_bytes: int, queue_packets: int = 0, dropped_packets: int = 5) -> None:
        """What the counters say from now on."""
        sent_packets = sent_bytes // 1514
        self._counted = (sent_bytes, sent_packets, dropped_packets, 0, 0, 0, queue_packets, 1514)

    def _answer(self) -> bytes:
        seed = seed_of(self.raw[-1]) if self._seed is None else self._seed
        stats = struct.pack("=QIIIIIII", *self._counted)
        attributes = (
            struct.pack("=HH", 40, 2)
            + bytes(24)
            + struct.pack("=HHQ", 12, 14, seed)
            + struct.pack("=HH", 4 + len(stats), 3)
            + stats
        )
        return struct.pack("=IHHII", 36 + len(attributes), 36, 0, 0, 0) + bytes(20) + attributes

    def taken(self) -> list[Any]:
        """What was sent since the last time, class curves as tuples."""
        words: list[Any] = []
        for message in self.sent:
            kind = message.get_attr("TCA_KIND")
            options = message.get_attr("TCA_OPTIONS")
            if message["header"]["type"] == 40:
                curve = options.get_attr("TCA_HFSC_USC")
                words.append((curve["m1"], curve["d"], curve["m2"]))
            elif message["header"]["flags"] & 0x400:
                words.append(f"add {kind}")
            else:
                words.append(OPEN if options["action"] == 2 else options["limit"])
        self.sent.clear()
        return words


def seed_of(message: bytes) -> int:
    """The seed of netem, its last attribute here."""
    return int(struct.unpack("=Q", message[-8:])[0]) if len(message) > 8 else 0


@pytest.fixture
def netlink() -> Recorder:
    return Recorder()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Time stands still, and goes on by seconds when this is called."""
    now_ns = [10**9]
    monkeypatch.setattr("linklab.lab.shaping.shaping.time.monotonic_ns", lambda: now_ns[0])

    def go_on(seconds: float) -> None:
        now_ns[0] += round(seconds * 1e9)

    return go_on


def queue(netlink: Recorder, rate_bps: int) -> RateQueue:
    return RateQueue(netlink, INDEX, rate_bps, 500_000)


def delay(netlink: Recorder, seed: int = 1) -> Delay:
    return Delay(netlink, INDEX, Transit(0.005, 0.001, 0.003), seed)


def test_a_queue_is_built_with_its_limit_and_opened(netlink: Recorder) -> None:
    queue(netlink, 80_000_000)
    assert netlink.sent[2].get_attr("TCA_OPTIONS")["limit"] == 500_000
    assert netlink.taken() == ["add hfsc", (0, 0, 10_000_000), "add plug", OPEN]


def test_a_rate_changes_by_a_new_curve(netlink: Recorder) -> None:
    built = queue(netlink, 80_000_000)
    netlink.taken()
    built.set(1_000_000, is_held=False)
    assert netlink.taken() == [(0, 0, 125_000)]
    assert built.rate_bps == 1_000_000


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
    assert netlink.taken() == [(0, 2704, 375_000), OPEN]
    clock(0.001)
    built.set(10_000, is_held=False)
    assert netlink.taken() == [(0, 511_200, 1_250), OPEN]


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
    built = RateQueue(netlink, INDEX, 8_000_000, 500_000, 0.005)
    netlink.taken()
    netlink.count(sent_bytes=15_140, queue_packets=1)
    clock(0.01514 + late_s)
    built.set(4_000_000, is_held=False)
    (first, us, rate), opened = netlink.taken()
    assert (rate, opened) == (500_000, OPEN)
    assert first * us / 1e6 == pytest.approx(caught_up_bytes, rel=1e-3)
    assert us <= 10


def test_a_lag_is_lost_where_the_queue_was_empty_or_no_timer_is_late(
    netlink: Recorder, clock: Callable[[float], None]
) -> None:
    for slack_s, backlog in ((0.005, 0), (0.0, 1)):
        built = RateQueue(netlink, INDEX, 8_000_000, 500_000, slack_s)
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
    assert netlink.taken() == [(0, 12_112, 125_000), OPEN]


def test_a_pause_goes_once_the_queue_is_empty(
    netlink: Recorder, clock: Callable[[float], None]
) -> None:
    built = queue(netlink, 1_000_000)
    built.settle()
    netlink.count(sent_bytes=1514, queue_packets=1)
    built.set(3_000_000, is_held=False)
    netlink.taken()
    built.settle()
    assert netlink.taken() == []
    netlink.count(sent_bytes=3028)
    built.settle()
    built.settle()
    assert netlink.taken() == [(0, 0, 375_000)]


def test_a_held_queue_stays_so_while_it_is_empty(netlink: Recorder) -> None:
    built = queue(netlink, 1_000_000)
    built.set(1_000_000, is_held=True)
    netlink.taken()
    built.settle()
    assert netlink.taken() == []


def test_a_shut_queue_is_another_without_room(netlink: Recorder) -> None:
    built = queue(netlink, 80_000_000)
    netlink.taken()
    built.set(80_000_000, is_held=False, is_shut=True)
    shut = [message for message in netlink.sent if message.get_attr("TCA_KIND") == "plug"]
    first = [message["handle"] for message in shut]
    assert [message.get_attr("TCA_OPTIONS")["limit"] for message in shut] == [0, 0]
    assert netlink.taken() == ["add plug", OPEN, (0, 0, 10_000_000)]
    built.set(80_000_000, is_held=False)
    assert netlink.taken() == [500_000, (0, 0, 10_000_000)]
    built.set(80_000_000, is_held=False, is_shut=True)
    assert netlink.sent[0]["handle"] not in first


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


def test_counters_are_read(netlink: Recorder) -> None:
    netlink.count(3028, queue_packets=1)
    assert queue(netlink, 80_000_000).counters() == Counters(3028, 2, 5, 1514, 1)


def test_a_delay_is_sent_with_its_seed(netlink: Recorder) -> None:
    built = delay(netlink, 5)
    (message,) = netlink.sent
    options = message.get_attr("TCA_OPTIONS")
    assert options["loss"] / 0xFFFFFFFF == pytest.approx(0.003)
    assert seed_of(netlink.raw[0]) == 5
    assert options["limit"] * 1514 > 10_000_000_000 / 8  # Over 1 s at 10 Gbit/s
    assert built.counters().dropped_packets == 5


def test_jitter_is_a_wait_after_the_shortest_delay(netlink: Recorder) -> None:
    built = Delay(netlink, INDEX, Transit(0.005, 0.0), 1)
    built.set(Transit(0.005, 0.001))
    built.set(Transit(0.006, 0.0))
    calm, strays, ended = netlink.raw
    slot = struct.pack("=HH", 44, 12)
    assert slot not in calm
    assert struct.pack("=q", 4_000_000) in strays
    assert slot + bytes(24) + struct.pack("=q", 1_000_000) in strays
    assert struct.pack("=q", 6_000_000) in ended
    assert slot + bytes(40) in ended


def test_losses_come_in_bursts_where_they_are_asked_for(netlink: Recorder) -> None:
    built = delay(netlink)
    built.set(Transit(0.005, 0.001, 0.01, 4.0))
    assert netlink.sent[-1].get_attr("TCA_OPTIONS")["loss"] == 0
    r = round(0.25 * 0xFFFFFFFF)
    p = round(0.25 * 0.01 / 0.99 * 0xFFFFFFFF)
    assert struct.pack("=IIII", p, r, 0, 0) in netlink.raw[-1]
    built.set(Transit(0.005, 0.001, 1.0, 4.0))
    assert netlink.sent[-1].get_attr("TCA_OPTIONS")["loss"] == 0xFFFFFFFF


@pytest.mark.parametrize("kept", [0, 2])
def test_a_kernel_that_ignores_the_seed_is_refused(kept: int) -> None:
    with pytest.raises(ShapingError, match=f"netem kept seed {kept} instead of 1.*6.6"):
        delay(Recorder(kept))


def test_no_change_repeats_the_randomness_before_it(netlink: Recorder) -> None:
    def seeds(netlink: Recorder) -> list[int]:
        built = delay(netlink)
        for number in range(100):
            built.set(Transit(0.006 + number % 2 * 0.001, 0.001, 0.003))
        return [seed_of(message) for message in netlink.raw]

    drawn = seeds(netlink)
    assert len(drawn) == 101
    assert len(set(drawn)) == len(drawn)
    assert seeds(Recorder()) == drawn


def test_the_same_again_is_not_sent(netlink: Recorder) -> None:
    built = delay(netlink)
    built.set(Transit(0.005, 0.001, 0.003))
    assert len(netlink.raw) == 1
