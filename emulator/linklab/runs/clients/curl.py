"""Defines curl as a client on one link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from linklab.runs.clients.client import ClientFamily, ClientUnderTest, Command, PeerProgram
from linklab.runs.clients.task import Task
from linklab.scenario.workload import UPLOAD, WHOLE_FILE

PROGRAM: Final = PeerProgram(package="curl", executable="curl")


_CURL: Final = ("curl", "--silent", "--show-error", "--fail")


def download(task: Task, *options: str) -> list[str]:
    """Returns the command that downloads the file by curl, with further options."""
    return [*_CURL, "--cacert", task.ca_file, *options, "--output", task.output, task.url]


def download_by(interface: Callable[[Task], str]) -> Command:
    """Returns a function that makes the download command for the device or address of `interface`."""
    return lambda task: download(task, "--interface", interface(task))


def upload(task: Task) -> list[str]:
    """Returns the command that uploads the whole payload by curl. It uses HTTP/1.1, because over
    HTTP/2 curl 7.88 may notice the answer a second late."""
    return [
        *(*_CURL, "--http1.1", "--cacert", task.ca_file),
        *("--upload-file", task.payload, task.url),
    ]


def _alone(link: str) -> ClientUnderTest:
    def device(task: Task) -> str:
        return task.scenario.links[link].device

    def send(task: Task) -> list[str]:
        return [*upload(task), "--interface", device(task)]

    commands = {WHOLE_FILE: download_by(device), UPLOAD: send}
    return ClientUnderTest(f"curl-{link}", commands, program=PROGRAM)


FAMILY: Final = ClientFamily(on_one={"curl": _alone})
