"""Receives UDP that the lab's server sends through one link; writes what arrived and when.

usage: downlink.py DEVICE BIT_PER_S SECONDS [START_S [FRAME_BYTES]]

The server's side runs in that host's network namespace, which is found by its Mininet shell.
Packets are numbered, full frames unless a size is given, sent in bursts every millisecond. Writes `arrivals.json` into
the run directory: `sent`, the packets sent, and `arrivals`, pairs of number and nanoseconds since
the scenario began (a whole second of the monotonic clock).
"""

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

FRAME = 1514
HEADER_BYTES = 42  # Ethernet, IPv4, UDP
PERIOD_S = 0.001
PORT = 5201
SO_RCVBUFFORCE = 33  # asm-generic/socket.h
ADDRESSES = {"wlan0": "10.1.0.2", "rmnet0": "10.2.0.2"}


def send(address: str, rate_bps: float, seconds: float, start_s: float, frame: float) -> None:
    """Paces frames towards the client until the time is over. Prints their number."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 26)
    sender.bind(("10.0.0.1", 0))
    frames_per_s = rate_bps / 8 / frame
    begun = time.monotonic() // 1 + start_s
    sent = 0
    for period in range(round(seconds / PERIOD_S)):
        time.sleep(max(0.0, begun + period * PERIOD_S - time.monotonic()))
        while sent < (period + 1) * PERIOD_S * frames_per_s:
            packet = struct.pack("!Q", sent) + bytes(int(frame) - HEADER_BYTES - 8)
            sender.sendto(packet, (address, PORT))
            sent += 1
    print(sent)


def server() -> Path:
    """Returns the process in the namespaces of the lab's server."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # It has ended meanwhile.
            if b"mininet:server" in (path / "cmdline").read_bytes():
                return path
    raise SystemExit("no server runs")


def receive(
    device: str, rate_bps: float, seconds: float, start_s: float = 0.2, frame: float = FRAME
) -> None:
    """Starts the sender and records arrivals until a second after its end."""
    began_ns = time.monotonic_ns() // 1_000_000_000 * 1_000_000_000
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
    receiver.bind(("", PORT))
    sender = subprocess.Popen(
        [
            "nsenter",
            f"--net={server() / 'ns/net'}",
            sys.executable,
            __file__,
            "--send",
            ADDRESSES[device],
            str(rate_bps),
            str(seconds),
            str(start_s),
            str(frame),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    arrivals = []
    end_ns = began_ns + round((start_s + seconds + 1) * 1e9)
    while (left_ns := end_ns - time.monotonic_ns()) > 0:
        receiver.settimeout(left_ns / 1e9)
        try:
            packet = receiver.recv(2048)
        except TimeoutError:
            break
        arrivals.append((struct.unpack_from("!Q", packet)[0], time.monotonic_ns() - began_ns))
    sent, _ = sender.communicate()
    report = {"sent": int(sent), "arrivals": arrivals}
    Path(os.environ["LINKLAB_RUN_DIR"], "arrivals.json").write_text(json.dumps(report))


if __name__ == "__main__":
    if sys.argv[1] == "--send":
        send(sys.argv[2], *map(float, sys.argv[3:7]))
    else:
        receive(sys.argv[1], *map(float, sys.argv[2:6]))
