"""Defines the kernel's Multipath TCP as a client, for curl and for workloads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from linklab.lab.multipath.path_use import PathUse
from linklab.runs.applications import APPLICATIONS
from linklab.runs.clients import curl, multilink
from linklab.runs.clients.client import ClientFamily, ClientUnderTest, PeerProgram
from linklab.runs.clients.task import Task
from linklab.scenario.workload import UPLOAD, WHOLE_FILE

PROGRAM: Final = PeerProgram(package="mptcpize", executable="mptcpize")


_LOWEST_RTT, _LIA = "lowest-rtt", "lia"
"""The scheduler and the congestion control of the publications' kernels (MPTCP study 2, eMPTCP 4.3)."""


def _of_2016(name: str, use: PathUse) -> ClientUnderTest:
    """Defines a client over Multipath TCP as the publications had it."""
    return _client(name, replace(use, scheduler=_LOWEST_RTT, congestion_control=_LIA))


def _client(name: str, use: PathUse, *options: str) -> ClientUnderTest:
    """Defines a client. `options` are of curl, which downloads."""
    commands: dict[str, Callable[[Task], list[str]]] = {
        WHOLE_FILE: lambda task: ["mptcpize", "run", *curl.download(task, *options)],
        UPLOAD: lambda task: ["mptcpize", "run", *curl.upload(task)],
    }
    for kind in APPLICATIONS:
        commands[kind] = lambda task: [*multilink.application(task), "--mptcp"]
    return ClientUnderTest(name, commands, program=PROGRAM, multipath=use)


FAMILY: Final = ClientFamily(
    (
        _client("mptcp", PathUse()),
        _of_2016("mptcp-2016", PathUse()),
        _client("mptcp-backup", PathUse(backups=True)),
        _client("mptcp-single-path", PathUse(control="single-path")),
        # curl's keep-alive would wake LTE once a minute, for which no schedule provides.
        _client("mptcp-mdp", PathUse(control="schedule"), "--no-keepalive"),
        _client("emptcp-kernel", PathUse(control="energy")),
        _of_2016("emptcp-kernel-2016", PathUse(control="energy")),
    ),
    {
        "mptcp": lambda link: _client(f"mptcp-{link}", PathUse(first=link)),
        "mptcp-2016": lambda link: _of_2016(f"mptcp-2016-{link}", PathUse(first=link)),
    },
)
