import struct
from collections.abc import Iterator
from typing import Any

import pytest
from pyroute2.netlink.rtnl.tcmsg import sched_netem, tcmsg

from linklab import netem
from linklab.shaping import IN_ORDER_RATE_BYTES_PER_S

# linux/pkt_sched.h, counted from TCA_NETEM_UNSPEC = 0
RATE, LATENCY64, JITTER64, PRNG_SEED = 6, 10, 11, 14
TCA_OPTIONS = 2  # linux/rtnetlink.h
HEADER_BYTES = 16 + 20  # struct nlmsghdr, struct tcmsg
QOPT_BYTES = 24  # struct tc_netem_qopt


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and payload of every struct nlattr, each padded to four bytes."""
    while data:
        length, kind = struct.unpack_from("HH", data)
        yield kind, data[4:length]
        data = data[length + 3 & ~3 :]


def encoded(**keywords: Any) -> tuple[dict[str, int], dict[int, bytes]]:
    """tc_netem_qopt and the attributes after it, from the message as the kernel gets it."""
    netem.install()
    message = tcmsg()
    options = sched_netem.get_parameters({"limit": 1000, **keywords})
    message["attrs"] = [["TCA_KIND", "netem"], ["TCA_OPTIONS", options]]
    message.encode()
    content = dict(attributes(bytes(message.data)[HEADER_BYTES:]))[TCA_OPTIONS]
    names = ("latency", "limit", "loss", "gap", "duplicate", "jitter")
    qopt = dict(zip(names, struct.unpack("6I", content[:QOPT_BYTES]), strict=True))
    return qopt, dict(attributes(content[QOPT_BYTES:]))


def test_the_kernel_finds_seed_and_times_under_its_own_numbers() -> None:
    _, found = encoded(latency_ns=5_000_000_001, jitter_ns=3, seed=2**64 - 2)
    assert found == {
        LATENCY64: struct.pack("q", 5_000_000_001),
        JITTER64: struct.pack("q", 3),
        PRNG_SEED: struct.pack("Q", 2**64 - 2),
    }


def test_only_what_is_given_is_sent() -> None:
    assert encoded()[1] == {}
    assert set(encoded(seed=0)[1]) == {PRNG_SEED}


def test_a_byte_rate_is_netem_s_and_fits() -> None:
    rate, overhead, cell, cell_overhead = struct.unpack(
        "IiIi", encoded(byte_rate=IN_ORDER_RATE_BYTES_PER_S)[1][RATE]
    )
    assert (rate, overhead, cell, cell_overhead) == (2**32 - 1, 0, 0, 0)


@pytest.mark.parametrize(
    ("ratio", "loss"), [(0.0, 0), (0.003, 12_884_901), (0.5, 2**31 - 1), (1.0, 2**32 - 1)]
)
def test_loss_keeps_its_fraction_of_a_percent(ratio: float, loss: int) -> None:
    qopt, _ = encoded(loss=ratio * 100)
    assert qopt == {
        "latency": 0, "limit": 1000, "loss": loss, "gap": 0, "duplicate": 0, "jitter": 0,
    }  # fmt: skip


def test_a_second_installation_changes_nothing() -> None:
    netem.install()
    names, parameters = list(sched_netem.options.nla_map), sched_netem.get_parameters
    netem.install()
    assert list(sched_netem.options.nla_map) == names
    assert sched_netem.get_parameters is parameters
