"""Defines multipath QUIC as clients with their own servers.

`noq` is a program of ours around the library of that name (client/peers/noq), which speaks
draft-ietf-quic-multipath-21. `tquic` is the client and the server that TQUIC brings, which speak
HTTP/3 over draft 05. `make peers-quic` compiles them. They have a path from the address that each
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
TQUIC: Final = PeerProgram("tquic_client")

_SERVER: Final = f"{SERVER_ADDRESS}:{HTTPS_PORT}"

_UNTIL_WHOLE: Final = (
    'pipe=$1; shift; mkfifo "$pipe"; '
    '{ trap "kill \\$!" TERM; "$@" & wait $!; test -p "$pipe" && : >"$pipe"; } & '
    'cat "$pipe" >"$0"; rm "$pipe"; kill $!'
)
"""A shell script. It ends TQUIC's client with the file, whose name that client chooses itself. It would
wait up to seconds longer, until its closed connection is drained. If it fails, the file is not whole."""

_MULTIPATH: Final = ("--enable-multipath", "--active-cid-limit", "16")
"""By default TQUIC has identifiers for two paths only."""


def local_addresses(task: Task, only: str | None = None) -> list[str]:
    """Returns the client's address on each link, or on only one, at the start of a run."""
    paths = link_paths(task.scenario.links)
    return [path.client.address for link, path in paths.items() if only in (None, link)]


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


def _tquic(name: str, congestion_control: str, only: str | None = None) -> ClientUnderTest:
    paths = _MULTIPATH if only is None else ()

    def download(task: Task) -> list[str]:
        directory = str(Path(task.output).parent)
        return [
            *("sh", "-c", _UNTIL_WHOLE, task.output, f"{directory}/{Path(task.url).name}"),
            *(f"{task.peers}/{TQUIC.executable}", *paths),
            *("--local-addresses", ",".join(local_addresses(task, only))),
            *("--dump-dir", directory, task.url),
        ]

    server = (
        *("{peers}/tquic_server", *paths, "--congestion-control-algor", congestion_control),
        *("--listen", "{address}:{port}", "--root", "{directory}"),
        *("--cert", "{certificate}", "--key", "{key}"),
    )
    return ClientUnderTest(
        name, {WHOLE_FILE: download}, program=TQUIC, only_by_name=True, server=server
    )


def _alone(link: str) -> ClientUnderTest:
    return _tquic(f"tquic-{link}", "CUBIC", only=link)


FAMILY: Final = ClientFamily(
    (
        *(_noq("noq", "cubic"), _noq("noq-bbr3", "bbr3")),
        *(_tquic("tquic", "CUBIC"), _tquic("tquic-bbr", "BBR")),
    ),
    on_one={"tquic": _alone},
)
"""With CUBIC, as all of the lab's TCP has by default, and with each library's BBR. On one link it is
HTTP/3 as others speak it."""
