import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from linklab.lab.kernel.namespace import inside
from linklab.lab.network.nodes import Cable, EndHost, Router

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def nodes(namespace: int) -> Iterator[tuple[EndHost, Router]]:
    with ExitStack() as stack:
        made = []
        for name, kind in (("client", EndHost), ("ap", Router)):
            node = kind(name)
            stack.callback(node.terminate)
            made.append(node)
        yield made[0], made[1]


def test_programs_see_their_host_s_network_alone(nodes: tuple[EndHost, Router]) -> None:
    host, router = nodes
    Cable(host, router, ("wlan0", "ap-wlan0"), ("02:00:00:00:00:01", "02:00:00:00:00:02"))
    command = ["mnexec", "-a", str(host.pid), "ls", "/sys/class/net"]
    assert subprocess.check_output(command, text=True).split() == ["lo", "wlan0"]
    with inside(router.namespace):
        assert [name for _, name in socket.if_nameindex()] == ["lo", "ap-wlan0"]
        # Under /sys the test sees its own network.
        assert not Path("/sys/class/net/ap-wlan0").exists()


def test_mininet_knows_a_host_and_what_is_joined(nodes: tuple[EndHost, Router]) -> None:
    host, router = nodes
    assert b"mininet:client" in Path(f"/proc/{host.pid}/cmdline").read_bytes().split(b"\0")
    Cable(host, router, ("wlan0", "ap-wlan0"), ("02:00:00:00:00:01", "02:00:00:00:00:02"))
    ((one, two),) = host.connectionsTo(router)
    assert (one.name, two.name, two.mac) == ("wlan0", "ap-wlan0", "02:00:00:00:00:02")


def test_nothing_is_left_of_a_node(namespace: int) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    host, router = EndHost("client"), Router("ap")
    Cable(host, router, ("wlan0", "ap-wlan0"), ("02:00:00:00:00:01", "02:00:00:00:00:02"))
    process = Path(f"/proc/{host.pid}")
    assert process.exists()
    host.terminate()
    router.terminate()
    assert not process.exists()
    assert set(Path("/proc/self/fd").iterdir()) == before
