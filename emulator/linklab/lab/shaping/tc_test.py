"""Prepared messages, read back by pyroute2's decoder, which knows nothing of ours."""

import errno
import math
import statistics
import struct
from typing import Any

import pytest
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.netlink import Channel, NetlinkError, attributes
from linklab.lab.shaping import tc
from linklab.lab.shaping.tc import Counters, Curve

INDEX, ROOT, CLASS, LEAF = 7, 0x10000, 0x10001, 0x100000
ADD, PUT, CHANGE = 0x1 | 0x4 | 0x200 | 0x400, 0x1 | 0x4 | 0x100 | 0x400, 0x1 | 0x4


def decoded(message: bytes) -> tuple[Any, dict[str, Any]]:
    """The message, and its options by name."""
    read = tcmsg(message)
    read.decode()
    assert read["header"]["length"] == len(message)
    assert read["index"] == INDEX
    options = read.get_attr("TCA_OPTIONS")
    return read, options


def netem(**changes: Any) -> bytes:
    given = {
        "limit_packets": 1000,
        "delay_s": 0.005,
        "slot_s": None,
        "loss_ratio": 0.003,
        "bursts": None,
        "rate_bytes_per_s": 125_000,
        "seed": 2**63 + 5,
        **changes,
    }
    return tc.netem(INDEX, ROOT, **given)


def test_an_hfsc_leads_to_its_default_class() -> None:
    read, options = decoded(tc.add_hfsc(INDEX, ROOT, 1))
    assert (read["handle"], read["parent"], read["header"]["flags"]) == (ROOT, 0xFFFFFFFF, ADD)
    assert read.get_attr("TCA_KIND") == "hfsc"
    assert options["defcls"] == 1


def test_a_class_is_limited_by_its_curve() -> None:
    curve = Curve(1_000, 20_000, 10_000_000)
    read, options = decoded(tc.hfsc_class(INDEX, CLASS, ROOT, curve, new=True))
    assert (read["handle"], read["parent"], read["header"]["flags"]) == (CLASS, ROOT, ADD)
    limit = options.get_attr("TCA_HFSC_USC")  # type: ignore[attr-defined]
    assert (limit["m1"], limit["d"], limit["m2"]) == curve
    share = options.get_attr("TCA_HFSC_FSC")  # type: ignore[attr-defined]
    assert share["m2"] > 1_250_000_000  # Over 10 Gbit/s: the limit alone decides
    assert options.get_attr("TCA_HFSC_RSC") is None  # type: ignore[attr-defined]


def test_a_change_of_a_class_says_nothing_but_its_limit() -> None:
    changed, options = decoded(tc.hfsc_class(INDEX, CLASS, ROOT, Curve(0, 0, 125)))
    assert changed["header"]["flags"] == CHANGE
    assert [name for name, _ in options["attrs"]] == ["TCA_HFSC_USC"]


def test_a_plug_is_made_with_its_limit_and_opened() -> None:
    for message, flags in (
        (tc.put_plug(INDEX, LEAF, CLASS, 500_000), PUT),
        (tc.limit_plug(INDEX, LEAF, CLASS, 500_000), CHANGE),
    ):
        read, options = decoded(message)
        assert (read["handle"], read["parent"], read["header"]["flags"]) == (LEAF, CLASS, flags)
        assert (options["action"], options["limit"]) == (3, 500_000)
    read, options = decoded(tc.open_plug(INDEX, LEAF, CLASS))
    assert (options["action"], read["header"]["flags"]) == (2, CHANGE)  # linux/pkt_sched.h


def test_netem_states_everything() -> None:
    message = netem(new=True)
    read, options = decoded(message)
    assert (read["handle"], read["parent"], read["header"]["flags"]) == (ROOT, 0xFFFFFFFF, ADD)
    assert options["limit"] == 1000
    assert options["loss"] / 0xFFFFFFFF == pytest.approx(0.003, abs=1e-9)
    assert options.get_attr("TCA_NETEM_RATE")["rate"] == 125_000  # type: ignore[attr-defined]
    for kind, form, value in ((10, "=q", 5_000_000), (14, "=Q", 2**63 + 5)):
        assert struct.pack("=HH", 12, kind) + struct.pack(form, value) in message


def slots(message: bytes) -> dict[int, memoryview]:
    """The attributes behind netem's struct, which says nothing of its own length."""
    begin = message.index(b"netem\0") + 8 + 4 + 24
    return attributes(memoryview(message)[begin:])


def test_netem_has_moments_with_exponential_distances_where_they_are_asked_for() -> None:
    assert 12 not in slots(netem())
    options = slots(netem(slot_s=0.002))
    assert struct.unpack("=qqiiqq", options[12]) == (0, 0, 0, 0, 2_000_000, 4_000_000)
    times = [1 + 2 * one / 8192 for (one,) in struct.iter_unpack("=h", options[13])]
    assert statistics.fmean(times) == pytest.approx(1, abs=1e-3)
    assert statistics.pstdev(times) == pytest.approx(1, abs=2e-3)
    assert statistics.median(times) == pytest.approx(math.log(2), abs=1e-3)
    assert min(times) >= 0
    ended = slots(netem(slot_s=0.0))
    assert ended[12] == bytes(40)
    assert 13 not in ended


def test_losses_in_bursts_take_the_place_of_single_ones() -> None:
    message = netem(bursts=(0.25, 0.5))
    _, options = decoded(message)
    assert options["loss"] == 0
    model = struct.pack("=IIII", 0x40000000, 0x80000000, 0, 0)
    assert struct.pack("=HHHH", 24, 5, 20, 2) + model in message


def test_counters_and_the_seed_are_read_from_an_answer() -> None:
    stats = struct.pack("=QIIIIIII", 3028, 2, 5, 9, 0, 0, 1, 1514)
    seed = struct.pack("=HHQ", 12, 14, 77)
    attributes = (
        struct.pack("=HH", 8, 1)
        + b"xyz\0"
        + struct.pack("=HH", 4 + 24 + 12, 2)
        + bytes(24)
        + seed
        + struct.pack("=HH", 4 + len(stats), 3)
        + stats
    )
    answer = struct.pack("=IHHII", 36 + len(attributes), 36, 0, 0, 0) + bytes(20) + attributes
    assert tc.counters(answer) == Counters(3028, 2, 5, 1514, 1)
    assert tc.netem_seed(answer) == 77


def test_the_kernel_answers(namespace: int) -> None:
    """On the loopback of a namespace: what every kernel has of it, and what it refuses."""
    with inside(namespace):
        channel = Channel()
    try:
        try:
            channel.request(tc.add_hfsc(1, ROOT, 1))
        except NetlinkError as error:
            if error.errno == errno.ENOENT:
                pytest.skip("this kernel has no HFSC; the guest's has")
            raise
        channel.request(tc.hfsc_class(1, CLASS, ROOT, Curve(0, 0, 1_250_000), new=True))
        channel.request(tc.hfsc_class(1, CLASS, ROOT, Curve(0, 1000, 2_500_000)))
        assert tc.counters(channel.request(tc.get_qdisc(1, ROOT))) == Counters(0, 0, 0, 0, 0)
        with pytest.raises(NetlinkError) as refused:
            channel.request(tc.add_hfsc(1, ROOT, 1))
        assert refused.value.errno == errno.EEXIST
        with pytest.raises(NetlinkError):
            channel.request(tc.get_qdisc(1, LEAF))
        channel.request(tc.delete_root(1, ROOT))
        channel.request(tc.add_hfsc(1, ROOT, 1))
    finally:
        channel.close()
