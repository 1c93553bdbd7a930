"""What may download in a run: linklab's algorithms and the peers they are compared with.

A contestant is a name and the command that it stands for.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from linklab.core.algorithms import TABLE, Algorithm
from linklab.core.paths import ALGORITHMS as ALGORITHMS_FILE
from linklab.core.paths import MULTILINK
from linklab.lab.topology import LINK_PATHS
from linklab.scenario import ClientSettings, Scenario
from linklab.schema.mapping import guess


@dataclass(frozen=True)
class Task:
    """What a contestant is to download in the lab, and where things are there.

    `wireless` has the links' signal strengths in the form of /proc/net/wireless.
    """

    scenario: Scenario
    url: str
    ca_file: str
    output: str
    run_dir: str
    sha256: str
    multilink: str
    wireless: str


Command = Callable[[Task], list[str]]


@dataclass(frozen=True)
class Contestant:
    """One entry of a comparison.

    `links` are the links it uses; `needs` the Debian package of its program;
    `mptcp` whether server and client hosts are to speak Multipath TCP.
    """

    name: str
    command: Command
    links: tuple[str, ...]
    needs: str | None = None
    mptcp: bool = False


def _value(option: str, client: ClientSettings) -> str:
    """What a scenario sets a flag of multilink to."""
    match option:
        case "upper-limit":
            return f"{client.upper_limit_bytes}B"
        case "padding":
            return str(client.padding)
        case "first-request":
            return f"{client.first_request_bytes}B"
        case "overlap":
            return str(client.overlap)
        case "window":
            return f"{client.window_s}s"
    raise ValueError(f"{ALGORITHMS_FILE}: no scenario has a value for --{option}")


def _multilink(
    algorithm: Algorithm, links: tuple[str, ...], *, rescue: bool = False, plain: bool = False
) -> Command:
    """multilink as published, where nobody but the algorithm decides; or with rescue. `plain` is
    without padding."""
    options = [one for one in algorithm.options if not (plain and one == "padding")]

    def command(task: Task) -> list[str]:
        argv = [task.multilink, "get", task.url, "--algorithm", algorithm.name]
        for link in links:
            settings = task.scenario.links[link]
            argv += ["--link", f"{link}={LINK_PATHS[link].device}"]
            if "bandwidth" in options:
                argv += ["--bandwidth", f"{link}={settings.bandwidth_bps}bit/s"]
        for option in options:
            if option != "bandwidth":
                argv += [f"--{option}", _value(option, task.scenario.client)]
        saved = (
            ["--rescue", "--wireless-file", task.wireless]
            if rescue
            else ["--no-rescue", "--resume=false"]
        )
        return [
            *argv, *(["--plain"] if plain else []), *saved, "--ca-file", task.ca_file,
            "--checksum", f"sha-256={task.sha256}", "--run-dir", task.run_dir, "-o", task.output,
        ]  # fmt: skip

    return command


def _curl(link: str) -> Command:
    def command(task: Task) -> list[str]:
        return [
            "curl", "--silent", "--show-error", "--fail", "--cacert", task.ca_file,
            "--interface", LINK_PATHS[link].device, "--output", task.output, task.url,
        ]  # fmt: skip

    return command


def _mptcp(task: Task) -> list[str]:
    return [
        "mptcpize", "run", "curl", "--silent", "--show-error", "--fail",
        "--cacert", task.ca_file, "--output", task.output, task.url,
    ]  # fmt: skip


def _aria2(connections: int) -> Command:
    devices = ",".join(path.device for path in LINK_PATHS.values())

    def command(task: Task) -> list[str]:
        directory, _, name = task.output.rpartition("/")
        return [
            "aria2c", "--no-conf", "--quiet", "--file-allocation=none", "--console-log-level=error",
            f"--ca-certificate={task.ca_file}", f"--multiple-interface={devices}",
            "-s", str(connections), "-x", str(connections), "-k", "1M",
            "-d", directory, "-o", name, task.url,
        ]  # fmt: skip

    return command


_BOTH = tuple(LINK_PATHS)
_ON_ONE = [one for one in TABLE if one.one_link]
_ON_ALL = [one for one in TABLE if not one.one_link]

CONTESTANTS = {
    contestant.name: contestant
    for contestant in (
        *(
            Contestant(f"{one.name}-{link}", _multilink(one, (link,)), (link,))
            for one in _ON_ONE
            for link in LINK_PATHS
        ),
        *(
            Contestant(one.name, _multilink(one, _BOTH), _BOTH)
            for one in _ON_ALL
        ),
        *(
            Contestant(f"{one.name}-rescue", _multilink(one, _BOTH, rescue=True), _BOTH)
            for one in _ON_ALL
        ),
        *(
            Contestant(f"{one.name}-plain", _multilink(one, _BOTH, plain=True), _BOTH)
            for one in _ON_ALL if "padding" in one.options
        ),
        *(
            Contestant(f"curl-{link}", _curl(link), (link,), needs="curl") for link in LINK_PATHS
        ),
        Contestant("mptcp", _mptcp, _BOTH, needs="mptcpize", mptcp=True),
        *(
            Contestant(f"aria2-{n}", _aria2(n), _BOTH, needs="aria2") for n in (2, 8)
        ),
    )
}  # fmt: skip

ALIASES = {
    f"{one.alias}{variant}": f"{one.name}{variant}"
    for one in _ON_ALL
    if one.alias
    for variant in ("", "-rescue", "-plain")
    if f"{one.name}{variant}" in CONTESTANTS
}
"""Names that say what an algorithm does, and the contestant that each stands for."""

ALGORITHMS = (
    *(f"{one.name}-{link}" for one in _ON_ONE if one.source for link in LINK_PATHS),
    *(one.name for one in _ON_ALL if one.source),
)
"""What `compare` runs unless told otherwise: the published ones, which are the thesis' six rows."""

RESCUED = tuple(f"{one.name}-rescue" for one in _ON_ALL)
"""All that use several links, with multilink's rescue, as people use them."""

PEERS = ("curl-wifi", "curl-lte", "mptcp", "aria2-2", "aria2-8")
"""Programs of other people on the same links."""


def named(text: str, others: Collection[str] = ()) -> str:
    """The contestant, or one of others, of that name or alias. Raises ValueError."""
    known = (*CONTESTANTS, *others)
    name = ALIASES.get(text, text)
    if name not in known:
        meant = guess(text, (*known, *ALIASES))
        raise ValueError(f"no algorithm is called {text!r}{meant}; there are: {', '.join(known)}")
    return name


_PROGRAMS = {"aria2": "aria2c"}
"""Programs that are not called like their Debian package."""


def obstacle(names: Sequence[str]) -> str | None:
    """Why the named contestants cannot run on this machine, and what to do; None if they can."""
    packages = missing_packages(names)
    if packages:
        return f"missing programs: apt-get install {' '.join(packages)}"
    if not MULTILINK.exists() and any(CONTESTANTS[name].needs is None for name in names):
        return f"the client is not there: {MULTILINK}; make setup builds it, or name one in LINKLAB_MULTILINK"
    return None


def missing_packages(names: Sequence[str]) -> list[str]:
    """Debian packages that the named contestants need and this machine lacks."""
    needed = {CONTESTANTS[name].needs for name in names}
    return sorted(
        package
        for package in needed
        if package and not shutil.which(_PROGRAMS.get(package, package))
    )
