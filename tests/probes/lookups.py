"""Looks up names by every available resolver, and prints each result and its duration.

usage: lookups.py [MULTILINK [PORT]]

MULTILINK is that program, in Go. With PORT it becomes an HTTP server in the end.
"""

import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

UNKNOWN = "nothing.example"
TIMEOUT_S = 5.0


def look(who: str, ask: Callable[[], str]) -> None:
    start = time.monotonic()
    try:
        said = ask()
    except OSError as error:
        said = f"{type(error).__name__} {error.args[0]}"
    took_s = time.monotonic() - start
    print(json.dumps({"who": who, "said": said, "took_s": took_s}), flush=True)


def resolved(name: str) -> str:
    return str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])


def said_by(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return " ".join(f"{done.returncode} {done.stdout}".split())


def said_by_go(*argv: str) -> str:
    """Tells whether Go's resolver reports an unknown name."""
    said = subprocess.run(argv, capture_output=True, text=True, check=False).stderr
    return "no such host" if "no such host" in said else said


def asked(name: str) -> str:
    """Asks as programs without glibc do: the name server of resolv.conf, from an unconnected
    socket. Such a socket gets no error if no server listens."""
    said = Path("/etc/resolv.conf").read_text().splitlines()
    (server,) = (line.split()[1] for line in said if line.startswith("nameserver"))
    labels = b"".join(bytes([len(one)]) + one.encode() for one in name.split("."))
    question = struct.pack("!HHHHHH", 4711, 0x100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(TIMEOUT_S)
        sock.sendto(question, (server, 53))
        answer = sock.recv(512)
    number, flags, _, answers, *_ = struct.unpack_from("!HHHHHH", answer)
    address = socket.inet_ntoa(answer[-4:]) if answers else "none"
    return f"{number} {flags & 15} {address}"


look("own name", socket.getfqdn)
for name in ("server", "server.linklab", socket.gethostname(), "localhost", UNKNOWN):
    look(f"python {name}", lambda name=name: resolved(name))  # type: ignore[misc]
    look(f"getent {name}", lambda name=name: said_by("getent", "hosts", name))  # type: ignore[misc]
    look(f"socket {name}", lambda name=name: asked(name))  # type: ignore[misc]
look("who is 10.0.0.1", lambda: socket.gethostbyaddr("10.0.0.1")[0])
look("who is 10.1.0.1", lambda: socket.gethostbyaddr("10.1.0.1")[0])
look("curl", lambda: said_by("curl", "-s", f"http://{UNKNOWN}/"))
if sys.argv[1:]:
    words = ("get", "--link", "own=lo", "--output", "/dev/null", f"https://{UNKNOWN}/")
    look("multilink", lambda: said_by_go(sys.argv[1], *words))
if sys.argv[2:]:
    os.execv(sys.executable, [sys.executable, "-m", "http.server", sys.argv[2]])
