"""Sends numbered packets through a NAT, or through the relay to the outside, by a plan.

usage: timers.py PLAN [RELAY]

The plan is JSON: lists of time in ns since the scenario began, number, direction, protocol, flow, and
TCP's flags. The scenario begins at a whole second of the monotonic clock. Writes `timers.json` into
the run directory: the numbers of what arrived, each with the port that the server saw, null at the
client. With RELAY, the relay's program, all takes place on the loopback device.
"""

import json
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from both_ways import SERVER, inside, server

DEVICE, NAT = "wlan0", "10.1.2.3"
PORT, FIRST_PORT = 4000, 20000
UDP, TCP = 17, 6
WRONG = 0x1234
"""The checksum. So the hosts' kernels answer nothing, but their raw sockets see the packets."""


class Raw:
    """Sends and receives packets of UDP and TCP through a link's NAT."""

    def __init__(self) -> None:
        def raw(protocol: int) -> socket.socket:
            sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)
            sock.setblocking(False)
            return sock

        self._near = {protocol: raw(protocol) for protocol in (UDP, TCP)}
        with inside(server()):
            self._far = {protocol: raw(protocol) for protocol in (UDP, TCP)}
        for protocol in (UDP, TCP):
            device = DEVICE.encode()
            self._near[protocol].setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
            self._far[protocol].bind((SERVER, 0))

    def send(self, way: str, protocol: int, flow: int, port: int, number: int, flags: int) -> None:
        ports = (FIRST_PORT + flow, PORT) if way == "up" else (PORT, port)
        if protocol == UDP:
            segment = struct.pack("!4HI", *ports, 12, WRONG, number)
        else:
            segment = struct.pack("!2HIIBB3H", *ports, number, 0, 5 << 4, flags, 9999, WRONG, 0)
        sock, to = (self._near, SERVER) if way == "up" else (self._far, NAT)
        sock[protocol].sendto(segment, (to, 0))

    def close(self) -> None:
        """Does nothing: the sockets end with this process."""

    def received(self) -> list[list[Any]]:
        """Returns what has arrived since the last call."""
        found: list[list[Any]] = []
        for sockets, own in ((self._near, 1), (self._far, 0)):
            for protocol, sock in sockets.items():
                for packet in everything(sock):
                    ports = struct.unpack_from("!HH", packet, 20)
                    (number,) = struct.unpack_from("!I", packet, 28 if protocol == UDP else 24)
                    if ports[1 - own] == PORT:
                        found.append([number, None if own else ports[0]])
        return found


class Relayed:
    """Sends and receives datagrams through a relay."""

    def __init__(self, relay: str, flows: int) -> None:
        def bound() -> socket.socket:
            sock = socket.socket(type=socket.SOCK_DGRAM)
            sock.bind(("127.0.0.1", 0))
            sock.setblocking(False)
            return sock

        self._front, self._far = bound(), bound()
        self._near = [bound() for _ in range(flows)]
        rule = {"to": self._far.getsockname(), "udp": True, "greets": False, "lanes": []}
        rule |= {"descriptor": self._front.fileno(), "associates": False, "breaks": False}
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", relay, json.dumps([rule])],
            pass_fds=[self._front.fileno()],
        )

    def send(self, way: str, protocol: int, flow: int, port: int, number: int, flags: int) -> None:
        content = struct.pack("!I", number)
        if way == "up":
            self._near[flow].sendto(content, self._front.getsockname())
        else:
            self._far.sendto(content, ("127.0.0.1", port))

    def close(self) -> None:
        """Ends the relay."""
        self._process.kill()

    def received(self) -> list[list[Any]]:
        """Returns what has arrived since the last call."""
        here = [
            [*struct.unpack("!I", one), None] for sock in self._near for one in everything(sock)
        ]
        there: list[list[Any]] = []
        while True:
            try:
                content, (_, port) = self._far.recvfrom(100)
            except BlockingIOError:
                return here + there
            there.append([*struct.unpack("!I", content), port])


def everything(sock: socket.socket) -> list[bytes]:
    """Reads all that waits at a socket."""
    found = []
    try:
        while True:
            found.append(sock.recv(1 << 16))
    except BlockingIOError:
        return found


def main(file: str, relay: str = "") -> None:
    """Sends all packets. The server sends to the last port at which it saw the flow."""
    began_ns = time.monotonic_ns() // 10**9 * 10**9
    plan = json.loads(Path(file).read_text())
    flows = {number: flow for _, number, _, _, flow, _ in plan}
    by = Relayed(relay, 1 + max(flows.values())) if relay else Raw()
    ports: dict[int, int] = {}
    done: list[list[Any]] = []
    for t_ns, number, way, protocol, flow, flags in plan:
        if (left_ns := began_ns + t_ns - time.monotonic_ns()) > 0:
            time.sleep(left_ns / 1e9)
        if way == "down":
            new = by.received()
            ports.update({flows[one]: port for one, port in new if port is not None})
            done += new
        by.send(way, protocol, flow, ports.get(flow, PORT), number, flags)
    time.sleep(1)
    done += by.received()
    Path(os.environ["LINKLAB_RUN_DIR"], "timers.json").write_text(json.dumps(done))
    by.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
