import errno
import struct
from typing import Any

import pytest

from linklab.core.impairments import NO_IMPAIRMENTS, Impairments
from linklab.core.netlink_messages import attributes
from linklab.lab.kernel.netlink import NetlinkError
from linklab.lab.shaping.conftest import INDEX, Recorder, seed_of
from linklab.lab.shaping.impaired_path import ImpairedPath
from linklab.lab.shaping.tc import ShapingError
from linklab.models.delay_tables import DelayTable

DELAY_DIST, REORDER, CORRUPT, LOSS, RATE, LATENCY, JITTER = 2, 3, 4, 5, 6, 10, 11
TABLES = {"cell": DelayTable((-8192, 8192))}


def path(netlink: Recorder, impairments: Impairments = NO_IMPAIRMENTS) -> ImpairedPath:
    return ImpairedPath(netlink, INDEX, impairments, TABLES, 1)


def sent(netlink: Recorder) -> tuple[Any, dict[int, Any]]:
    """Returns the fixed options of the last message, and its attributes."""
    message = netlink.raw[-1]
    begin = message.index(b"netem\0") + 8 + 4 + 24
    return netlink.sent[-1].get_attr("TCA_OPTIONS"), attributes(memoryview(message)[begin:])


def test_a_path_without_impairments_only_keeps_packets_in_order(netlink: Recorder) -> None:
    path(netlink)
    fixed, options = sent(netlink)
    assert (fixed["loss"], fixed["duplicate"], fixed["gap"]) == (0, 0, 0)
    assert set(options) == {RATE, LATENCY, JITTER, 12, 14}
    assert bytes(options[JITTER]) == bytes(8)


def test_every_impairment_has_its_option(netlink: Recorder) -> None:
    path(
        netlink,
        Impairments(
            loss_ratio=0.25,
            delay_s=0.03,
            jitter_s=0.002,
            distribution="cell",
            in_order=False,
            reorder_ratio=0.5,
            duplicate_ratio=0.125,
            corrupt_ratio=0.0625,
        ),
    )
    fixed, options = sent(netlink)
    assert fixed["loss"] == pytest.approx(0x40000000, abs=1)
    assert fixed["duplicate"] == pytest.approx(0x20000000, abs=1)
    assert fixed["gap"] == 1
    assert bytes(options[DELAY_DIST]) == struct.pack("=hh", -8192, 8192)
    assert bytes(options[LATENCY]) == struct.pack("=q", 30_000_000)
    assert bytes(options[JITTER]) == struct.pack("=q", 2_000_000)
    assert bytes(options[REORDER]) == struct.pack("=II", 0x80000000, 0)
    assert bytes(options[CORRUPT]) == struct.pack("=II", 0x10000000, 0)
    assert bytes(options[RATE]) == bytes(16)


def test_the_kernel_gets_bursts_and_the_jitter_in_units_of_the_table(netlink: Recorder) -> None:
    bursts = Impairments(loss_ratio=0.2, loss_burst_packets=4.0, delay_s=0.03, jitter_s=0.002)
    path(netlink, bursts.changed(Impairments(distribution="pareto")))
    fixed, options = sent(netlink)
    assert (fixed["loss"], LOSS in options) == (0, True)
    assert bytes(options[JITTER]) == struct.pack("=q", 16_000_000)
    assert len(options[DELAY_DIST]) == 2 * 4096


def test_a_change_has_a_new_seed_and_ends_what_is_left_out(netlink: Recorder) -> None:
    built = path(netlink, Impairments(delay_s=0.03, jitter_s=0.002))
    assert seed_of(netlink.raw[0]) == 1
    built.set(Impairments(delay_s=0.03, jitter_s=0.002))
    assert len(netlink.sent) == 1
    built.set(NO_IMPAIRMENTS)
    _, options = sent(netlink)
    assert seed_of(netlink.raw[-1]) != 1
    # netem keeps the jitter of a message without one.
    assert bytes(options[JITTER]) == bytes(8)
    assert bytes(options[LATENCY]) == bytes(8)
    assert built.lost_packets() == 5


def test_a_kernel_that_ignores_the_seed_is_refused() -> None:
    with pytest.raises(ShapingError, match="netem kept seed 2 instead of 1"):
        path(Recorder(2))


def kinds(netlink: Recorder) -> list[str]:
    """Returns what was sent: qdiscs and added filters by kind, `removed` for a removed filter."""
    found = [message.get_attr("TCA_KIND") or "removed" for message in netlink.sent]
    netlink.sent.clear()
    return found


def test_filters_come_and_go_and_what_stays_the_same_is_not_touched(netlink: Recorder) -> None:
    policed = Impairments(police_bps=8_000_000, police_burst_bytes=100_000)
    built = path(netlink, policed)
    assert kinds(netlink) == ["netem", "clsact", "matchall"]
    more = policed.changed(Impairments(bleach_ecn=True, mtu_bytes=1200, black_hole=True))
    built.set(more)
    assert kinds(netlink) == ["netem", "matchall", "matchall", "matchall"]  # One of each family
    assert built.lost_packets() == 10
    built.set(more.changed(Impairments(police_bps=0)))
    assert kinds(netlink) == ["netem", "removed"]
    built.set(NO_IMPAIRMENTS)
    assert kinds(netlink) == ["netem", "removed", "removed", "removed"]


class WithoutPolicers(Recorder):
    """A kernel that has header filters and no policers."""

    def request(self, message: bytes | bytearray) -> bytes:
        if b"matchall" in message:
            raise NetlinkError(errno.ENOENT, "no such module")
        return super().request(message)


def test_what_the_kernel_lacks_leaves_the_rest_as_it_was() -> None:
    netlink = WithoutPolicers()
    built = path(netlink)
    dropping = Impairments(mtu_bytes=1200, black_hole=True)
    with pytest.raises(ShapingError, match="this kernel lacks policers"):
        built.set(dropping.changed(Impairments(police_bps=8_000_000, police_burst_bytes=10_000)))
    added = kinds(netlink)
    built.set(NO_IMPAIRMENTS)
    assert kinds(netlink).count("removed") == len(added) - len(["netem", "netem", "clsact"])
    built.set(Impairments(loss_ratio=0.1))
    assert kinds(netlink) == ["netem"]


def test_an_mtu_without_a_black_hole_needs_no_filter(netlink: Recorder) -> None:
    path(netlink, Impairments(mtu_bytes=1200))
    assert kinds(netlink) == ["netem"]
