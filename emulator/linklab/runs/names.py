"""Gives the user's programs host names that are the same on every machine and resolve at once.

With the machine's own files, programs would ask its name servers over emulated links, where none
answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

from linklab.core.ip_family import IPV6, ONLY_IPV4, Families
from linklab.lab.kernel.namespace import CLONE_NEWNS, CLONE_NEWUTS, inside, unshare
from linklab.lab.network import name_server
from linklab.lab.network.lab import Lab
from linklab.lab.network.outside import DNS_ADDRESS
from linklab.lab.network.relays import ended, listening
from linklab.lab.network.services import Outside
from linklab.lab.network.topology import SERVER, SERVER_NAME, server_addresses
from linklab.places.guest.init import BIND, mount, unmount
from linklab.runs.job import Job

_HOST_NAME: Final = "linklab"
"""The guest's kernel has the same name (kernel.config)."""

_RESOLVER: Final = "127.0.1.53"
"""The name server's address on both end hosts. A user's own name server may use port 53 of
127.0.0.1. multilink takes 127.0.0.53 for systemd-resolved."""

_DNS_PORT: Final = 53
_READ_ONLY, _RECURSIVE, _PRIVATE = 1, 16384, 1 << 18  # linux/mount.h
_CACHE: Final = Path("/var/run/nscd")
"""By a socket in this directory glibc asks the machine's nscd before it reads any file."""


def addresses(
    outside: Outside | None, families: Families = ONLY_IPV4
) -> dict[str, tuple[str, ...]]:
    """Returns the known names and their addresses."""
    origins = () if outside is None else outside.origins
    servers = server_addresses(families)
    return {
        "localhost": ("127.0.0.1", "::1") if IPV6 in families else ("127.0.0.1",),
        _HOST_NAME: ("127.0.1.1",),
        SERVER_NAME: servers,
        SERVER: servers,
        **{one.name: one.addresses(families) for one in origins if one.name},
    }


def _asks_outside(outside: Outside | None) -> bool:
    return outside is not None and outside.resolver is not None


def files(outside: Outside | None, families: Families = ONLY_IPV4) -> dict[str, str]:
    """Returns the contents of the files in /etc that concern names."""
    known: dict[str, list[str]] = {}
    for name, found in addresses(outside, families).items():
        for address in found:
            known.setdefault(address, []).append(name)
    hosts = [f"{address} {' '.join(names)}\n" for address, names in known.items()]
    sources, resolver = "files", _RESOLVER
    if _asks_outside(outside):
        sources, resolver = "files dns", DNS_ADDRESS
    databases = ("passwd", "group", "shadow", "networks")
    switch = [f"{one}: files\n" for one in databases]
    return {
        "hostname": f"{_HOST_NAME}\n",
        "hosts": "".join(hosts),
        "nsswitch.conf": f"{''.join(switch)}hosts: {sources}\n",
        "resolv.conf": f"nameserver {resolver}\n",
    }


def _roots(job: Job, families: Families, host_root: Path) -> set[Path]:
    """Returns the roots under which programs look up names: the root of the user's programs, and
    that of proxies, which look up names outside. Clients under test look up the server's name if it
    has an IPv6 address. No other program looks up names."""
    if job.outside is not None:
        return {Path("/"), host_root}
    return ({host_root} if _asks(job) else set()) | ({Path("/")} if IPV6 in families else set())


def _asks(job: Job) -> bool:
    """Tells whether there may be programs that ask a name server."""
    return job.outside is not None or job.command is not None or job.server is not None


def give(job: Job, families: Families, host_root: Path, scratch: Path) -> None:
    """Gives the lab's names to programs that this process starts from now on, if they look up
    names. The user's programs have `host_root` as their root. Raises OSError."""
    roots = _roots(job, families, host_root)
    if not roots:
        return
    unshare(CLONE_NEWNS | CLONE_NEWUTS)
    mount("none", "/", "", _RECURSIVE | _PRIVATE)
    socket.sethostname(_HOST_NAME)
    for root in roots:
        _lay_over(files(job.outside, families), root / "etc", scratch)
    if _CACHE.is_dir():
        mount("none", str(_CACHE), "tmpfs", _READ_ONLY)


def _lay_over(texts: dict[str, str], place: Path, scratch: Path) -> None:
    """Overlays the directory with these files. Single files are not mounted, because the machine
    may lack one or have a broken link in its place."""
    own = scratch / "names"
    own.mkdir()
    # A tmpfs, because overlays can be stacked only two high, and a guest's /tmp is one already.
    mount("none", str(own), "tmpfs", 0, "mode=755")
    for name, text in texts.items():
        (own / name).write_text(text)
        (own / name).chmod(0o644)
    below = [one for one in _mounted_in(place) if one.removeprefix(f"{place}/") not in texts]
    held = [os.open(one, os.O_PATH | os.O_CLOEXEC) for one in below]
    # The first layer wins. Separators in a path are escaped.
    layers = ":".join(re.sub(r"([\\:,])", r"\\\1", str(one)) for one in (own, place))
    mount("names", str(place), "overlay", _READ_ONLY, f"lowerdir={layers}")
    for one, descriptor in zip(below, held, strict=True):
        mount(f"/proc/self/fd/{descriptor}", one, "", BIND | _RECURSIVE)
        os.close(descriptor)
    unmount(str(own))
    own.rmdir()


def _mounted_in(place: Path) -> list[str]:
    """Returns the mount points in a directory, outer ones first, such as a container's volumes."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        name = re.sub(r"\\([0-7]{3})", lambda one: chr(int(one[1], 8)), line.split()[4])
        if name.startswith(f"{place}/"):
            found.append(name)
    return found


def answer(stack: contextlib.ExitStack, lab: Lab, job: Job, families: Families) -> None:
    """Starts name servers on both end hosts, until the stack is left. If names are resolved
    outside, the answers come from there."""
    if not _asks(job) or _asks_outside(job.outside):
        return
    has_own = job.server is not None and job.server.port == _DNS_PORT
    descriptors = []
    for host in [lab.client] if has_own else [lab.client, lab.server]:
        with inside(host.node.namespace):
            sock = stack.enter_context(listening(_RESOLVER, _DNS_PORT, socket.SOCK_DGRAM))
        descriptors.append(sock.fileno())
    known = json.dumps(addresses(job.outside, families))
    argv = [sys.executable, "-I", "-S", name_server.__file__, known, *map(str, descriptors)]
    stack.callback(ended, subprocess.Popen(argv, stdin=subprocess.DEVNULL, pass_fds=descriptors))
