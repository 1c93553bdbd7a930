"""Lets flows through a NAT be idle, and tells what still passes.

usage: nat.py DEVICE IDLE_S

Prints a line of JSON: `seen`, the client's ports and addresses as the server sees them, of UDP
datagrams before and after a short and a long idle time; `back`, whether the
server's datagrams still arrive after each; `tcp`, what a TCP connection carries after each.
"""

import contextlib
import json
import os
import socket
import sys
import time

from both_ways import SERVER, inside, server

UDP_PORT, TCP_PORT = 5202, 5203


def bound(device: str, kind: socket.SocketKind) -> socket.socket:
    """Returns a socket over a link."""
    sock = socket.socket(socket.AF_INET, kind)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    sock.settimeout(0.5)
    return sock


def arrives(sock: socket.socket) -> bool:
    """Tells whether anything arrives in half a second."""
    with contextlib.suppress(TimeoutError):
        return bool(sock.recv(100))
    return False


def main(device: str, idle: str) -> None:
    """Sends, waits for less and for more than the idle time, and sends again."""
    near, idle_s = bound(device, socket.SOCK_DGRAM), float(idle)
    with inside(server()):
        far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        far.bind((SERVER, UDP_PORT))
        listener = socket.create_server((SERVER, TCP_PORT))
    seen, back = [], []

    def ask() -> tuple[str, int]:
        near.sendto(b"out", (SERVER, UDP_PORT))
        peer: tuple[str, int] = far.recvfrom(100)[1]
        seen.append(peer)
        return peer

    stream = bound(device, socket.SOCK_STREAM)
    stream.connect((SERVER, TCP_PORT))
    accepted, _ = listener.accept()
    carried = []
    peer = ask()
    for wait_s in (idle_s / 2, idle_s + 0.5):
        time.sleep(wait_s)
        far.sendto(b"back", peer)
        back.append(arrives(near))
        stream.sendall(b"out")
        accepted.settimeout(0.5)
        carried.append(arrives(accepted))
        peer = ask()
    print(json.dumps({"seen": seen, "back": back, "tcp": carried}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
