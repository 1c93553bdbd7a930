"""Serves labs until interrupted: says where they are, and opens their page."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linklab.realtime import page_link
from linklab.realtime.address import from_here, to_text
from linklab.realtime.command_server import DOCUMENT, LiveServer, serving
from linklab.realtime.messages import StartLab
from linklab.realtime.one_lab import OneLab, Open
from linklab.realtime.recorder import Recorder
from linklab.realtime.session import KEPT_RUNS, LiveLab
from linklab.runs.runner import RunRequest


@dataclass(frozen=True, kw_only=True)
class Outlets:
    """Where a live lab shows itself.

    Attributes:
        address: of metrics, status, page and commands.
        page: whether there is a page.
        open: whether a browser opens it.
        dashboards: the URL of Grafana, to be printed.
        recorder: writes what is changed by hand.
        addresses_fd: the descriptor to which the lab's addresses are written.
    """

    address: tuple[str, int]
    page: bool = True
    open: bool = False
    dashboards: str | None = None
    recorder: Recorder | None = None
    addresses_fd: int | None = None


def live(open_lab: Open, first: StartLab, outlets: Outlets) -> None:
    """Serves labs until it is interrupted, beginning with `first`.

    Raises TokenError if the environment has an invalid token, OSError if the addresses cannot be
    told, and what ends the first lab.
    """
    with contextlib.ExitStack() as stack:
        labs = OneLab(first)
        if outlets.recorder is not None:
            stack.callback(_say_recorded, outlets.recorder)
        server, token, kept = stack.enter_context(serving(outlets.address, labs, page=outlets.page))

        def begun(lab: LiveLab, directory: Path) -> None:
            if outlets.addresses_fd is not None:
                said = {name: lab.status()[name] for name in ("proxies", "origins")}
                tell(outlets.addresses_fd, {"address": to_text(server.address), **said})
            _say(lab.turn, server, directory, kept)
            if outlets.page:
                stack.enter_context(page_link.shown(server.address, token, opens=outlets.open))
            if outlets.dashboards:
                print(f"open {outlets.dashboards}", file=sys.stderr)

        labs.run(open_lab, begun)


def serve(open_lab: Open, address: tuple[str, int]) -> None:
    """Serves the labs that requests ask for, until it is interrupted. Raises TokenError, OSError."""
    labs = OneLab()
    with serving(address, labs, page=True) as (server, token, kept):
        url = f"http://{to_text(from_here(server.address))}"
        print(
            f"API: {url}, described by {url}{DOCUMENT}\nwho changes a lab needs the token: {kept}",
            file=sys.stderr,
        )
        with page_link.shown(server.address, token, opens=False):
            labs.run(open_lab)


def tell(descriptor: int, said: dict[str, Any]) -> None:
    """Writes for the program that started the lab: its addresses, on which it listens already, or
    why there can be none. Raises OSError."""
    try:
        with open(descriptor, "w") as pipe:
            pipe.write(f"{json.dumps(said)}\n")
    except OSError as error:
        raise OSError(f"--addresses-fd {descriptor}: {error.strerror}") from None


def _say(turn: Sequence[RunRequest], server: LiveServer, directory: Path, kept: str) -> None:
    links = list(turn[0].scenario.links)
    first, last = links[0], links[-1]
    print(
        f"live: {turn[0].scenario.name}, {', '.join(one.client_name for one in turn)} in turn; metrics: {server.url}/metrics\n"
        f"run directories: {directory} (the last {KEPT_RUNS})\n"
        f"change it: linklab link {first} carrier down | linklab link {last} down 10mbit | linklab next\n"
        f"who commands it needs its token, which `linklab link` of this account finds: {kept}",
        file=sys.stderr,
    )


def _say_recorded(recorder: Recorder) -> None:
    files = " ".join(map(str, recorder.files))
    said = f"run what you changed by hand: {files}" if files else "no link was changed: no file"
    print(f"--record: {said}", file=sys.stderr)
