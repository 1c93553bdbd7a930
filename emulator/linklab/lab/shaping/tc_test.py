import errno
import struct

import pytest

from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.netlink import Channel, NetlinkError
from linklab.lab.shaping import hfsc, netem, tc
from linklab.lab.shaping.conftest import CLASS, LEAF, ROOT
from linklab.lab.shaping.hfsc import Curve
from linklab.lab.shaping.tc import Counters


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
    assert netem.seed(answer) == 77


def test_the_kernel_answers(namespace: int) -> None:
    """On the loopback of a namespace: what every kernel has of it, and what it refuses."""
    with inside(namespace):
        channel = Channel()
    try:
        try:
            channel.request(hfsc.add(1, ROOT, 1))
        except NetlinkError as error:
            if error.errno == errno.ENOENT:
                pytest.skip("this kernel has no HFSC; the guest's has")
            raise
        channel.request(hfsc.put_class(1, CLASS, ROOT, Curve(0, 0, 1_250_000), new=True))
        channel.request(hfsc.put_class(1, CLASS, ROOT, Curve(0, 1000, 2_500_000)))
        assert tc.counters(channel.request(tc.get_qdisc(1, ROOT))) == Counters(0, 0, 0, 0, 0)
        with pytest.raises(NetlinkError) as refused:
            channel.request(hfsc.add(1, ROOT, 1))
        assert refused.value.errno == errno.EEXIST
        with pytest.raises(NetlinkError):
            channel.request(tc.get_qdisc(1, LEAF))
        channel.request(tc.delete(1, ROOT))
        channel.request(hfsc.add(1, ROOT, 1))
    finally:
        channel.close()
