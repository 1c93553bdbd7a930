"""Chooses the place (guest or host), the clock and the processor of a run, and says why."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from typing import Final

from linklab.core.errors import LinklabError
from linklab.core.paths import PYTHON_PATH
from linklab.places import host_programs
from linklab.places.emulated import qemu
from linklab.places.guest import system_calls
from linklab.places.names import PROCESSOR as PROCESSOR
from linklab.places.names import PROCESSORS

SLOWER: Final = 15
"""How many times slower a run on an emulated processor is (handbook/how-to/run-on-any-processor.md)."""


class PlaceError(LinklabError, RuntimeError):
    """The requested place or clock is not available on this machine."""


@dataclass(frozen=True)
class Environment:
    """The environment of a run: `name` is host or guest, `clock` is virtual or real.

    If `is_emulated`, the guest runs in an emulated machine (places/emulated).
    """

    name: str
    clock: str
    reason: str
    is_emulated: bool = False

    def __str__(self) -> str:
        return f"place: {self.name}, clock: {self.clock} ({self.reason})"


@functools.cache
def host_obstacle() -> str | None:
    """Returns why the host cannot run a lab, or None.

    It tries: a throw-away network namespace gets the qdiscs that a lab uses. Then it looks for the
    programs that labs on the host call.
    """
    if os.geteuid() != 0:
        return "not root (in Compose, emulator/compose.host.yaml gives the rights)"
    try:
        done = subprocess.run(
            ["unshare", "--net", sys.executable, "-m", "linklab.lab.shaping.probe"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(PYTHON_PATH)},
        )
    except FileNotFoundError:
        return "unshare (util-linux) is missing"
    if done.returncode == 0:
        return host_programs.missing("host place")
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else "no network namespace can be made"


def native_obstacle() -> str | None:
    """Returns why the guest cannot run on this machine's own processor, or None."""
    if platform.machine() != "x86_64":
        return f"User Mode Linux needs x86-64, this machine is {platform.machine()}"
    return system_calls.obstacle()


def is_emulated(processor: str | None = None) -> bool:
    """Tells whether guests run on an emulated processor. None: as the environment variable says.

    `auto` means: only if they cannot run on this machine's own. Raises PlaceError if the
    environment variable has another value.
    """
    wanted = processor or os.environ.get(PROCESSOR) or "auto"
    if wanted not in PROCESSORS:
        raise PlaceError(f"{PROCESSOR}={wanted}; allowed: {', '.join(PROCESSORS)}")
    return wanted == "emulated" or (wanted == "auto" and native_obstacle() is not None)


def emulation_obstacle() -> str | None:
    """Returns why there is no emulated processor here, or None."""
    try:
        qemu.find()
    except qemu.QemuError as error:
        return str(error)
    return None


def guest_obstacle(processor: str | None = None) -> str | None:
    """Returns why the guest cannot be used on this machine, or None."""
    native = native_obstacle()
    if not is_emulated(processor):
        return native
    missing = emulation_obstacle()
    if missing is None or native is None:
        return missing
    return f"{native}, and for an emulated processor: {missing}"


def choose(place: str, clock: str, processor: str | None = None) -> Environment:
    """Chooses place, clock and processor; each request is `auto` or a name.

    The guest in virtual time is preferred, because its figures repeat exactly. Without a guest it
    is the host with the real clock. Raises PlaceError if the request cannot be met.
    """
    no_guest = guest_obstacle(processor)
    emulated = is_emulated(processor)
    if no_guest is None and emulated and clock == "real":
        native = native_obstacle()
        slow = "an emulated processor is too slow for the real clock"
        no_guest = slow if native is None else f"{native}, and {slow}"
    if place == "host" or (place == "auto" and no_guest is not None):
        if clock == "virtual":
            remedy = ": use --place guest" if no_guest is None else f", but: {no_guest}"
            raise PlaceError(f"virtual time exists only in the guest{remedy}")
        no_host = host_obstacle()
        if no_host is not None:
            if no_guest is not None:
                raise PlaceError(f"neither place can be used; guest: {no_guest}; host: {no_host}")
            raise PlaceError(f"the host place cannot be used: {no_host}; use --place guest")
        return Environment(
            "host", "real", "as asked" if place == "host" else f"no guest: {no_guest}"
        )
    if no_guest is not None:
        raise PlaceError(f"the guest place cannot be used: {no_guest}")
    if clock == "real":
        return Environment("guest", "real", "the real clock was asked for")
    if emulated:
        slower = f"emulated processor: same figures, about {SLOWER} times slower"
        return Environment("guest", "virtual", slower, is_emulated=True)
    return Environment("guest", "virtual", "figures repeat exactly")
