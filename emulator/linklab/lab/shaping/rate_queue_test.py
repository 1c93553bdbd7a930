import contextlib
import errno
import socket
import struct
import time
from dataclasses import dataclass

import pytest

from linklab.core.netlink_messages import attribute, message, nested
from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.netlink import Channel, NetlinkError
from linklab.lab.shaping import link_qdisc, tc
from linklab.lab.shaping.conftest import INDEX, NESTED, Recorder
from linklab.lab.shaping.hfsc_queue import HfscQueue
from linklab.lab.shaping.leaf_queue import LeafQueue
from linklab.lab.shaping.rate_queue import LinkQueue, RateQueue, rate_queue
from linklab.lab.shaping.tc import Counters, ShapingError
from linklab.queues import registry
from linklab.queues.discipline import AnyDiscipline, Discipline
from linklab.schema.rows import Table


def queue(netlink: Recorder, rate_bps: int) -> RateQueue:
    return rate_queue(netlink, INDEX, rate_bps, 500_000)


def test_a_queue_is_built_with_its_limit(netlink: Recorder) -> None:
    queue(netlink, 80_000_000)
    assert netlink.raw[0].endswith(b"link\0\0\0\0" + options_of(link_qdisc.rate(80_000_000)))
    assert netlink.raw[-1].endswith(b"bfifo\0\0\0" + struct.pack("=HHI", 8, NESTED | 2, 500_000))
    assert netlink.taken() == ["add link", "add bfifo"]


def options_of(options: bytes) -> bytes:
    return nested(tc.TCA_OPTIONS, options)


def test_a_change_says_rate_and_whether_the_link_is_shut(netlink: Recorder) -> None:
    built = queue(netlink, 80_000_000)
    for is_held, is_shut, options in (
        (True, False, link_qdisc.rate(0)),
        (True, True, link_qdisc.rate(0) + link_qdisc.shut(is_shut=True)),
        (False, True, link_qdisc.rate(1_000_000)),
        (False, False, link_qdisc.rate(1_000_000) + link_qdisc.shut(is_shut=False)),
    ):
        built.set(1_000_000, is_held=is_held, is_shut=is_shut)
        assert netlink.raw[-1].endswith(options_of(options))
    netlink.taken()
    built.set(1_000_000, is_held=False)
    assert netlink.taken() == []


def test_a_table_has_times_and_rates() -> None:
    assert link_qdisc.table([(5, 7), (9, 0)]) == attribute(2, struct.pack("=4Q", 5, 7, 9, 0))


def test_the_kernel_tells_how_long_packets_waited() -> None:
    counts = attribute(4, struct.pack("=6I", 1, 2, 3, 0, 0, 9))
    answer = message(40, 0, bytes(20) + options_of(counts))
    assert link_qdisc.sojourns(answer) == [[1, 2, 3], [0, 0, 9]]


def test_a_kernel_without_the_qdisc_has_hfsc(
    netlink: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(netlink, monkeypatch, b"link\0")
    assert isinstance(queue(netlink, 80_000_000), HfscQueue)


def refuse(netlink: Recorder, monkeypatch: pytest.MonkeyPatch, kind: bytes) -> None:
    """Lets the kernel lack a qdisc."""
    take = netlink.request

    def without(request: bytes | bytearray) -> bytes:
        if kind in request:
            raise NetlinkError(errno.ENOENT, "No such file or directory")
        return take(request)

    monkeypatch.setattr(netlink, "request", without)


def test_a_queue_changes_its_size_and_keeps_what_is_in_it(netlink: Recorder) -> None:
    built = queue(netlink, 80_000_000)
    netlink.taken()
    for queue_bytes in (20_000, 20_000, None):
        built.resize(queue_bytes)
    assert netlink.taken() == ["change bfifo", "change bfifo"]
    first, second = (one[-4:] for one in netlink.raw[-2:])
    assert (first, second) == (struct.pack("=I", 20_000), struct.pack("=I", 500_000))


def test_counters_are_read(netlink: Recorder) -> None:
    netlink.count(3028, queue_packets=1)
    netlink.own = struct.pack("=Q", 3)
    assert queue(netlink, 80_000_000).counters() == Counters(3028, 2, 5, 1514, 1, 3)


@dataclass(frozen=True)
class Marking:
    """A queue discipline that counts its marks."""

    marks_at: int = 7


MARKING = Discipline(
    "marking",
    "marks",
    Table(Marking, ()),
    options=lambda settings, queue_bytes: struct.pack("=II", settings.marks_at, queue_bytes),
    counters=lambda leaf: {"marked_packets": struct.unpack_from("=I", leaf.own)[0]},
)


def test_a_discipline_of_its_own_is_the_leaf(
    netlink: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry._OF_SETTINGS, Marking, MARKING)
    rate_queue(netlink, INDEX, 80_000_000, 500_000, Marking(9))
    assert netlink.raw[-1].endswith(
        b"marks\0\0\0" + struct.pack("=HHII", 12, NESTED | 2, 9, 500_000)
    )


def test_a_kernel_without_the_discipline_is_refused(
    netlink: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry._OF_SETTINGS, Marking, MARKING)
    refuse(netlink, monkeypatch, b"marks")
    with pytest.raises(ShapingError, match="this kernel lacks the queue discipline marks;"):
        rate_queue(netlink, INDEX, 80_000_000, 500_000, Marking())


def test_drop_tail_counts_nothing_of_its_own(netlink: Recorder) -> None:
    assert dict(queue(netlink, 80_000_000).own_counters()) == {}


KEPT = {"fq_codel": 6, "red": 5}
"""More packets than these wait in a full queue of 20 kB. fq_codel drops half of a flow's packets at
once, and RED drops early."""


@pytest.mark.parametrize("kind", [LinkQueue, HfscQueue])
@pytest.mark.parametrize("one", registry.DISCIPLINES, ids=lambda one: one.name)
def test_the_kernel_holds_shuts_and_wakes_a_queue(
    namespace: int, one: AnyDiscipline, kind: type[LinkQueue | HfscQueue]
) -> None:
    """On the loopback of a namespace, where this kernel has the disciplines; the guest's has."""
    with inside(namespace):
        channel = Channel()
        sender, receiver = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    with sender, receiver, contextlib.closing(channel):
        sender.setblocking(False)
        channel.request(rtnetlink.set_up(1, up=True))
        try:
            built = kind(
                channel, 1, 80_000_000, LeafQueue(channel, 1, 20_000, one.table.settings())
            )
        except (NetlinkError, ShapingError) as error:
            if isinstance(error, ShapingError) or error.errno == errno.ENOENT:
                pytest.skip("this kernel lacks a qdisc; the guest's has all")
            raise

        receiver.bind(("127.0.0.1", 0))

        def send(packets: int) -> Counters:
            before = built.counters()
            for _ in range(packets):
                sender.sendto(bytes(1000), receiver.getsockname())
            after = built.counters()
            assert fates(after) == fates(before) + packets
            return after

        def wait(packets: int, counters: Counters) -> bool:
            """Tells whether all wait. RED drops some of them at random when they arrive."""
            waiting = counters.queue_packets
            return 0 < waiting <= packets if one.name == "red" else waiting == packets

        def fates(counters: Counters) -> int:
            """Returns how many packets are waiting, have left, were dropped or were lost. CoDel
            drops what waited for 100 ms when it leaves."""
            gone = counters.sent_packets + counters.dropped_packets + counters.lost_packets
            return counters.queue_packets + gone

        built.set(80_000_000, is_held=True)
        assert wait(5, send(5))
        assert send(50).dropped_packets > 25
        held = built.counters()
        assert held.queue_packets > KEPT.get(one.name, 10)
        built.set(80_000_000, is_held=False)
        deadline_s = time.monotonic() + 10
        while built.counters().queue_packets and time.monotonic() < deadline_s:
            time.sleep(0.01)
        emptied = built.counters()
        assert (emptied.queue_packets, fates(emptied)) == (0, fates(held))
        assert emptied.sent_packets > held.queue_packets / 2
        built.set(80_000_000, is_held=True)
        waiting = send(5)
        assert wait(5, waiting)
        built.set(80_000_000, is_held=True, is_shut=True)
        lost = send(7)
        assert (lost.queue_packets, lost.lost_packets) == (0, waiting.queue_packets + 7)
        assert lost.dropped_packets == waiting.dropped_packets
        built.set(80_000_000, is_held=True)
        opened = send(3)
        assert wait(3, opened)
        assert opened.lost_packets == lost.lost_packets
        assert all(isinstance(count, int) for count in built.own_counters().values())
