"""A guest's way outside, on the real clock: a network device of its own, whose other end is
slirp4netns, a program without rights that connects with what the guest asks for.

In virtual time there is none: what comes from outside comes at any time.
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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from linklab.core.scratch import scratch_prefix
from linklab.relay import relay
from linklab.relay.relay import Rule

PROGRAM: Final = "slirp4netns"
DEVICE: Final = "vec0"

_NETWORK: Final = "192.0.2.0/24"  # RFC 5737: nobody has it.
GATEWAY: Final = "192.0.2.2"
"""It also stands for this machine's loopback device."""

RESOLVER: Final = "192.0.2.3"
GUEST: Final = "192.0.2.100"
_START_TIMEOUT_S = 10.0
_PATH_BYTES = 107
"""Of a socket's name, at most (unix(7))."""

_TRIES = 5
"""How often somebody else may be faster than slirp4netns at a port that nobody had."""

_MTU_BYTES = 16_000
"""Between the guest and slirp4netns nothing is emulated: both ends have a tenth of the packets."""

_GIVES_BACK_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "33554432"}
"""It has two buffers of 128 kB for each connection; glibc keeps what was freed of so large ones but
for those that are mapped, and would soon map none of them."""

_LANES = 16
"""How many connections to one port are made at a time: on a busy machine each takes a tenth of a
second."""


class GatewayError(RuntimeError):
    """The guest has no way outside; the message says what to do."""


class _RefusedError(GatewayError):
    """slirp4netns does not listen where it was told to."""


def obstacle() -> str | None:
    """Why a guest can have no way outside here, or None."""
    if shutil.which(PROGRAM) is None:
        return f"{PROGRAM} is missing: apt-get install {PROGRAM}"
    return None


def seen_from_guest(host: str) -> str:
    """The address by which the guest reaches one of this machine's."""
    return GATEWAY if ipaddress.ip_address(host).is_loopback else host


@dataclass(frozen=True)
class Way:
    """What a guest's way outside lets through besides connections of the guest's to others: those to
    this machine's loopback device, whichever port, and into the guest what comes to `ports` of that."""

    ports: tuple[int, ...] = ()
    reaches_loopback: bool = False


class Gateway:
    """A running slirp4netns. `device` is a descriptor for the guest's kernel. Raises GatewayError."""

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
            self._socket = self._joined(guest)
            stack.callback(self._socket.close)
            if way.ports:
                self._open(way.ports, commands, stack)
            self._resources = stack.pop_all()

    @property
    def device(self) -> int:
        """What becomes `DEVICE` in the guest."""
        return self._socket.fileno()

    def close(self) -> None:
        """Ends it."""
        self._resources.close()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _joined(self, path: Path) -> socket.socket:
        """A connection with it, once it listens."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
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

    def _open(self, ports: Sequence[int], commands: Path, stack: contextlib.ExitStack) -> None:
        """Has connections to ports of the loopback device come to the guest's. A relay stands before
        slirp4netns, which has room for one connection that waits at each port of its own."""
        rules = []
        with contextlib.ExitStack() as here:
            for port in ports:
                sock = here.enter_context(socket.socket())
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    sock.bind(("127.0.0.1", port))
                except OSError as error:
                    raise GatewayError(f"port {port} of 127.0.0.1: {error.strerror}") from None
                sock.listen(1024)
                lanes = [("127.0.0.1", self._lead_in(commands, port)) for _ in range(_LANES)]
                descriptor = os.dup(sock.fileno())
                here.callback(os.close, descriptor)
                rules.append(
                    Rule(descriptor=descriptor, to=None, udp=False, greets=False, lanes=lanes)
                )
            front = subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig", "KILL"),
                    *(sys.executable, "-I", "-S", str(relay.__file__), json.dumps(rules)),
                ],
                stdin=subprocess.DEVNULL,
                pass_fds=[rule["descriptor"] for rule in rules],
            )
        stack.callback(front.wait)
        stack.callback(front.kill)

    def _lead_in(self, commands: Path, port: int) -> int:
        """Has connections to a port that nobody has come to the guest's of this number; the port.
        Anybody may take it before slirp4netns does: then it is another one."""
        for _ in range(_TRIES - 1):
            with contextlib.suppress(_RefusedError):
                return self._led_in(commands, port)
        return self._led_in(commands, port)

    def _led_in(self, commands: Path, port: int) -> int:
        sock = self._asking(commands)
        own = _unused_port()
        wanted = {
            "execute": "add_hostfwd",
            "arguments": {
                "proto": "tcp",
                "host_addr": "127.0.0.1",
                "host_port": own,
                "guest_addr": GUEST,
                "guest_port": port,
            },
        }
        with sock:
            sock.sendall(json.dumps(wanted).encode())
            sock.shutdown(socket.SHUT_WR)
            answer = json.loads(sock.makefile("rb").read())
        if "error" in answer:
            raise _RefusedError(f"port {own} of 127.0.0.1: {answer['error']['desc']}")
        return own

    def _asking(self, commands: Path) -> socket.socket:
        """A connection for one command, once slirp4netns takes any."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            sock = socket.socket(socket.AF_UNIX)
            try:
                sock.connect(str(commands))
            except (FileNotFoundError, ConnectionRefusedError):
                sock.close()
                time.sleep(0.01)
            else:
                return sock
        raise GatewayError(f"{PROGRAM} takes no commands")


def _unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def kernel_argument(device: int) -> str:
    """What has the guest's kernel take a descriptor for its device."""
    return f"{DEVICE}:transport=fd,fd={device},mtu={_MTU_BYTES}"
