"""Connects a guest on the real clock with the network outside.

The guest has a network device whose other end is slirp4netns. That is an unprivileged program,
which opens the connections that the guest asks for. In virtual time there is no such device,
because packets from outside would arrive at arbitrary times.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from linklab.core.errors import LinklabError
from linklab.core.scratch import scratch_prefix
from linklab.relay.rule import PROGRAM as RELAY
from linklab.relay.rule import Rule

PROGRAM: Final = "slirp4netns"
DEVICE: Final = "vec0"

_NETWORK: Final = "192.0.2.0/24"  # RFC 5737: reserved for documentation.
GATEWAY: Final = "192.0.2.2"
"""The guest also reaches this machine's loopback device by this address."""

RESOLVER: Final = "192.0.2.3"
GUEST: Final = "192.0.2.100"
_START_TIMEOUT_S = 10.0
_PATH_BYTES = 107
"""The longest name of a Unix socket (unix(7))."""

_TRIES = 5
"""The number of tries for a free port. Another program may take it before slirp4netns."""

_MTU_BYTES = 16_000
"""The link between guest and slirp4netns is not emulated. Large packets cut their number to 1/10."""

_GIVES_BACK_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "33554432"}
"""Settings of glibc's malloc for slirp4netns, which has two buffers of 128 kB a connection. glibc
returns freed memory of this size only if it was mapped, and by default soon stops mapping it."""

_LANES = 16
"""The number of connections to one port made at the same time. On a busy machine each takes 0.1 s."""


class GatewayError(LinklabError, RuntimeError):
    """The guest cannot reach the network outside. The message says what to do."""


def obstacle() -> str | None:
    """Returns why guests here cannot reach the network outside, or None."""
    if shutil.which(PROGRAM) is None:
        return f"{PROGRAM} is missing: apt-get install {PROGRAM}"
    return None


def seen_from_guest(host: str) -> str:
    """Returns the address by which the guest reaches an address of this machine."""
    return GATEWAY if ipaddress.ip_address(host).is_loopback else host


@dataclass(frozen=True)
class Way:
    """The permitted connections besides those from the guest to other machines.

    Attributes:
        listeners: sockets that listen on ports of this machine. The ports lead to the guest's ports
            of the same numbers.
        reaches_loopback: the guest may connect to any port of this machine's loopback device.
    """

    listeners: tuple[socket.socket, ...] = ()
    reaches_loopback: bool = False


class Gateway:
    """A running slirp4netns. Raises GatewayError if it cannot be started."""

    def __init__(self, way: Way) -> None:
        missing = obstacle()
        if missing is not None:
            raise GatewayError(missing)
        with contextlib.ExitStack() as stack:
            directory = Path(tempfile.mkdtemp(prefix=scratch_prefix("gateway")))
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            guest, commands = directory / "guest", directory / "commands"
            if len(os.fsencode(commands)) > _PATH_BYTES:
                raise GatewayError(
                    f"{directory.parent} is too long a name for sockets: set TMPDIR to a shorter one"
                )
            log = stack.enter_context((directory / "log").open("w+b"))
            closed = [] if way.reaches_loopback else ["--disable-host-loopback"]
            self._process = subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig", "KILL"),
                    *(PROGRAM, "--target-type=bess", "--cidr", _NETWORK, "--mtu", str(_MTU_BYTES)),
                    *("--api-socket", str(commands), *closed, str(guest)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | _GIVES_BACK_MEMORY,
            )
            stack.callback(self._end)
            self._log = Path(directory / "log")
            self._socket = self._connected(guest, socket.SOCK_SEQPACKET)
            stack.callback(self._socket.close)
            if way.listeners:
                self._open(way, commands, stack)
            self._resources = stack.pop_all()

    @property
    def device(self) -> int:
        """The descriptor that becomes `DEVICE` in the guest."""
        return self._socket.fileno()

    def close(self) -> None:
        self._resources.close()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _connected(self, path: Path, kind: int = socket.SOCK_STREAM) -> socket.socket:
        """Returns a connection with slirp4netns, as soon as it listens."""
        sock = socket.socket(socket.AF_UNIX, kind)
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                sock.connect(str(path))
                return sock
            time.sleep(0.01)
        sock.close()
        raise GatewayError(f"{PROGRAM} does not start: {self._last_words()}")

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def _open(self, way: Way, commands: Path, stack: contextlib.ExitStack) -> None:
        """Forwards connections from the listeners to the guest's ports.

        A relay accepts the connections, because slirp4netns has a backlog of one a port.
        """
        rules = []
        for one in way.listeners:
            port = int(one.getsockname()[1])
            lanes = [("127.0.0.1", self._lead_in(commands, port)) for _ in range(_LANES)]
            rules.append(Rule(descriptor=one.fileno(), lanes=lanes, associates=True))
        front = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL"),
                *(sys.executable, "-I", "-S", str(RELAY), json.dumps(rules)),
            ],
            stdin=subprocess.DEVNULL,
            pass_fds=[rule["descriptor"] for rule in rules],
        )
        stack.callback(front.wait)
        stack.callback(front.kill)

    def _lead_in(self, commands: Path, port: int) -> int:
        """Forwards a free port of this machine to the guest's `port`, and returns it.

        If another program takes the free port first, it tries another one.
        """
        for _ in range(_TRIES):
            own = _unused_port()
            where = {"proto": "tcp", "host_addr": "127.0.0.1", "host_port": own}
            where |= {"guest_addr": GUEST, "guest_port": port}
            with self._connected(commands) as sock:
                sock.sendall(json.dumps({"execute": "add_hostfwd", "arguments": where}).encode())
                sock.shutdown(socket.SHUT_WR)
                answer = json.loads(sock.makefile("rb").read())
            if "error" not in answer:
                return own
        raise GatewayError(f"port {own} of 127.0.0.1: {answer['error']['desc']}")


def _unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def kernel_argument(device: int) -> str:
    """Returns the kernel argument that gives the guest a device by its descriptor."""
    return f"{DEVICE}:transport=fd,fd={device},mtu={_MTU_BYTES}"
