"""A user of the same machine who takes the ports of a lab that starts.

    port_thief.py PROCESS

It reads the arguments of the descendants of a process, and listens on the ports that they name before
the lab does. It also tries the ports on which the lab listens. It says what a lab would say. It prints
what it gets, a line each.
"""

import contextlib
import json
import re
import socket
import sys
import threading
import time
from pathlib import Path

NEXT = 10
"""A lab that is told one port for its proxies takes the following ones too."""

taken: dict[int, socket.socket] = {}


def parent(process: int) -> int:
    """Returns a process' parent, 0 if there is none."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return 0


def named(root: int) -> set[int]:
    """Returns the ports that arguments of descendants name."""
    found: set[int] = set()
    for one in Path("/proc").glob("[0-9]*"):
        above = int(one.name)
        while above not in (0, root):
            above = parent(above)
        with contextlib.suppress(OSError):
            words = (one / "cmdline").read_bytes().split(b"\0") if above == root else []
            if b"live" in words:
                ports = re.findall(rb"(?:127\.0\.0\.1:|\0)(\d{4,5})(?=\0)", b"\0".join(words))
                for port in map(int, ports):
                    found |= set(range(port, port + NEXT))
    return found


def listened() -> set[int]:
    """Returns the ports on which anybody listens."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return {int(line.split()[1].split(":")[1], 16) for line in lines if line.split()[3] == "0A"}


def take(port: int) -> None:
    """Listens on a port, if that is possible."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(("127.0.0.1", port))
        sock.listen(50)
    except OSError:
        return sock.close()
    taken[port] = sock
    return threading.Thread(target=serve, args=(sock,), daemon=True).start()


def serve(sock: socket.socket) -> None:
    """Answers every connection."""
    while True:
        connection = sock.accept()[0]
        with contextlib.suppress(OSError), connection:
            connection.settimeout(5)
            answer(connection)


def answer(connection: socket.socket) -> None:
    """Answers as a lab or its proxy would, and prints what was asked."""
    asked = connection.recv(65_536)
    print(json.dumps(asked.decode(errors="replace")), flush=True)
    if asked[:1] == b"\x05":
        connection.sendall(b"\x05\0")
        return
    said = b'{"done": "wifi: down"}'
    if b"GET /lab " in asked:
        said = b'{"state": "running", "links": {"wifi": {}, "lte": {}}}'
    elif b"/status" in asked:
        proxy = f"http://127.0.0.1:{min(taken)}"
        ways = {"": proxy, "wifi": proxy, "lte": proxy}
        said = json.dumps(
            {"scenario": "small", "origins": [], "proxies": ways, "now": None}
        ).encode()
    connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(said) + said)


def main() -> None:
    """Steals until it is killed."""
    root = int(sys.argv[1])
    before = listened()
    while True:
        for port in named(root) | (listened() - before):
            if port not in taken:
                take(port)
        time.sleep(0.005)


if __name__ == "__main__":
    main()
