import struct

import pytest

from linklab.lab.shaping.conftest import INDEX, Recorder, seed_of
from linklab.lab.shaping.delay import Netem, transit
from linklab.lab.shaping.tc import ShapingError


def delay(netlink: Recorder, seed: int = 1) -> Netem:
    return Netem(netlink, INDEX, transit(0.005, 0.001, 0.003), seed)


def test_a_delay_is_sent_with_its_seed(netlink: Recorder) -> None:
    built = delay(netlink, 5)
    (message,) = netlink.sent
    options = message.get_attr("TCA_OPTIONS")
    assert options["loss"] / 0xFFFFFFFF == pytest.approx(0.003)
    assert seed_of(netlink.raw[0]) == 5
    assert options["limit"] * 1514 > 10_000_000_000 / 8  # Over 1 s at 10 Gbit/s
    assert built.counters().dropped_packets == 5


def test_jitter_is_a_wait_after_the_shortest_delay(netlink: Recorder) -> None:
    built = Netem(netlink, INDEX, transit(0.005), 1)
    built.set(transit(0.005, 0.001))
    built.set(transit(0.006, 0.0))
    calm, strays, ended = netlink.raw
    slot = struct.pack("=HH", 44, 12)
    assert slot + bytes(40) in calm
    assert struct.pack("=q", 4_000_000) in strays
    assert slot + bytes(24) + struct.pack("=q", 1_000_000) in strays
    assert struct.pack("=q", 6_000_000) in ended
    assert slot + bytes(40) in ended


def test_losses_come_in_bursts_where_they_are_asked_for(netlink: Recorder) -> None:
    built = delay(netlink)
    built.set(transit(0.005, 0.001, 0.01, 4.0))
    assert netlink.sent[-1].get_attr("TCA_OPTIONS")["loss"] == 0
    r = round(0.25 * 0xFFFFFFFF)
    p = round(0.25 * 0.01 / 0.99 * 0xFFFFFFFF)
    assert struct.pack("=IIII", p, r, 0, 0) in netlink.raw[-1]
    built.set(transit(0.005, 0.001, 1.0, 4.0))
    assert netlink.sent[-1].get_attr("TCA_OPTIONS")["loss"] == 0xFFFFFFFF


@pytest.mark.parametrize("kept", [0, 2])
def test_a_kernel_that_ignores_the_seed_is_refused(kept: int) -> None:
    with pytest.raises(ShapingError, match=f"netem kept seed {kept} instead of 1"):
        delay(Recorder(kept))


class WithoutSeeds(Recorder):
    """A kernel before 6.6: its answer does not speak of a seed."""

    def _answer(self) -> bytes:
        return super()._answer().replace(struct.pack("=HH", 12, 14), struct.pack("=HH", 12, 99))


def test_a_kernel_without_seeds_will_do() -> None:
    assert delay(WithoutSeeds()).counters().dropped_packets == 5


def test_no_change_repeats_the_randomness_before_it(netlink: Recorder) -> None:
    def seeds(netlink: Recorder) -> list[int]:
        built = delay(netlink)
        for number in range(100):
            built.set(transit(0.006 + number % 2 * 0.001, 0.001, 0.003))
        return [seed_of(message) for message in netlink.raw]

    drawn = seeds(netlink)
    assert len(drawn) == 101
    assert len(set(drawn)) == len(drawn)
    assert seeds(Recorder()) == drawn


def test_the_same_again_is_not_sent(netlink: Recorder) -> None:
    built = delay(netlink)
    built.set(transit(0.005, 0.001, 0.003))
    assert len(netlink.raw) == 1
