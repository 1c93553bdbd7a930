"""Defines curl as a client on one link, over one connection or over a new one for each piece."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from linklab.runs.clients.client import ClientFamily, ClientUnderTest, Command, PeerProgram
from linklab.runs.clients.task import Task
from linklab.scenario.workload import UPLOAD, WHOLE_FILE

PROGRAM: Final = PeerProgram(package="curl", executable="curl")


_CURL: Final = ("curl", "--silent", "--show-error", "--fail")


def _get(task: Task, *options: str) -> list[str]:
    """Returns the command that writes what it asked for to its output."""
    return [*_CURL, "--cacert", task.ca_file, *options, task.url]


def download(task: Task, *options: str) -> list[str]:
    """Returns the command that downloads the file by curl, with further options."""
    return _get(task, *options, "--output", task.output)


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


PIECE_BYTES: Final = 10_000_000
"""The size of a piece of `curl-pieces`. At 40 Mbit/s it takes 2 s, as in thesis figure 4.17."""

_IN_PIECES: Final = (
    "size=$1; file=$2; shift 2; "
    f"for from in $(seq 0 {PIECE_BYTES} $((size - 1))); do "
    f'"$@" --range $from-$((from + {PIECE_BYTES - 1})); '
    'done > "$file"'
)
"""A shell script. It starts curl once for each piece, so that each has a connection of its own."""


def _in_pieces(link: str) -> ClientUnderTest:
    def fetch(task: Task) -> list[str]:
        return [
            *("sh", "-ec", _IN_PIECES, "sh", str(task.scenario.payload.size_bytes), task.output),
            *_get(task, "--interface", task.scenario.links[link].device),
        ]

    return ClientUnderTest(
        f"curl-pieces-{link}", {WHOLE_FILE: fetch}, program=PROGRAM, only_by_name=True
    )


FAMILY: Final = ClientFamily(on_one={"curl": _alone, "curl-pieces": _in_pieces})
