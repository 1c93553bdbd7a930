"""Sends datagrams through `multilink proxy` by SOCKS5, and tells how long each answer takes.

usage: associate.py MULTILINK DEVICE BYTES...

The server answers with the same bytes. Prints a line of JSON: the round trips in ns, by payload.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

from both_ways import SERVER, inside, server

PORT, PROXY = 4000, ("127.0.0.1", 1080)


def echo(far: socket.socket) -> int:
    """Answers in a process of its own, whose number it returns."""
    pid = os.fork()
    while pid == 0:
        far.sendto(*far.recvfrom(1 << 16))
    return pid


def connected() -> socket.socket:
    """Returns a connection to the proxy, as soon as it listens."""
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(PROXY)
        time.sleep(0.01)


def main(multilink: str, device: str, *sizes: str) -> None:
    """Asks for an association (RFC 1928, 7) and sends one datagram after the other."""
    with inside(server()):
        far = socket.socket(type=socket.SOCK_DGRAM)
        far.bind((SERVER, PORT))
    server_pid = echo(far)
    address = f"{PROXY[0]}:{PROXY[1]}"
    proxy = subprocess.Popen(
        [multilink, "proxy", "--link", device, "--listen", address], stdout=subprocess.DEVNULL
    )
    control = connected()
    control.sendall(b"\x05\x01\x00" + b"\x05\x03\x00\x01" + bytes(6))
    said = control.makefile("rb").read(12)
    near = socket.socket(type=socket.SOCK_DGRAM)
    near.connect((socket.inet_ntoa(said[6:10]), int.from_bytes(said[10:])))
    header = bytes((0, 0, 0, 1)) + socket.inet_aton(SERVER) + PORT.to_bytes(2)
    took = []
    for size in sizes:
        time.sleep(0.1)
        begun_ns = time.monotonic_ns()
        near.send(header + bytes(int(size)))
        assert near.recv(1 << 16) == header + bytes(int(size))
        took.append([int(size), time.monotonic_ns() - begun_ns])
    print(json.dumps(took), flush=True)
    proxy.kill()
    os.kill(server_pid, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
