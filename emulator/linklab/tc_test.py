"""Prepared messages, read back by pyroute2's decoder, which knows nothing of ours."""

import errno
import struct
from typing import Any

import pytest
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from linklab import tc
from linklab.namespace import network_of
from linklab.tc import Channel, Counters, TcError

INDEX, ROOT, CLASS, LEAF = 7, 0x10000, 0x10001, 0x100000
ADD, CHANGE = 0x1 | 0x4 | 0x200 | 0x400, 0x1 | 0x4


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
        "limit_packets": 1000, "delay_s": 0.005, "jitter_s": 0.001, "loss_ratio": 0.003,
        "bursts": None, "rate_bytes_per_s": 125_000, "seed": 2**63 + 5, **changes,
    }  # fmt: skip
    return tc.netem(INDEX, ROOT, **given)


def test_an_htb_leads_to_its_default_class() -> None:
    read, options = decoded(tc.add_htb(INDEX, ROOT, 1))
    assert (read["handle"], read["parent"], read["header"]["flags"]) == (ROOT, 0xFFFFFFFF, ADD)
    assert read.get_attr("TCA_KIND") == "htb"
    init = options.get_attr("TCA_HTB_INIT")  # type: ignore[attr-defined]
    assert (init["version"], init["defcls"]) == (3, 1)


def test_a_class_has_its_rate_as_ceiling_and_its_burst_in_time() -> None:
    read, options = decoded(tc.htb_class(INDEX, CLASS, ROOT, 10_000_000, 1600, 1514, new=True))
    assert (read["handle"], read["parent"], read["header"]["flags"]) == (CLASS, ROOT, ADD)
    parameters = options.get_attr("TCA_HTB_PARMS")  # type: ignore[attr-defined]
    assert (parameters["rate"], parameters["ceil"]) == (10_000_000, 10_000_000)
    assert parameters["rate___reserved"] == 1  # TC_LINKLAYER_ETHERNET: no rate table needed
    ticks = 160e-6 / (tc.TICK_NS * 1e-9)
    assert (parameters["buffer"], parameters["cbuffer"]) == (ticks, ticks)
    assert parameters["quantum"] == 1514
    changed, _ = decoded(tc.htb_class(INDEX, CLASS, ROOT, 10_000_000, 1600, 1514))
    assert changed["header"]["flags"] == CHANGE


def test_a_burst_is_never_nothing() -> None:
    _, options = decoded(tc.htb_class(INDEX, CLASS, ROOT, 1_250_000_000, 1, 1514))
    assert options.get_attr("TCA_HTB_PARMS")["buffer"] == 1  # type: ignore[attr-defined]


def test_a_plug_is_made_with_its_limit_and_worked_by_its_action() -> None:
    read, options = decoded(tc.add_plug(INDEX, LEAF, CLASS, 500_000))
    assert (read["handle"], read["parent"], read["header"]["flags"]) == (LEAF, CLASS, ADD)
    assert (options["action"], options["limit"]) == (3, 500_000)
    for is_open, action in ((True, 2), (False, 0)):  # linux/pkt_sched.h, TCQ_PLUG_*
        read, options = decoded(tc.plug_gate(INDEX, LEAF, CLASS, is_open=is_open))
        assert (options["action"], read["header"]["flags"]) == (action, CHANGE)


def test_netem_states_everything() -> None:
    message = netem(new=True)
    read, options = decoded(message)
    assert (read["handle"], read["parent"], read["header"]["flags"]) == (ROOT, 0xFFFFFFFF, ADD)
    assert options["limit"] == 1000
    assert options["loss"] / 0xFFFFFFFF == pytest.approx(0.003, abs=1e-9)
    assert options.get_attr("TCA_NETEM_RATE")["rate"] == 125_000  # type: ignore[attr-defined]
    for kind, form, value in ((10, "=q", 5_000_000), (11, "=q", 1_000_000), (14, "=Q", 2**63 + 5)):
        assert struct.pack("=HH", 12, kind) + struct.pack(form, value) in message


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
        struct.pack("=HH", 8, 1) + b"xyz\0"
        + struct.pack("=HH", 4 + 24 + 12, 2) + bytes(24) + seed
        + struct.pack("=HH", 4 + len(stats), 3) + stats
    )  # fmt: skip
    answer = struct.pack("=IHHII", 36 + len(attributes), 36, 0, 0, 0) + bytes(20) + attributes
    assert tc.counters(answer) == Counters(3028, 2, 5, 1514, 1)
    assert tc.netem_seed(answer) == 77


def test_the_kernel_answers(namespace: int) -> None:
    """On the loopback of a namespace: what every kernel has of it, and what it refuses."""
    with network_of(namespace):
        channel = Channel()
    try:
        channel.request(tc.add_htb(1, ROOT, 1))
        channel.request(tc.htb_class(1, CLASS, ROOT, 10_000_000, 1600, 1514, new=True))
        channel.request(tc.htb_class(1, CLASS, ROOT, 20_000_000, 1600, 1514))
        assert tc.counters(channel.request(tc.get_qdisc(1, ROOT))) == Counters(0, 0, 0, 0, 0)
        with pytest.raises(TcError, match="tc: ") as refused:
            channel.request(tc.add_htb(1, ROOT, 1))
        assert refused.value.errno == errno.EEXIST
        with pytest.raises(TcError):
            channel.request(tc.get_qdisc(1, LEAF))
    finally:
        channel.close()
