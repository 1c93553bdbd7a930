"""Defines multipath QUIC as a client with its own server.

`noq` is a program of ours around the library of that name (client/peers/noq), which speaks
draft-ietf-quic-multipath-21. `make peers-quic` compiles it. It has a path from the address that each
link has at its start.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from linklab.lab.network.services import HTTPS_PORT
from linklab.lab.network.topology import SERVER_ADDRESS, link_paths
from linklab.runs.clients.client import ClientFamily, ClientUnderTest, PeerProgram
from linklab.runs.clients.task import Task
from linklab.scenario.workload import WHOLE_FILE

NOQ: Final = PeerProgram("noq-peer")

_SERVER: Final = f"{SERVER_ADDRESS}:{HTTPS_PORT}"


def local_addresses(task: Task) -> list[str]:
    """Returns the client's address on each link at the start of a run."""
    return [path.client.address for path in link_paths(task.scenario.links).values()]


def _noq(name: str, congestion_control: str) -> ClientUnderTest:
    def download(task: Task) -> list[str]:
        file = Path(task.url).name
        return [
            *(f"{task.peers}/{NOQ.executable}", "get", _SERVER, file, task.ca_file, task.output),
            *local_addresses(task),
        ]

    server = (
        *(f"{{peers}}/{NOQ.executable}", "serve", congestion_control),
        *("{address}:{port}", "{certificate}", "{key}", "{directory}"),
    )
    return ClientUnderTest(
        name, {WHOLE_FILE: download}, program=NOQ, only_by_name=True, server=server
    )


FAMILY: Final = ClientFamily((_noq("noq", "cubic"), _noq("noq-bbr3", "bbr3")))
"""With CUBIC, as all of the lab's TCP has by default, and with noq's BBR."""
