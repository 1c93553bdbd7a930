"""Records all packets on a client's devices into pcap files, with the kernel's times.

A packet socket gets a copy of each packet in both directions. The kernel stamps the packet in
nanoseconds of the lab's clock, however late it is read (packet(7)). A separate process reads and
writes, so that the player does not wait. It is another process in the lab, so a run's figures may
differ from those without it.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from linklab.lab.kernel import socket_options
from linklab.lab.kernel.namespace import inside
from linklab.lab.network.hosts import LabError

SUFFIX: Final = ".pcap"
"""The suffix of a link's file."""

_HEADER: Final = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
"""The header of a pcap file: times in nanoseconds, whole packets, Ethernet."""

_SOL_PACKET: Final = 263
_PACKET_STATISTICS: Final = 6
_ROOM_BYTES: Final = 256 << 20
"""The size of the buffer of unread packets."""

_MISSED: Final = 1
"""The exit code of a process that missed packets. Higher codes are 1 plus an errno."""


@contextmanager
def recorded(namespace: int, devices: Mapping[str, str], directory: Path) -> Iterator[None]:
    """Records the links' devices in a network namespace during the block, each into its link's file
    in the directory. Raises LabError if a packet was missed or could not be written."""
    stop, stopping = os.pipe()
    readers: dict[str, int] = {}
    try:
        for link, device in devices.items():
            file = directory / f"{link}{SUFFIX}"
            with inside(namespace), _socket(device) as packets, file.open("wb") as opened:
                readers[link] = _forked(packets, opened, stop, stopping)
        yield
    finally:
        os.close(stopping)
        ends = {
            link: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for link, pid in readers.items()
        }
        os.close(stop)
    for link, code in ends.items():
        if code > _MISSED:
            why = os.strerror(code - _MISSED)
            raise LabError(f"packets of {link} could not be recorded: {why}")
    missed = [link for link, code in ends.items() if code]
    if missed:
        raise LabError(f"packets of {', '.join(missed)} came faster than they could be recorded")


def _socket(device: str) -> socket.socket:
    protocols = socket.htons(socket_options.ALL_PROTOCOLS)
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, protocols)
    socket_options.give_room(packets, _ROOM_BYTES)
    socket_options.stamp(packets)
    packets.bind((device, socket_options.ALL_PROTOCOLS))
    return packets


def _forked(packets: socket.socket, file: BinaryIO, stop: int, stopping: int) -> int:
    """Starts a process that writes packets until the other end of `stop` is closed. Returns its
    number."""
    pid = os.fork()
    if pid:
        return pid
    code = _MISSED
    try:
        os.close(stopping)
        _write(packets, file, stop)
        _, dropped = struct.unpack("@II", packets.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
        code = _MISSED if dropped else 0
    except OSError as error:
        code = _MISSED + (error.errno or 0)
    finally:
        os._exit(code)


def _write(packets: socket.socket, file: BinaryIO, stop: int) -> None:
    file.write(_HEADER)
    while True:
        ready, _, _ = select.select([packets.fileno(), stop], [], [])
        if packets.fileno() not in ready:
            break
        file.write(_record(packets))
    packets.setblocking(False)
    while True:
        try:
            file.write(_record(packets))
        except BlockingIOError:
            file.flush()
            return


def _record(packets: socket.socket) -> bytes:
    content, notes, _, _ = packets.recvmsg(65535, socket_options.NOTES_BYTES)
    seconds, nanoseconds = socket_options.stamped(notes)
    return struct.pack("<IIII", seconds, nanoseconds, len(content), len(content)) + content
