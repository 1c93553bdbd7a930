"""Sends over a link by IPv6, and tells what reaches the server host.

usage: ipv6.py DEVICE

Prints a line of JSON: `names`, the addresses of the server's name by family; `asked`, the same as the
name server answers; `ecn`, the ECN field of a datagram that arrives at the server's address, and that
of the answer; `from`, its source address; `told`, the path MTU after a datagram that is too large.
"""

import contextlib
import json
import socket
import struct
import sys
import time

from both_ways import ECT_0, inside, server

SERVER, PORT, NAME = "2001:db8::1", 9, "server.linklab"
IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, IPV6_MTU = 23, 2, 24  # linux/in6.h
RESOLVER = ("127.0.1.53", 53)
KINDS = {"4": 1, "6": 28}  # A, AAAA


def resolved(family: socket.AddressFamily) -> list[str]:
    """Returns the addresses of the server's name as the C library finds them."""
    with contextlib.suppress(socket.gaierror):
        found = socket.getaddrinfo(NAME, PORT, family, socket.SOCK_DGRAM)
        return [str(one[4][0]) for one in found]
    return []


def asked(kind: int) -> int:
    """Returns the number of addresses of a kind that the name server knows."""
    labels = b"".join(bytes([len(one)]) + one.encode() for one in NAME.split("."))
    message = (
        struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + struct.pack("!BHH", 0, kind, 1)
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.sendto(message, RESOLVER)
        return int.from_bytes(sock.recv(512)[6:8], "big")


def opened() -> socket.socket:
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, ECT_0)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
    sock.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO)
    sock.settimeout(5)
    return sock


def received(sock: socket.socket) -> tuple[int, str]:
    """Returns the ECN field of the next datagram, and its source."""
    _, notes, _, who = sock.recvmsg(2048, 64)
    ((_, _, traffic_class),) = notes
    return int.from_bytes(traffic_class, sys.byteorder) & 3, who[0]


def main(device: str) -> None:
    near = opened()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    near.connect((SERVER, PORT))
    with inside(server()):
        far = opened()
        far.bind(("::", PORT))
    near.send(b"here")
    ecn_up, source = received(far)
    far.sendto(b"there", near.getsockname()[:2])
    ecn_down, _ = received(near)
    with contextlib.suppress(OSError):
        near.send(bytes(1400))
    time.sleep(0.5)
    told = near.getsockopt(socket.IPPROTO_IPV6, IPV6_MTU)
    found = {
        "names": [resolved(one) for one in (socket.AF_INET, socket.AF_INET6)],
        "asked": [asked(kind) for kind in KINDS.values()],
        "ecn": [ecn_up, ecn_down],
        "from": source,
        "told": told,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
