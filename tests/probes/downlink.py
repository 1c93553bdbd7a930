"""Receives UDP that the lab's server sends through one link; writes what arrived and when.

usage: downlink.py DEVICE BIT_PER_S SECONDS [START_S]

Packets are numbered full frames, sent in bursts every millisecond. Writes `arrivals.json` into the run
directory: pairs of number and nanoseconds since the scenario began (a whole second of the monotonic
clock).
"""

import json
import os
import socket
import struct
import sys
import threading
import time
from pathlib import Path

from both_ways import SERVER, SO_RCVBUFFORCE, inside, server

FRAME = 1514
HEADER_BYTES = 42  # Ethernet, IPv4, UDP
PERIOD_S = 0.001
PORT = 5201
ADDRESSES = {"wlan0": "10.1.0.2", "rmnet0": "10.2.0.2"}


def send(
    sender: socket.socket, address: str, rate_bps: float, seconds: float, start_s: float
) -> None:
    """Paces frames towards the client until the time is over."""
    frames_per_s = rate_bps / 8 / FRAME
    begun = time.monotonic() // 1 + start_s
    sent = 0
    for period in range(round(seconds / PERIOD_S)):
        time.sleep(max(0.0, begun + period * PERIOD_S - time.monotonic()))
        while sent < (period + 1) * PERIOD_S * frames_per_s:
            packet = struct.pack("!Q", sent) + bytes(FRAME - HEADER_BYTES - 8)
            sender.sendto(packet, (address, PORT))
            sent += 1


def main(device: str, rate_bps: float, seconds: float, start_s: float = 0.2) -> None:
    """Starts the sender and records arrivals until a second after its end."""
    began_ns = time.monotonic_ns() // 1_000_000_000 * 1_000_000_000
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
    receiver.bind(("", PORT))
    with inside(server()):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 26)
    sender.bind((SERVER, 0))
    arguments = (sender, ADDRESSES[device], rate_bps, seconds, start_s)
    threading.Thread(target=send, args=arguments, daemon=True).start()
    arrivals = []
    end_ns = began_ns + round((start_s + seconds + 1) * 1e9)
    while (left_ns := end_ns - time.monotonic_ns()) > 0:
        receiver.settimeout(left_ns / 1e9)
        try:
            packet = receiver.recv(2048)
        except TimeoutError:
            break
        arrivals.append((struct.unpack_from("!Q", packet)[0], time.monotonic_ns() - began_ns))
    Path(os.environ["LINKLAB_RUN_DIR"], "arrivals.json").write_text(json.dumps(arrivals))


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
