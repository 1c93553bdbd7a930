"""curl as a client, on one link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from linklab.runs.clients.client import ClientFamily, ClientUnderTest, Command, PeerProgram
from linklab.runs.clients.task import Task
from linklab.scenario.workload import UPLOAD, WHOLE_FILE

PROGRAM: Final = PeerProgram(package="curl", executable="curl")


def download(interface: Callable[[Task], str]) -> Command:
    """curl by the device, or from the address, that `interface` says."""

    def command(task: Task) -> list[str]:
        return [
            "curl",
            "--silent",
            "--show-error",
            "--fail",
            "--cacert",
            task.ca_file,
            "--interface",
            interface(task),
            "--output",
            task.output,
            task.url,
        ]

    return command


def upload(task: Task) -> list[str]:
    """curl, sending the payload as a whole: by HTTP/1.1, since over HTTP/2 curl 7.88 may look for the
    answer a second after it has come."""
    return [
        *("curl", "--silent", "--show-error", "--fail", "--http1.1", "--cacert", task.ca_file),
        *("--upload-file", task.payload, task.url),
    ]


def _alone(link: str) -> ClientUnderTest:
    def device(task: Task) -> str:
        return task.scenario.links[link].device

    def send(task: Task) -> list[str]:
        return [*upload(task), "--interface", device(task)]

    commands = {WHOLE_FILE: download(device), UPLOAD: send}
    return ClientUnderTest(f"curl-{link}", commands, program=PROGRAM)


FAMILY: Final = ClientFamily(on_one={"curl": _alone})
