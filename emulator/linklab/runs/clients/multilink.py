"""Defines multilink's algorithms as clients, and a workload's program without any algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from linklab.core.algorithms import TABLE, Algorithm
from linklab.runs import applications
from linklab.runs.applications import APPLICATIONS
from linklab.runs.clients.client import ClientFamily, ClientUnderTest, Command
from linklab.runs.clients.task import Task
from linklab.scenario.workload import UPLOAD, WHOLE_FILE

TLS: Final = ("--min-tls-version", "1.3")
"""Offering TLS 1.2 as well would lengthen the first packet and change the figures."""


@dataclass(frozen=True)
class _Mode:
    """Holds how multilink downloads, on one link or on all. `plain` disables padding. `fixed` has
    options with values of their own, in place of the scenario's."""

    algorithm: Algorithm
    link: str | None = None
    plain: bool = False
    fixed: Mapping[str, str] = field(default_factory=dict)

    def flags(self, task: Task) -> list[str]:
        """Returns the flags for a command of multilink."""
        options = [one for one in self.algorithm.options if not (self.plain and one == "padding")]
        words = ["--algorithm", self.algorithm.name]
        for name in task.scenario.links if self.link is None else [self.link]:
            settings = task.scenario.links[name]
            words += ["--link", f"{name}={settings.device}"]
            if "bandwidth" in options:
                words += ["--bandwidth", f"{name}={settings.bandwidth_bps}bit/s"]
        for option in options:
            if option in self.fixed:
                words += [f"--{option}", self.fixed[option]]
            else:
                words += _flag(option, task)
        if self.plain:
            words.append("--plain")
        words += ["--wireless-file", task.wireless] if self.algorithm.rescue else []
        return [*words, *TLS]

    def get(self, task: Task) -> list[str]:
        """Returns the command of a download."""
        return [
            *(task.multilink, "get", task.url, *self.flags(task)),
            *([] if self.algorithm.rescue else ["--resume=false"]),
            *("--ca-file", task.ca_file, "--checksum", f"sha-256={task.sha256}"),
            *("--run-dir", task.run_dir, "-o", task.output),
        ]

    def put(self, task: Task) -> list[str]:
        """Returns the command of an upload. The lab's server accepts ranges (`exchange.rb`)."""
        return [
            *(task.multilink, "put", task.payload, task.url, *self.flags(task)),
            "--ranged",
            *("--ca-file", task.ca_file, "--run-dir", task.run_dir),
        ]

    def application(self, task: Task) -> list[str]:
        """Returns the command of a workload's program with a proxy. If the algorithm follows the
        player, the proxy buffers what the player does not take yet, as GreenBag's middleware does
        (GreenBag IV-A)."""
        follows = "playback-rate" in self.algorithm.options
        kept = ["--buffer", f"{task.scenario.payload.size_bytes}B"] if follows else []
        return [
            *(*application(task), "--", "proxy", *self.flags(task), *kept),
            *("--ca-file", task.ca_file),
        ]

    @property
    def commands(self) -> Mapping[str, Command]:
        applications = dict.fromkeys(APPLICATIONS, self.application)
        uploads = {UPLOAD: self.put} if self.algorithm.uploads else {}
        return {WHOLE_FILE: self.get, **uploads, **applications}


def application(task: Task) -> list[str]:
    """Returns the command of a workload's program, without the flags that say how requests travel."""
    size_bytes = task.scenario.payload.size_bytes
    return [
        *(task.multilink, "workload", task.scenario.workload.name, task.url),
        *("--size", f"{size_bytes}B", *applications.flags(task.scenario.workload, size_bytes)),
        *("--ca-file", task.ca_file, "--checksum", f"sha-256={task.sha256}"),
        *("--run-dir", task.run_dir),
    ]


def _flag(option: str, task: Task) -> list[str]:
    """Returns a flag of multilink and its value, nothing if multilink's default applies."""
    match option:
        case "energy-model":
            return ["--energy-model", task.energy]
        case "playback-rate" | "playback-buffer":
            player = task.scenario.workload.player
            if player is None:
                return []
            if option == "playback-rate":
                return [
                    "--playback-rate",
                    f"{player.mean_rate_bps(task.scenario.payload.size_bytes):.0f}bit/s",
                ]
            return ["--playback-buffer", f"{player.starts_with_bytes}B"]
    if option in task.scenario.client.flags:
        return [f"--{option}", task.scenario.client.flag(option)]
    return []


def _direct(link: str) -> ClientUnderTest:
    """Returns the client that runs a workload's program on one link, without an algorithm."""

    def command(task: Task) -> list[str]:
        return [*application(task), "--device", task.scenario.links[link].device]

    return ClientUnderTest(f"direct-{link}", dict.fromkeys(APPLICATIONS, command))


def _client(name: str, mode: _Mode) -> ClientUnderTest:
    return ClientUnderTest(
        name, mode.commands, inputs=mode.algorithm.needs, kinds=mode.algorithm.kinds
    )


def _one_link_of(algorithm: Algorithm) -> Callable[[str], ClientUnderTest]:
    return lambda link: _client(f"{algorithm.name}-{link}", _Mode(algorithm, link))


ONE_LINK: Final = [one for one in TABLE if one.one_link]
ALL_LINKS: Final = [one for one in TABLE if not one.one_link]

_ON_ALL = (
    *(_client(one.name, _Mode(one)) for one in ALL_LINKS),
    *(
        _client(f"gb-{n}kb", _Mode(one, fixed={"segment": f"{n}KiB"}))
        for one in ALL_LINKS
        if one.name == "gb-p"
        for n in (20, 100, 1000, 2000)
    ),
    *(
        _client(f"{one.name}-fair", _Mode(one, fixed={"connections": "1"}))
        for one in ALL_LINKS
        if one.name == "adaptive"
    ),
    *(
        _client(f"{one.name}-plain", _Mode(one, plain=True))
        for one in ALL_LINKS
        if one.compared and "padding" in one.options
    ),
)

FAMILY: Final = ClientFamily(_ON_ALL, {one.name: _one_link_of(one) for one in ONE_LINK})

DIRECT: Final = ClientFamily(on_one={"direct": _direct})

_NAMES = {one.name for one in _ON_ALL}

ALIASES = {
    f"{one.alias}{variant}": f"{one.name}{variant}"
    for one in ALL_LINKS
    if one.alias
    for variant in ("", "-plain")
    if f"{one.name}{variant}" in _NAMES
}
"""Descriptive names, and the clients that they stand for."""
