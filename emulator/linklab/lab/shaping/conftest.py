"""Provides a kernel that only records messages, and decodes these with pyroute2, which is
independent of ours."""

import struct
from typing import Any

import pytest
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from linklab.core.frames import FRAME_BYTES
from linklab.lab.kernel.netlink import Channel

INDEX, ROOT, CLASS, LEAF = 7, 0x10000, 0x10001, 0x100000
ADD, PUT, CHANGE = 0x1 | 0x4 | 0x200 | 0x400, 0x1 | 0x4 | 0x100 | 0x400, 0x1 | 0x4
NESTED = 0x8000
WAKE = "wake"


class Recorder(Channel):
    """Takes what the kernel would be told. `seed` is what it says netem's seed is. `own` are the
    counters of a leaf that only its discipline has."""

    def __init__(self, seed: int | None = None) -> None:
        self.sent: list[tcmsg] = []
        self.raw: list[bytes] = []
        self._seed = seed
        self.own = b""
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
        sent_packets = sent_bytes // FRAME_BYTES
        self._counted = (
            sent_bytes,
            sent_packets,
            dropped_packets,
            0,
            0,
            0,
            queue_packets,
            FRAME_BYTES,
        )

    def _answer(self) -> bytes:
        seed = seed_of(self.raw[-1]) if self._seed is None else self._seed
        stats = struct.pack("=QIIIIIII", *self._counted)
        attributes = (
            struct.pack("=HH", 40, 2)
            + bytes(24)
            + struct.pack("=HHQ", 12, 14, seed)
            + struct.pack("=HH", 4 + len(stats), 3)
            + stats
            + struct.pack("=HHHH", 8 + len(self.own), 7, 4 + len(self.own), 4)
            + self.own
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
            elif kind != "plug":
                words.append(f"change {kind}")
            else:
                assert options["action"] == 2
                words.append(WAKE)
        self.sent.clear()
        return words


def seed_of(message: bytes) -> int:
    """The seed of netem, its last attribute here."""
    return int(struct.unpack("=Q", message[-8:])[0]) if len(message) > 8 else 0


@pytest.fixture
def netlink() -> Recorder:
    return Recorder()


def decoded(message: bytes) -> tuple[Any, dict[str, Any]]:
    """The message, and its options by name."""
    read = tcmsg(message)
    read.decode()
    assert read["header"]["length"] == len(message)
    assert read["index"] == INDEX
    options = read.get_attr("TCA_OPTIONS")
    return read, options
