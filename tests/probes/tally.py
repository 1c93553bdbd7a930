"""Sends UDP both ways over every link, in random bursts, and counts what was sent and what arrived.

usage: tally.py SECONDS DRAIN_S SEED DEVICE...

The server sends to every address that a link's packets came from, also to former ones. Writes
`tally.json` into the run directory: per device and direction, the packets sent and received. A packet
that the sender's socket refused is not sent.
"""

import contextlib
import heapq
import itertools
import json
import os
import random
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from both_ways import PORT, ROOM_BYTES, SERVER, SO_RCVBUFFORCE, inside, server

SIZES = (16, 200, 1000, 1400)
PHASE_S = (0.05, 1.5)
GAP_S = (0.0005, 0.02)
BURSTS = (0, 0, 0, 600)
PERIOD_S = 0.05


def opened(address: str, device: str = "") -> socket.socket:
    """Returns a UDP socket that keeps what arrives until it is read."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for option in (SO_RCVBUFFORCE, socket.SO_SNDBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, ROOM_BYTES)
    if device:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    sock.bind((address, PORT))
    sock.setblocking(False)
    return sock


def moments(chosen: random.Random) -> Iterator[float]:
    """Yields the times at which a direction's packets are sent: bursts, and phases with and without."""
    now_s = 0.0
    while True:
        yield from itertools.repeat(now_s, chosen.choice(BURSTS))
        end_s = now_s + chosen.uniform(*PHASE_S)
        gap_s = chosen.uniform(*GAP_S)
        while now_s + gap_s < end_s:
            now_s += gap_s
            yield now_s
        now_s = end_s + chosen.uniform(*PHASE_S)


class Tally:
    """Holds the sockets of both ends, and the counts."""

    def __init__(self, devices: list[str], seed: str) -> None:
        self.random = random.Random(seed)
        self.devices = devices
        self.near = [opened("", device) for device in devices]
        with inside(server()):
            self.far = opened(SERVER)
        self.found = {one: {"up": [0, 0], "down": [0, 0]} for one in devices}
        self.sources: list[list[tuple[str, int]]] = [[] for _ in devices]

    def send(self, number: int, direction: str) -> None:
        """Sends one packet of a random size."""
        content = bytes((number,)) * self.random.choice(SIZES)
        sources = self.sources[number]
        with contextlib.suppress(OSError):  # Refused: there is no route or no address.
            if direction == "up":
                self.near[number].sendto(content, (SERVER, PORT))
            elif sources:
                self.far.sendto(content, self.random.choice(sources[-3:]))
            else:
                return
            self.found[self.devices[number]][direction][0] += 1

    def read(self) -> None:
        """Counts what has arrived."""
        for device, sock in zip(self.devices, self.near, strict=True):
            with contextlib.suppress(BlockingIOError):
                while True:
                    sock.recv(1)
                    self.found[device]["down"][1] += 1
        with contextlib.suppress(BlockingIOError):
            while True:
                (number, *_), source = self.far.recvfrom(1)
                self.found[self.devices[number]]["up"][1] += 1
                if source not in self.sources[number]:
                    self.sources[number].append(source)

    def run(self, seconds: float, drain_s: float) -> None:
        """Sends until the time is over, and waits for what is on its way."""
        begun = time.monotonic()
        flows = [
            zip(
                moments(random.Random(self.random.random())),
                itertools.repeat(number),
                itertools.repeat(direction),
            )
            for number in range(len(self.devices))
            for direction in ("up", "down")
        ]
        read_s = 0.0
        for due_s, number, direction in heapq.merge(*flows):
            if due_s >= seconds:
                break
            time.sleep(max(0.0, begun + due_s - time.monotonic()))
            if due_s >= read_s:
                self.read()
                read_s = due_s + PERIOD_S
            self.send(number, direction)
        for _ in range(round(drain_s / PERIOD_S)):
            time.sleep(PERIOD_S)
            self.read()


def main(seconds: str, drain_s: str, seed: str, *devices: str) -> None:
    """Runs the tally and writes it."""
    tally = Tally(list(devices), seed)
    tally.run(float(seconds), float(drain_s))
    Path(os.environ["LINKLAB_RUN_DIR"], "tally.json").write_text(json.dumps(tally.found))


if __name__ == "__main__":
    main(*sys.argv[1:])
