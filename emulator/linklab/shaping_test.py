import struct

import pytest
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from linklab import shaping
from linklab.shaping import MIN_HTB_RATE_BPS, Delay, RateQueue, ShapingError, Transit
from linklab.tc import Channel, Counters

INDEX = 7
OPEN, SHUT = "open", "shut"
_PLUG = {3: "add-plug", 2: OPEN, 0: SHUT}


class Recorder(Channel):
    """Takes what the kernel would be told; `seed` is what it says netem's seed is."""

    def __init__(self, seed: int | None = None) -> None:
        self.sent: list[tcmsg] = []
        self.raw: list[bytes] = []
        self._seed = seed

    def request(self, message: bytes | bytearray) -> bytes:
        read = tcmsg(bytes(message))
        read.decode()
        assert read["index"] == INDEX
        if read["header"]["type"] == 38:
            return self._answer()
        self.sent.append(read)
        self.raw.append(bytes(message))
        return b""

    def _answer(self) -> bytes:
        seed = seed_of(self.raw[-1]) if self._seed is None else self._seed
        stats = struct.pack("=QIIIIIII", 3028, 2, 5, 0, 0, 0, 1, 1514)
        attributes = (
            struct.pack("=HH", 40, 2) + bytes(24) + struct.pack("=HHQ", 12, 14, seed)
            + struct.pack("=HH", 4 + len(stats), 3) + stats
        )  # fmt: skip
        return struct.pack("=IHHII", 36 + len(attributes), 36, 0, 0, 0) + bytes(20) + attributes

    def taken(self) -> list[str]:
        """What was sent since the last time: class rates in bytes/s and gate actions."""
        words = []
        for message in self.sent:
            kind = message.get_attr("TCA_KIND")
            options = message.get_attr("TCA_OPTIONS")
            new = "add" if message["header"]["flags"] & 0x400 else "change"
            if kind == "plug":
                words.append(_PLUG[options["action"]])
            elif message["header"]["type"] == 40:
                parameters = options.get_attr("TCA_HTB_PARMS")
                words.append(f"{new}-class {parameters['rate']}")
            else:
                words.append(f"{new} {kind}")
        self.sent.clear()
        return words


def seed_of(message: bytes) -> int:
    """The seed of netem, its last attribute here."""
    return int(struct.unpack("=Q", message[-8:])[0]) if len(message) > 8 else 0


@pytest.fixture
def netlink() -> Recorder:
    return Recorder()


def queue(netlink: Recorder, rate_bps: int) -> RateQueue:
    return RateQueue(netlink, INDEX, rate_bps, 500_000)


def delay(netlink: Recorder, seed: int = 1) -> Delay:
    return Delay(netlink, INDEX, Transit(0.005, 0.001, 0.003), seed)


def test_a_queue_is_built_with_its_limit_before_its_gate_opens(netlink: Recorder) -> None:
    built = queue(netlink, 80_000_000)
    assert netlink.sent[2].get_attr("TCA_OPTIONS")["limit"] == 500_000
    assert netlink.taken() == ["add htb", "add-class 10000000", "add-plug", OPEN]
    assert built.gate_period_s is None


def test_a_very_slow_queue_starts_closed_at_the_least_rate_of_the_class(netlink: Recorder) -> None:
    built = queue(netlink, 10_000)
    assert netlink.taken() == ["add htb", f"add-class {MIN_HTB_RATE_BPS // 8}", "add-plug"]
    assert built.gate_period_s == pytest.approx(1514 * 8 / 10_000)


def test_the_least_rate_itself_needs_no_gate(netlink: Recorder) -> None:
    built = queue(netlink, MIN_HTB_RATE_BPS)
    assert built.gate_period_s is None
    assert netlink.taken()[-1] == OPEN
    assert queue(netlink, MIN_HTB_RATE_BPS - 1).gate_period_s is not None
    # One frame at the least rate is in debt for no longer than is promised.
    debt_s = 1514 / (MIN_HTB_RATE_BPS // 8)
    assert debt_s == pytest.approx(shaping.MAX_DEBT_S, rel=1e-4)


def test_rates_change_in_the_class_alone(netlink: Recorder) -> None:
    built = queue(netlink, 80_000_000)
    netlink.taken()
    built.set_rate(1_000_000)
    assert netlink.taken() == ["change-class 125000"]
    assert built.rate_bps == 1_000_000
    assert built.changes == 1


@pytest.mark.parametrize(("slack_s", "bucket_s"), [(0.0, 160e-6), (0.005, 5160e-6)])
def test_the_bucket_holds_a_frame_and_what_late_timers_would_lose(
    netlink: Recorder, slack_s: float, bucket_s: float
) -> None:
    built = RateQueue(netlink, INDEX, 80_000_000, 500_000, slack_s)
    built.set_rate(10_000)
    built.set_rate(80_000_000)
    sizes = [
        message.get_attr("TCA_OPTIONS").get_attr("TCA_HTB_PARMS")["buffer"] * 64e-9
        for message in netlink.sent
        if message["header"]["type"] == 40
    ]
    assert sizes == pytest.approx([bucket_s, 8 / (MIN_HTB_RATE_BPS), bucket_s], rel=0.01)


def test_the_gate_closes_before_a_slow_rate_and_opens_after_it(netlink: Recorder) -> None:
    built = queue(netlink, 80_000_000)
    netlink.taken()
    built.set_rate(10_000)
    assert netlink.taken() == [SHUT, f"change-class {MIN_HTB_RATE_BPS // 8}"]
    built.set_rate(20_000)
    assert netlink.taken() == [f"change-class {MIN_HTB_RATE_BPS // 8}"]
    assert built.gate_period_s == pytest.approx(1514 * 8 / 20_000)
    built.set_rate(80_000_000)
    assert netlink.taken() == ["change-class 10000000", OPEN]
    assert built.changes == 3


def test_a_rate_change_while_the_gate_is_open_closes_it(netlink: Recorder) -> None:
    built = queue(netlink, 10_000)
    built.open_gate()
    netlink.taken()
    built.set_rate(20_000)
    assert netlink.taken()[0] == SHUT


def test_a_gate_is_told_only_what_is_new(netlink: Recorder) -> None:
    built = queue(netlink, 10_000)
    netlink.taken()
    built.close_gate()
    assert netlink.taken() == []
    built.open_gate()
    built.open_gate()
    assert netlink.taken() == [OPEN]
    built.close_gate()
    built.close_gate()
    assert netlink.taken() == [SHUT]


def test_a_held_queue_stays_shut_whatever_its_rate(netlink: Recorder) -> None:
    built = queue(netlink, 80_000_000)
    netlink.taken()
    built.set_held(True)
    assert netlink.taken() == [SHUT]
    built.set_rate(40_000_000)
    built.set_held(True)
    assert netlink.taken() == ["change-class 5000000"]
    assert built.changes == 2
    built.set_held(False)
    assert netlink.taken() == [OPEN]
    assert built.changes == 3


def test_the_gate_of_a_held_queue_is_not_worked(netlink: Recorder) -> None:
    built = queue(netlink, 10_000)
    built.set_held(True)
    assert built.gate_period_s is None
    built.set_held(False)
    assert built.gate_period_s == pytest.approx(1514 * 8 / 10_000)
    assert netlink.taken()[-1] == "add-plug"  # Shut before, and shut again


def test_counters_are_those_of_the_leaf(netlink: Recorder) -> None:
    assert queue(netlink, 80_000_000).counters() == Counters(3028, 2, 5, 1514, 1)


def test_a_delay_is_sent_with_its_seed(netlink: Recorder) -> None:
    built = delay(netlink, 5)
    (message,) = netlink.sent
    options = message.get_attr("TCA_OPTIONS")
    assert options["loss"] / 0xFFFFFFFF == pytest.approx(0.003)
    assert seed_of(netlink.raw[0]) == 5
    assert options["limit"] * 1514 > 10_000_000_000 / 8  # Over 1 s at 10 Gbit/s
    assert built.counters().dropped_packets == 5


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
