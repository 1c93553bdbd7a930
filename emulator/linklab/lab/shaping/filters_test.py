import errno
import struct

import pytest

from linklab.core.ip_family import IPV4, IPV6
from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.netlink import Channel, NetlinkError
from linklab.lab.shaping import filters, tc
from linklab.lab.shaping.conftest import INDEX, decoded


def test_a_policer_is_a_full_bucket_that_drops() -> None:
    read, _ = decoded(filters.police(INDEX, 2, 8_000_000, 500_000))
    assert (read["parent"], read["info"] >> 16) == (0xFFFFFFF3, 2)
    assert read.get_attr("TCA_KIND") == "matchall"
    message = filters.police(INDEX, 2, 8_000_000, 500_000)
    # 0.5 s of its rate in ticks of 64 ns, and the rate in bytes per second.
    assert struct.pack("=iII", 2, 0, 500_000_000 // 64) in message
    assert struct.pack("=HI", 0, 1_000_000) in message


def test_a_burst_is_as_long_as_the_kernel_can_count() -> None:
    message = filters.police(INDEX, 2, 8_000, 10_000_000)
    assert struct.pack("=iII", 2, 0, 2**32 - 1) in message
    assert filters.MAX_BURST_S > 270


@pytest.mark.parametrize(
    ("family", "protocol", "mask", "checked"),
    [(IPV4, 0x0008, 0xFC, True), (IPV6, 0xDD86, 0xCF, False)],
)
def test_ecn_is_cleared_where_its_family_has_it(
    family: int, protocol: int, mask: int, checked: bool
) -> None:
    message = filters.bleach_ecn(INDEX, 3, family)
    read, _ = decoded(message)
    assert read["info"] & 0xFFFF == protocol  # Network order
    assert bytes((0xFF, mask, 0xFF, 0xFF)) + bytes(20) in message
    assert (b"csum" in message) == checked


def test_the_kernel_takes_and_removes_every_filter(namespace: int) -> None:
    with inside(namespace):
        channel = Channel()
    try:
        made = (
            filters.drop_larger(1, 1, 1214),
            filters.police(1, 2, 10_000_000, 100_000),
            filters.bleach_ecn(1, 3),
            filters.bleach_ecn(1, 4, IPV6),
        )
        try:
            channel.request(filters.add_clsact(1))
            for message in made:
                channel.request(message)
        except NetlinkError as error:
            if error.errno == errno.ENOENT:
                pytest.skip("this kernel lacks filters; the guest's has them")
            raise
        assert tc.counters(channel.request(tc.get_qdisc(1, filters.HANDLE))).dropped_packets == 0
        with pytest.raises(NetlinkError):
            channel.request(made[0])
        for priority, message in enumerate(made, 1):
            channel.request(filters.remove(1, priority))
            channel.request(message)
        channel.request(filters.drop_arriving(1))
        channel.request(filters.pass_arriving(1))
    finally:
        channel.close()
