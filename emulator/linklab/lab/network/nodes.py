"""Provides Mininet's nodes and cables without processes that a lab does not need.

Mininet starts an interactive bash for every node and runs `ip` and `ifconfig` in it. That takes 0.1
s of a guest's boot per node and per cable. Here a router is only a network namespace. An end host
has a waiting shell, because mnexec starts programs by its process number. Netlink messages make the
cables.
"""

from __future__ import annotations

import os
import subprocess
from typing import Any

from mininet.link import Intf, Link
from mininet.node import Node

from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import inside, network_of, new_network
from linklab.lab.kernel.netlink import Channel


class Router(Node):  # type: ignore[misc]
    """A node on which no programs are started. `namespace` is a descriptor of its network
    namespace, `channel` a netlink socket in it. `terminate` closes both."""

    isSetup = True
    """Disables Mininet's check for mnexec. Code that starts mnexec checks for it."""

    namespace: int
    channel: Channel

    def startShell(self, mnopts: str | None = None) -> None:
        """Makes the namespace. Starts no shell."""
        self.namespace = new_network()
        self._open()

    def _open(self) -> None:
        with inside(self.namespace):
            self.channel = Channel()

    def terminate(self) -> None:
        self.channel.close()
        os.close(self.namespace)


class EndHost(Router):
    """A node on which mnexec starts programs, by its `pid`."""

    def startShell(self, mnopts: str | None = None) -> None:
        """Makes network and mount namespaces, and a process in them that ends with its input. The
        process has the name that Mininet gives its shells."""
        self.shell = subprocess.Popen(
            ["mnexec", "-n", "sh", "-c", "echo; read _", f"mininet:{self.name}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.pid = self.shell.pid
        assert self.shell.stdin is not None
        assert self.shell.stdout is not None
        self._pipes = (self.shell.stdin, self.shell.stdout)
        try:
            if self._pipes[1].readline() != b"\n":
                raise OSError(f"mnexec makes no namespaces for {self.name}")
            self.namespace = network_of(self.pid)
            self._open()
        except BaseException:
            self._end()
            raise

    def terminate(self) -> None:
        super().terminate()
        self._end()

    def _end(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        self.shell.wait()


class _Interface(Intf):  # type: ignore[misc]
    """An end of a cable. The code that makes the cable configures it."""

    def config(self, **_: Any) -> dict[str, Any]:
        return {}


class Cable(Link):  # type: ignore[misc]
    """A veth pair between two nodes."""

    def __init__(
        self, one: Router, two: Router, names: tuple[str, str], macs: tuple[str, str]
    ) -> None:
        super().__init__(
            one,
            two,
            intfName1=names[0],
            intfName2=names[1],
            addr1=macs[0],
            addr2=macs[1],
            intf=_Interface,
        )

    @classmethod
    def makeIntfPair(
        cls, name1: str, name2: str, addr1: str, addr2: str, node1: Router, node2: Router, **_: Any
    ) -> None:
        node1.channel.request(rtnetlink.add_cable(name1, addr1, name2, addr2, node2.namespace))
