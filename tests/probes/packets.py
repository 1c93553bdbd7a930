"""Sends UDP both ways by a plan, and records when every frame passed each place of its link.

usage: packets.py PLAN

The plan is JSON: `links`, objects as below, and `packets`, lists of time in ns since the scenario began,
index of the link, direction, and bytes of the frame. The scenario begins at a whole second of the monotonic clock. A link has `device` (the client's), `near` and `far` (the access node's, towards client
and core), `end` (the server's), and `address`, the server's.

Writes `packets.jsonl` into the run directory: link, place, whether the frame left there (else it came),
time, bytes of the frame, and the number in the plan. Frames of others have a digest instead.
"""

import contextlib
import hashlib
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import both_ways
from both_ways import ROOM_BYTES, capturing

PORT = 5047
SETTLE_S = 20.0
PLACES = ("device", "near", "far", "end")
ETHERNET_BYTES, IPV4_BYTES, IPV6_BYTES, UDP_BYTES = 14, 20, 40, 8
MAGIC = b"numbered"
IPV6_PROTOCOL, OUTGOING = 0x86DD, 4  # linux/if_ether.h, linux/if_packet.h
SO_SNDBUFFORCE = 32  # asm-generic/socket.h


@contextlib.contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Moves this thread into a network namespace during the block."""
    there = os.open(namespace, os.O_RDONLY)
    with both_ways.inside(there):
        os.close(there)
        yield


def namespaces() -> dict[str, str]:
    """Returns a file of the network namespace of each device of the lab. The access nodes' namespaces
    have no process, so they are among the open files of the lab's."""
    found, seen = {}, set()
    for path in [*Path("/proc").glob("[0-9]*/ns/net"), *Path("/proc").glob("[0-9]*/fd/*")]:
        with contextlib.suppress(OSError):  # It has ended meanwhile.
            target = str(path.readlink())
            if target.startswith("net:[") and target not in seen:
                with inside(str(path)):
                    found.update({name: str(path) for _, name in socket.if_nameindex()})
                seen.add(target)
    return found


def captured(sock: socket.socket) -> Iterator[tuple[bool, int, int, int | str]]:
    """Yields whether a frame left, its time in ns, its bytes, and its number or digest."""
    while True:
        try:
            content, notes, _, (_, protocol, kind, *_) = sock.recvmsg(65535, 64)
        except BlockingIOError:
            return
        except OSError:  # The device was down for a while. It says so once.
            continue
        seconds, nanoseconds = struct.unpack("@qq", notes[0][2])
        ip_bytes = IPV6_BYTES if protocol == IPV6_PROTOCOL else IPV4_BYTES
        # Routers and queues change the IP header, and only that.
        rest = content[ETHERNET_BYTES + ip_bytes :]
        number: int | str = hashlib.blake2b(rest, digest_size=8).hexdigest()
        if rest[UDP_BYTES : UDP_BYTES + 8] == MAGIC:
            (number,) = struct.unpack_from("!I", rest, UDP_BYTES + 8)
        yield kind == OUTGOING, seconds * 10**9 + nanoseconds, len(content), number


class Flow:
    """The sockets of one link: the client's, and the server's, which answers the last sender."""

    def __init__(self, number: int, link: dict[str, str], files: dict[str, str]) -> None:
        address = link["address"]
        is_ipv6 = ":" in address
        family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
        self.headers = ETHERNET_BYTES + (IPV6_BYTES if is_ipv6 else IPV4_BYTES) + UDP_BYTES
        self.server = (address, PORT + number)
        self.client = None
        self.near = socket.socket(family, socket.SOCK_DGRAM)
        self.near.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, link["device"].encode())
        with inside(files[link["end"]]):
            self.far = socket.socket(family, socket.SOCK_DGRAM)
            self.far.bind(self.server)
        for sock in (self.near, self.far):
            sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, ROOM_BYTES)
            sock.setblocking(False)
        with contextlib.suppress(OSError):  # The link has no carrier.
            self.near.sendto(b"the server can answer", self.server)

    def send(self, direction: str, number: int, frame_bytes: int) -> None:
        """Sends a packet. A link without a carrier refuses it, and the server needs a client."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.client = self.far.recvfrom(8)[1]
        head = MAGIC + struct.pack("!I", number)
        content = head + bytes(max(0, frame_bytes - self.headers - len(head)))
        with contextlib.suppress(OSError):
            if direction == "up":
                self.near.sendto(content, self.server)
            elif self.client:
                self.far.sendto(content, self.client)


def main(file: str) -> None:
    """Sends all packets, and records until 20 s after the last one."""
    began_ns = time.monotonic_ns() // 10**9 * 10**9
    # A look at a clock may take time.
    before_ns, now_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
    epoch_ns = now_ns - (before_ns + after_ns) // 2
    plan = json.loads(Path(file).read_text())
    # Other hosts on a link have a device of the same name.
    files = namespaces() | {link["device"]: "/proc/thread-self/ns/net" for link in plan["links"]}
    sockets = []
    for number, link in enumerate(plan["links"]):
        for place in PLACES:
            with inside(files[link[place]]):
                sockets.append((number, place, capturing(link[place])))
    flows = [Flow(number, link, files) for number, link in enumerate(plan["links"])]
    for number, (t_ns, link, direction, frame_bytes) in enumerate(plan["packets"]):
        if (left_ns := began_ns + t_ns - time.monotonic_ns()) > 0:
            time.sleep(left_ns / 1e9)
        flows[link].send(direction, number, frame_bytes)
    time.sleep(SETTLE_S)
    with Path(os.environ["LINKLAB_RUN_DIR"], "packets.jsonl").open("w") as out:
        for link, place, sock in sockets:
            for left, t_ns, size, key in captured(sock):
                if place in ("device", "end") and isinstance(key, str):
                    continue
                line = [link, place, left, t_ns - epoch_ns - began_ns, size, key]
                out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
