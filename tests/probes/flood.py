"""Sends UDP both ways over every link of the lab, as fast as asked, and captures what arrives.

usage: flood.py SECONDS DOWN_BIT_PER_S UP_BIT_PER_S DEVICE...

Begins with the scenario. Full frames, one or none every millisecond. The server answers the address
that its last packet of a link came from. Writes `arrived-client.json` and `arrived-server.json` into
the run directory: per device, for each frame that the device received, of whatever kind, nanoseconds
since the scenario began (a whole second of the monotonic clock) and bytes on the wire.
"""

import contextlib
import json
import os
import select
import socket
import struct
import sys
import time
from pathlib import Path

from both_ways import SERVER, SO_RCVBUFFORCE, SO_TIMESTAMPNS, inside, server
from downlink import FRAME, HEADER_BYTES

PERIOD_S = 0.001
PORT = 5202
PAYLOAD = bytes(FRAME - HEADER_BYTES)
ROOM_BYTES = 64 << 20
PACKET_OUTGOING = 4  # linux/if_packet.h
AFTERWARDS_S = 0.5


class Device:
    """Records what arrives on one device, and from which address last."""

    def __init__(self, name: str) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM_BYTES)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.bind((name, 3))  # ETH_P_ALL
        self.socket.setblocking(False)
        self.arrived: list[tuple[int, int]] = []
        self.source = ""

    def read(self, began_ns: int) -> None:
        """Reads what has arrived."""
        with contextlib.suppress(BlockingIOError):
            while True:
                content, notes, _, address = self.socket.recvmsg(FRAME, 64)
                if address[2] != PACKET_OUTGOING:
                    seconds, nanoseconds = struct.unpack("@ll", notes[0][2])
                    self.arrived.append((seconds * 10**9 + nanoseconds - began_ns, len(content)))
                    self.source = socket.inet_ntoa(content[26:30])


def flood(side: str, seconds: float, rate_bps: float, devices: list[str]) -> None:
    """Sends towards the other side and records what arrives from there."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 26)
    if side == "server":
        sender.bind((SERVER, 0))
    found = {name: Device(name) for name in devices}
    begin_ns = time.monotonic_ns() // 10**9 * 10**9
    began_ns = time.time_ns() - time.monotonic_ns() + begin_ns
    waiting = [one.socket for one in found.values()]
    sent = 0
    for period in range(round(seconds / PERIOD_S)):
        due_s = begin_ns / 1e9 + period * PERIOD_S
        while (left_s := due_s - time.monotonic()) > 0:
            time.sleep(left_s)
        if (period + 1) * PERIOD_S * rate_bps / 8 / FRAME < sent + 1:
            continue
        sent += 1
        for name, one in found.items():
            one.read(began_ns)
            target = one.source
            if side == "client":
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name.encode())
                target = SERVER
            with contextlib.suppress(OSError):  # The link has no carrier, or no address yet.
                if target:
                    sender.sendto(PAYLOAD, (target, PORT))
    end_ns = begin_ns + round((seconds + AFTERWARDS_S) * 1e9)
    while (left_s := (end_ns - time.monotonic_ns()) / 1e9) > 0:
        select.select(waiting, [], [], left_s)
        for one in found.values():
            one.read(began_ns)
    path = Path(os.environ["LINKLAB_RUN_DIR"], f"arrived-{side}.json")
    path.write_text(json.dumps({name: one.arrived for name, one in found.items()}))


def main(seconds: str, down_bps: str, up_bps: str, *devices: str) -> None:
    """Floods from both sides, from the server's in a process of its own."""
    there = server()
    other = os.fork()
    if other:
        flood("client", float(seconds), float(up_bps), list(devices))
        raise SystemExit(os.waitpid(other, 0)[1])
    with inside(there):
        names = sorted(name for _, name in socket.if_nameindex() if name != "lo")
        flood("server", float(seconds), float(down_bps), names)


if __name__ == "__main__":
    main(*sys.argv[1:])
