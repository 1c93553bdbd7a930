"""Sends numbered UDP packets both ways over a link, and captures them at both ends.

usage: both_ways.py DEVICE SERVER_DEVICE PACKETS INTERVAL_S [UDP_PAYLOAD_BYTES]

The client sends to the server's port 9 and the server to the client's port 9, one packet each at
every interval. Writes `client.pcap` and `server.pcap` into the run directory, with the kernel's times
in nanoseconds.
"""

import contextlib
import ctypes
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

SERVER = "10.0.0.1"
PORT = 9
SETTLE_S = 1.0
ROOM_BYTES = 512 << 20
ALL_PROTOCOLS = 3
ECT_0 = 2  # RFC 3168, 5
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2  # linux/in.h
CLONE_NEWNET = 0x40000000  # linux/sched.h
LIBC = ctypes.CDLL(None)
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35  # asm-generic/socket.h


def server() -> int:
    """Returns a descriptor of the server host's network namespace."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # It has ended meanwhile.
            if b"mininet:server" in (path / "cmdline").read_bytes():
                return os.open(path / "ns/net", os.O_RDONLY)
    raise SystemExit("no server runs")


@contextlib.contextmanager
def inside(namespace: int) -> Iterator[None]:
    """Moves this thread into a network namespace during the block."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    LIBC.setns(namespace, CLONE_NEWNET)
    yield
    LIBC.setns(own, CLONE_NEWNET)
    os.close(own)


def opened(own: tuple[str, int], device: str = "") -> socket.socket:
    """Returns a UDP socket for ECN and path MTUs. What arrives for it is not refused with ICMP."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_IP, socket.IP_TOS, ECT_0)
    sock.setsockopt(socket.SOL_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
    if device:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    sock.bind(own)
    return sock


def capturing(device: str) -> socket.socket:
    """Returns a socket that keeps a copy of all packets of a device until they are read."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM_BYTES)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.bind((device, ALL_PROTOCOLS))
    sock.setblocking(False)
    return sock


def write(captured: socket.socket, path: Path) -> None:
    """Writes the kept packets as pcap."""
    with path.open("wb") as file, contextlib.suppress(BlockingIOError):
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        while True:
            content, notes, _, _ = captured.recvmsg(65535, 64)
            seconds, nanoseconds = struct.unpack("@qq", notes[0][2])
            size = len(content)
            file.write(struct.pack("<IIII", seconds, nanoseconds, size, size) + content)


def main(device: str, far_device: str, packets: str, interval: str, size: str = "32") -> None:
    """Sends both ways, and records until a second after the last packet."""
    there, run_dir = server(), Path(os.environ["LINKLAB_RUN_DIR"])
    near, here = opened(("", PORT), device), capturing(device)
    near.connect((SERVER, PORT))
    address = near.getsockname()[0]
    with inside(there):
        far, beyond = opened((SERVER, PORT)), capturing(far_device)
    begun = time.monotonic()
    for number in range(int(packets)):
        time.sleep(max(0.0, begun + number * float(interval) - time.monotonic()))
        content = struct.pack("!Q", number) + bytes(int(size) - 8)
        for sock, to in ((near, (SERVER, PORT)), (far, (address, PORT))):
            with contextlib.suppress(OSError):  # The path's MTU is less by now.
                sock.sendto(content, to)
    time.sleep(SETTLE_S)
    write(here, run_dir / "client.pcap")
    write(beyond, run_dir / "server.pcap")


if __name__ == "__main__":
    main(*sys.argv[1:])
