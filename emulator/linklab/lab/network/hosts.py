"""Hosts of the lab: Mininet's nodes, their network sockets and the programs on them."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from linklab.core.errors import LinklabError
from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import inside, write_sysctls
from linklab.lab.kernel.netlink import Channel
from linklab.lab.network.nodes import EndHost, Router

LOOPBACK: Final = 1
"""The index of a namespace's loopback interface."""


class LabError(LinklabError, RuntimeError):
    """The lab could not be built or a program in it could not be started."""


@dataclass
class Host:
    """A host of the lab: its name, its Mininet node, and the indices of its interfaces."""

    name: str
    node: Router
    indices: dict[str, int] = field(default_factory=dict)

    @property
    def channel(self) -> Channel:
        return self.node.channel

    @property
    def pid(self) -> int:
        """Returns the process number by which mnexec starts programs. Raises LabError on a router."""
        if not isinstance(self.node, EndHost):
            raise LabError(f"{self.name}: no program can be started on a router")
        return int(self.node.pid)

    def received_bytes(self, device: str) -> int:
        """Returns the bytes that an interface has received since it was made."""
        return self.interface(device).received_bytes

    def interface(self, device: str) -> rtnetlink.Interface:
        return rtnetlink.interface(
            self.channel.request(rtnetlink.get_interface(self.indices[device]))
        )

    def is_up(self, device: str) -> bool:
        return self.interface(device).operational_state == rtnetlink.IS_UP

    def start(
        self,
        argv: list[str],
        *,
        stdin: IO[bytes] | int = subprocess.DEVNULL,
        stdout: IO[bytes] | int = subprocess.DEVNULL,
        stderr: IO[bytes] | int = subprocess.DEVNULL,
        environment: dict[str, str] | None = None,
        directory: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Starts a program on this host.

        `environment` may name another PATH. mnexec is found by the PATH of this process.
        """
        path = os.environ.get("PATH")
        is_own = environment is None or environment.get("PATH") == path
        return subprocess.Popen(
            ["mnexec", "-a", str(self.pid), *argv],
            executable=None if is_own else shutil.which("mnexec"),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=environment,
            cwd=directory,
        )

    def run(self, argv: list[str]) -> None:
        """Runs a program on this host to its end. Raises LabError with its error output."""
        done = subprocess.run(
            ["mnexec", "-a", str(self.pid), *argv], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            words = (done.stderr or done.stdout).strip()
            raise LabError(f"{self.name}: {' '.join(argv)}: {words}")

    def abort_connections(self) -> None:
        """Ends all TCP connections of this host at once. Listening sockets stay."""
        with inside(self.node.namespace):
            subprocess.run(["ss", "--kill", "--tcp"], stdout=subprocess.DEVNULL, check=False)


_SYSCTLS: Final = {
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
    "net.ipv4.ip_forward": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
}

_IPV6_SYSCTLS: Final = {
    "net.ipv6.conf.all.forwarding": "1",
    "net.ipv6.conf.default.forwarding": "0",
    "net.ipv6.conf.default.accept_ra": "0",
    "net.ipv6.conf.default.accept_dad": "0",
    "net.ipv6.conf.default.addr_gen_mode": "1",
    "net.ipv6.conf.default.keep_addr_on_down": "1",
    "net.ipv6.conf.lo.disable_ipv6": "0",
}
"""Makes hosts pass on IPv6, but send nothing by themselves: no solicitation of routers or
neighbours, no report of multicast groups. Interfaces then have no link-local address, and are no
member of the routers' groups. Cables switch IPv6 on for an interface (`cables.connect`)."""


def start_host(name: str, kind: type[Router], *, has_ipv6: bool = False) -> Host:
    """Makes a host with a network namespace. `node.terminate` removes both."""
    node = kind(name)
    try:
        write_sysctls(node.namespace, _SYSCTLS)
        if has_ipv6:
            write_sysctls(node.namespace, _IPV6_SYSCTLS)
        node.channel.request(rtnetlink.set_up(LOOPBACK, up=True))
    except BaseException:
        node.terminate()
        raise
    return Host(name, node)
