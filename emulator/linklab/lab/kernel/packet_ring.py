"""Keeps the headers of a device's TCP packets in a ring that the kernel fills (packet(7)).

The kernel copies each header and its time. No process reads before the end, and no packet is held
back. So the packets come and go as they would without the ring.
"""

from __future__ import annotations

import mmap
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from linklab.lab.kernel import socket_options

HEADER_BYTES: Final = 100
"""The most bytes of a packet: the header of IPv6, and the longest one of TCP."""

_SOL_PACKET: Final = 263
_RX_RING, _STATISTICS, _VERSION = 5, 6, 10
_TPACKET_V2: Final = 1
_FRAME_BYTES: Final = 256
_FRAMES_PER_BLOCK: Final = 256
_BLOCKS: Final = 128
_REQUEST: Final = struct.Struct("@IIII")
_FRAME: Final = struct.Struct("@IIIHHII")
_ADDRESS_OFFSET: Final = 32
_KIND_OFFSET: Final = _ADDRESS_OFFSET + 10
_IN_USE: Final = 1


@dataclass(frozen=True, slots=True)
class SeenPacket:
    """A packet's header, from IP on, and the kernel's time in nanoseconds since 1970. `leaves`
    tells outgoing packets from incoming ones."""

    t_ns: int
    leaves: bool
    header: bytes


class PacketRing:
    """The ring of a device in the caller's network namespace. The caller closes it."""

    def __init__(self, device: str) -> None:
        # Without a protocol nothing comes until the socket is bound.
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self._socket.setsockopt(_SOL_PACKET, _VERSION, _TPACKET_V2)
        frames = _FRAMES_PER_BLOCK * _BLOCKS
        asked = _REQUEST.pack(_FRAME_BYTES * _FRAMES_PER_BLOCK, _BLOCKS, _FRAME_BYTES, frames)
        self._socket.setsockopt(_SOL_PACKET, _RX_RING, asked)
        self._ring = mmap.mmap(self._socket.fileno(), frames * _FRAME_BYTES)
        socket_options.take_tcp(self._socket, HEADER_BYTES)
        self._socket.bind((device, socket_options.ALL_PROTOCOLS))

    def seen(self) -> list[SeenPacket] | None:
        """Returns all packets since the ring exists, in their order. None if there was no room for
        some."""
        _, dropped = struct.unpack("@II", self._socket.getsockopt(_SOL_PACKET, _STATISTICS, 8))
        return None if dropped else list(self._packets())

    def _packets(self) -> Iterator[SeenPacket]:
        for begin in range(0, len(self._ring), _FRAME_BYTES):
            status, _, kept, _, header, seconds, nanoseconds = _FRAME.unpack_from(self._ring, begin)
            if not status & _IN_USE:
                return
            leaves = self._ring[begin + _KIND_OFFSET] == socket.PACKET_OUTGOING
            content = self._ring[begin + header : begin + header + kept]
            yield SeenPacket(seconds * 1_000_000_000 + nanoseconds, leaves, content)

    def close(self) -> None:
        self._ring.close()
        self._socket.close()
