"""Defines aria2 as a client, with several connections over all links."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from linklab.runs.clients.client import (
    ClientFamily,
    ClientUnderTest,
    Command,
    PeerProgram,
)
from linklab.runs.clients.task import Task
from linklab.scenario.workload import WHOLE_FILE

PROGRAM: Final = PeerProgram(package="aria2", executable="aria2c")

TIME_OUTS: Final = ("--timeout=3", "--connect-timeout=3", "--max-tries=0")
"""As a user of mobile links sets them. By default aria2 waits for 60 s on a silent link, and gives up
after five tries."""


def command(
    url: str, *, connections: int, devices: Iterable[str], ca_file: str, output: str
) -> list[str]:
    """Returns the command of aria2 with `connections` over all devices together."""
    file = Path(output)
    return [
        *("aria2c", "--no-conf", "--quiet", "--file-allocation=none", "--console-log-level=error"),
        *TIME_OUTS,
        *(f"--ca-certificate={ca_file}", f"--multiple-interface={','.join(devices)}"),
        *("-s", str(connections), "-x", str(connections), "-k", "1M"),
        *("-d", str(file.parent), "-o", file.name, url),
    ]


def _download(connections: int) -> Command:
    def download(task: Task) -> list[str]:
        return command(
            task.url,
            connections=connections,
            devices=[link.device for link in task.scenario.links.values()],
            ca_file=task.ca_file,
            output=task.output,
        )

    return download


FAMILY: Final = ClientFamily(
    tuple(
        ClientUnderTest(f"aria2-{n}", {WHOLE_FILE: _download(n)}, program=PROGRAM)
        for n in (2, 8, 16)
    )
)
