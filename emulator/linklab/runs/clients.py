"""What may download in a run: linklab's algorithms and the peers they are compared with.

A contestant is a name and the command that it stands for.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from linklab.core.algorithms import TABLE, Algorithm
from linklab.core.link_kinds import KINDS
from linklab.core.paths import MULTILINK
from linklab.lab.path_use import NO_COUPLING, PathUse
from linklab.scenario import Scenario
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

    `needs` is the Debian package of its program. With `multipath` server and client hosts speak
    Multipath TCP, and use the links so.
    """

    name: str
    command: Command
    needs: str | None = None
    multipath: PathUse | None = None


def _multilink(
    algorithm: Algorithm, link: str | None = None, *, rescue: bool = False, plain: bool = False
) -> Command:
    """multilink as published, where nobody but the algorithm decides; or with rescue. On one link,
    or on all. `plain` is without padding."""
    options = [one for one in algorithm.options if not (plain and one == "padding")]

    def command(task: Task) -> list[str]:
        argv = [task.multilink, "get", task.url, "--algorithm", algorithm.name]
        for name in task.scenario.links if link is None else [link]:
            settings = task.scenario.links[name]
            argv += ["--link", f"{name}={settings.device}"]
            if "bandwidth" in options:
                argv += ["--bandwidth", f"{name}={settings.bandwidth_bps}bit/s"]
        for option in options:
            if option != "bandwidth":
                argv += [f"--{option}", task.scenario.client.flag(option)]
        saved = (
            ["--rescue", "--wireless-file", task.wireless]
            if rescue
            else ["--no-rescue", "--resume=false"]
        )
        return [
            *argv,
            *(["--plain"] if plain else []),
            *saved,
            "--ca-file",
            task.ca_file,
            "--checksum",
            f"sha-256={task.sha256}",
            "--run-dir",
            task.run_dir,
            "-o",
            task.output,
        ]

    return command


def _curl(link: str) -> Command:
    def command(task: Task) -> list[str]:
        return [
            "curl",
            "--silent",
            "--show-error",
            "--fail",
            "--cacert",
            task.ca_file,
            "--interface",
            task.scenario.links[link].device,
            "--output",
            task.output,
            task.url,
        ]

    return command


def _mptcp(task: Task) -> list[str]:
    return [
        "mptcpize",
        "run",
        "curl",
        "--silent",
        "--show-error",
        "--fail",
        "--cacert",
        task.ca_file,
        "--output",
        task.output,
        task.url,
    ]


def _aria2(connections: int) -> Command:
    def command(task: Task) -> list[str]:
        devices = ",".join(link.device for link in task.scenario.links.values())
        directory, _, name = task.output.rpartition("/")
        return [
            "aria2c",
            "--no-conf",
            "--quiet",
            "--file-allocation=none",
            "--console-log-level=error",
            f"--ca-certificate={task.ca_file}",
            f"--multiple-interface={devices}",
            "-s",
            str(connections),
            "-x",
            str(connections),
            "-k",
            "1M",
            "-d",
            directory,
            "-o",
            name,
            task.url,
        ]

    return command


def _over_mptcp(name: str, use: PathUse) -> Contestant:
    """curl over Multipath TCP that uses the links so."""
    return Contestant(name, _mptcp, needs="mptcpize", multipath=use)


_ONE_LINK = [one for one in TABLE if one.one_link]
_ALL_LINKS = [one for one in TABLE if not one.one_link]


def _one_link_of(algorithm: Algorithm) -> Callable[[str], Contestant]:
    return lambda link: Contestant(f"{algorithm.name}-{link}", _multilink(algorithm, link))


_ON_ONE: dict[str, Callable[[str], Contestant]] = {
    **{one.name: _one_link_of(one) for one in _ONE_LINK},
    "curl": lambda link: Contestant(f"curl-{link}", _curl(link), needs="curl"),
    "mptcp": lambda link: _over_mptcp(f"mptcp-{link}", PathUse(first=link)),
}
"""What makes a contestant of one link, by what comes before the link's name."""

_ON_ALL = {
    contestant.name: contestant
    for contestant in (
        *(Contestant(one.name, _multilink(one)) for one in _ALL_LINKS),
        *(Contestant(f"{one.name}-rescue", _multilink(one, rescue=True)) for one in _ALL_LINKS),
        *(
            Contestant(f"{one.name}-plain", _multilink(one, plain=True))
            for one in _ALL_LINKS
            if "padding" in one.options
        ),
        _over_mptcp("mptcp", PathUse()),
        _over_mptcp("mptcp-backup", PathUse(backups=True)),
        *(Contestant(f"aria2-{n}", _aria2(n), needs="aria2") for n in (2, 8, 16)),
    )
}

ALIASES = {
    f"{one.alias}{variant}": f"{one.name}{variant}"
    for one in _ALL_LINKS
    if one.alias
    for variant in ("", "-rescue", "-plain")
    if f"{one.name}{variant}" in _ON_ALL
}
"""Names that say what an algorithm does, and the contestant that each stands for."""

USUAL_LINKS = tuple(KINDS)
"""The links of most scenarios, for what is said before a scenario is known."""


def contestant_of(name: str) -> Contestant:
    """The contestant of a name that `names` has for some links. Raises KeyError."""
    if name in _ON_ALL:
        return _ON_ALL[name]
    who, _, link = name.rpartition("-")
    return _ON_ONE[who](link)


def names(links: Iterable[str]) -> tuple[str, ...]:
    """The names of all contestants for a scenario's links."""
    return (*(f"{who}-{link}" for who in _ON_ONE for link in links), *_ON_ALL)


def published(links: Iterable[str]) -> tuple[str, ...]:
    """What `compare` runs unless told otherwise: the published algorithms, which on two links are
    the thesis' six rows."""
    return (
        *(f"{one.name}-{link}" for one in _ONE_LINK if one.source for link in links),
        *(one.name for one in _ALL_LINKS if one.source),
    )


def peers(links: Iterable[str]) -> tuple[str, ...]:
    """Programs of other people on the same links."""
    foreign = [
        one.name for one in _ON_ALL.values() if one.needs and one.multipath in (None, PathUse())
    ]
    return (*(f"curl-{link}" for link in links), *foreign)


def multipath(links: Iterable[str]) -> tuple[str, ...]:
    """Ways to use links by Multipath TCP."""
    return (
        *(f"mptcp-{link}" for link in links),
        *(name for name, one in _ON_ALL.items() if one.multipath not in (None, PathUse())),
    )


GROUPS: dict[str, Callable[[Iterable[str]], tuple[str, ...]]] = {
    "published": published,
    "peers": peers,
    "multipath": multipath,
}
"""Words that stand for several contestants, by a scenario's links."""


def named(text: str, scenario: Scenario, others: Collection[str] = ()) -> str:
    """The scenario's contestant, or one of others, of that name or alias. Raises ValueError."""
    known = (*names(scenario.links), *others)
    name = ALIASES.get(text, text)
    if name not in known:
        meant = guess(text, (*known, *ALIASES))
        raise ValueError(
            f"no algorithm is called {text!r}{meant}; "
            f"for {scenario.name} there are: {', '.join(known)}"
        )
    return name


def known_to(scenarios: Sequence[Scenario], others: Collection[str] = ()) -> Callable[[str], str]:
    """`named` for several scenarios, each of which has to know the name."""

    def convert(text: str) -> str:
        for scenario in scenarios:
            text = named(text, scenario, others)
        return text

    return convert


def chosen(text: str, scenario: Scenario) -> list[str]:
    """The scenario's contestants in a comma-separated list, `GROUPS` expanded. Raises ValueError."""
    found: list[str] = []
    for word in (part.strip() for part in text.split(",")):
        found += GROUPS[word](scenario.links) if word in GROUPS else [named(word, scenario)]
    return list(dict.fromkeys(found))


def notes(wanted: Iterable[str]) -> list[str]:
    """What has to stand beside figures of the named contestants; others are programs of the user's."""
    over_mptcp = [name for name in wanted if _speaks_mptcp(name)]
    return [f"{', '.join(over_mptcp)}: {NO_COUPLING}"] if over_mptcp else []


def _speaks_mptcp(name: str) -> bool:
    try:
        return contestant_of(name).multipath is not None
    except KeyError:
        return False


def is_taken(name: str) -> bool:
    """Whether a contestant of the usual links is called so."""
    return name in names(USUAL_LINKS) or name in ALIASES


_PROGRAMS = {"aria2": "aria2c"}
"""Programs that are not called like their Debian package."""


def obstacle(wanted: Sequence[str], place: str = "guest") -> str | None:
    """Why the named contestants cannot run in a place, and what to do; None if they can. The guest
    has the programs of others in its image."""
    packages = missing_packages(wanted) if place == "host" else []
    if packages:
        return f"missing programs: apt-get install {' '.join(packages)}"
    if not MULTILINK.exists() and any(contestant_of(name).needs is None for name in wanted):
        return f"the client is not there: {MULTILINK}; make setup builds it, or name one in LINKLAB_MULTILINK"
    return None


def missing_packages(wanted: Sequence[str]) -> list[str]:
    """Debian packages that the named contestants need and this machine lacks."""
    needed = {contestant_of(name).needs for name in wanted}
    return sorted(
        package
        for package in needed
        if package and not shutil.which(_PROGRAMS.get(package, package))
    )
