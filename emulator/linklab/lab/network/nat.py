"""Runs a NAT on a link's middlebox, which forgets idle flows.

The middlebox routes what the client sends, and what is for the NAT's address, into a TUN device. A
process behind it translates packet by packet. It ends when it is told, or with the lab's last process.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import socket
import struct
import time
from random import Random
from typing import Final

from linklab.core.link_state import DIRECTIONS, Direction
from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import inside
from linklab.lab.network.cables import add_neighbour, index_of
from linklab.lab.network.hosts import Host
from linklab.lab.network.routes import EVERYWHERE
from linklab.lab.network.topology import LinkPath
from linklab.lab.network.translation import TARGET, TCP, UDP, Translator

DEVICE: Final = "nat"
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
TABLE: Final = 100
_TIMES = struct.Struct("=dd")
_END = _TIMES.pack(0.0, 0.0)
_QUEUE_PACKETS = 2**15 - 1
"""The most packets that the kernel lets wait for the process (net/core/dev.c). A burst arrives before
the process goes on."""


def address_of(path: LinkPath) -> str:
    """Returns the NAT's address, beside the middlebox's own in the network of the server's cable."""
    return f"{path.border.address.rpartition('.')[0]}.3"


class Nat:
    """Translates what the client sends over a link. `udp_s` and `tcp_s` are idle times."""

    def __init__(
        self, path: LinkPath, host: Host, server: Host, udp_s: float, tcp_s: float, seed: int
    ) -> None:
        assert path.middlebox is not None
        device = _opened(host)
        gateway, peer = (f"{path.middlebox.down.address.rpartition('.')[0]}.{n}" for n in (5, 6))
        index = index_of(host, DEVICE)
        for message in (
            rtnetlink.add_address(index, gateway, 30),
            rtnetlink.set_queue_length(index, _QUEUE_PACKETS),
            rtnetlink.set_up(index, up=True),
            rtnetlink.set_route(EVERYWHERE, peer, index, table=TABLE),
            rtnetlink.rule(TABLE, TABLE, source=path.client_network),
            rtnetlink.set_route(f"{address_of(path)}/32", peer, index),
        ):
            host.channel.request(message)
        add_neighbour(server, path.server, path.border, address_of(path))
        self._lost = {one: memoryview(mmap.mmap(-1, 8)).cast("Q") for one in DIRECTIONS}
        reading, self._times = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            os.close(self._times)
            address = socket.inet_aton(address_of(path))
            _serve(device, reading, address, (udp_s, tcp_s), seed, self._lost)
        os.close(reading)
        os.close(device)

    def set(self, udp_s: float, tcp_s: float) -> None:
        """Changes the idle times, also of the flows that there are."""
        os.write(self._times, _TIMES.pack(udp_s, tcp_s))

    def lost_packets(self, direction: Direction) -> int:
        return self._lost[direction][0]

    def close(self) -> None:
        os.write(self._times, _END)
        os.waitpid(self._process, 0)
        os.close(self._times)


def _opened(host: Host) -> int:
    with inside(host.node.namespace):
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        request = struct.pack("16sH22x", DEVICE.encode(), _IFF_TUN | _IFF_NO_PI)
        fcntl.ioctl(device, _TUNSETIFF, request)
    return device


def _serve(
    device: int,
    reading: int,
    address: bytes,
    idle_s: tuple[float, float],
    seed: int,
    lost: dict[Direction, memoryview[int]],
) -> None:
    """Translates, and counts what it drops, until the pipe says the end. A later process may have a copy of its other end, so
    that this process would not see it closed."""
    try:
        times = dict(zip((UDP, TCP), idle_s, strict=True))
        translator = Translator(address, times, Random(seed))
        while True:
            ready, _, _ = select.select([device, reading], [], [])
            if reading in ready:
                told = os.read(reading, _TIMES.size)
                if told in (_END, b""):
                    break
                times = dict(zip((UDP, TCP), _TIMES.unpack(told), strict=True))
                translator.set_idle(times, time.monotonic_ns())
            if device in ready:
                packet = os.read(device, 65536)
                translated = translator.translated(packet, time.monotonic_ns())
                if translated is not None:
                    os.write(device, translated)
                else:
                    lost["down" if packet[TARGET] == address else "up"][0] += 1
    finally:
        os._exit(0)
