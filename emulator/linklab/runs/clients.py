"""What may download in a run: linklab's algorithms and the peers they are compared with.

A contestant is a name and the commands that it stands for, one for each workload that it can do.
A file is downloaded by the programs themselves. A player, a browser and the like are `multilink
workload`, the same program for all: it makes its requests through a proxy that runs an algorithm,
over one link, or by Multipath TCP.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from linklab.core.algorithms import TABLE, Algorithm
from linklab.core.link_kinds import KINDS, LTE, WIFI
from linklab.core.paths import MULTILINK
from linklab.lab.multipath.path_use import NO_COUPLING, PathUse, link_of_kind, not_one_of_each
from linklab.lab.network.topology import SERVER_ADDRESS, link_paths
from linklab.runs import applications
from linklab.runs.applications import APPLICATIONS
from linklab.scenario import Scenario
from linklab.scenario.workload import UPLOAD, WHOLE_FILE
from linklab.schema.mapping import guess


@dataclass(frozen=True)
class Task:
    """What a contestant is to download in the lab, and where things are there; or to upload: the file
    `payload`.

    `wireless` has the links' signal strengths in the form of /proc/net/wireless, `energy` is the
    file of the energy model.
    """

    scenario: Scenario
    url: str
    ca_file: str
    output: str
    run_dir: str
    payload: str
    sha256: str
    multilink: str
    wireless: str
    energy: str


TLS: Final = ("--min-tls-version", "1.3")
"""What figures were measured with: to offer 1.2 as well makes the first packet longer."""

Command = Callable[[Task], list[str]]


@dataclass(frozen=True)
class Contestant:
    """One entry of a comparison.

    `commands` has what it does for each workload that it can do, by the workload's name. `needs` is
    the Debian package of its program, and `inputs` are the flags of multilink without which it
    cannot decide. It decides only between links of `kinds`, if there are any. With `multipath` server and client hosts speak Multipath TCP, and use the links
    so. With `offloads_acks` what Wi-Fi brings is acknowledged over LTE, with `aggregates_acks` twelve
    packets at a time; with `freezes` its sender is told over LTE when Wi-Fi is silent. With
    `fetches_losses` what Wi-Fi loses comes over LTE, and the server is there without TLS, too.
    """

    name: str
    commands: Mapping[str, Command]
    needs: str | None = None
    multipath: PathUse | None = None
    offloads_acks: bool = False
    aggregates_acks: bool = False
    freezes: bool = False
    fetches_losses: bool = False
    inputs: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    @property
    def changes_tcp(self) -> bool:
        """Whether a link is used otherwise than TCP alone uses it."""
        return any((self.offloads_acks, self.aggregates_acks, self.freezes, self.fetches_losses))

    @property
    def needs_energy(self) -> bool:
        """Whether it decides by an energy model."""
        by_multipath = self.multipath is not None and self.multipath.needs_energy
        return by_multipath or "energy-model" in self.inputs

    def command(self, task: Task) -> list[str]:
        """What it runs. Raises KeyError for a workload that it cannot do."""
        return self.commands[task.scenario.workload.name](task)


@dataclass(frozen=True)
class _Way:
    """How multilink downloads: by an algorithm as published, where nobody but that decides, or with
    rescue; on one link, or on all. `plain` is without padding. `segment` is in the place of the
    scenario's."""

    algorithm: Algorithm
    link: str | None = None
    rescue: bool = False
    plain: bool = False
    segment: str | None = None

    def flags(self, task: Task) -> list[str]:
        """The flags that say so to a command of multilink."""
        options = [one for one in self.algorithm.options if not (self.plain and one == "padding")]
        words = ["--algorithm", self.algorithm.name]
        for name in task.scenario.links if self.link is None else [self.link]:
            settings = task.scenario.links[name]
            words += ["--link", f"{name}={settings.device}"]
            if "bandwidth" in options:
                words += ["--bandwidth", f"{name}={settings.bandwidth_bps}bit/s"]
        for option in options:
            if option == "segment" and self.segment is not None:
                words += ["--segment", self.segment]
            else:
                words += _flag(option, task)
        if self.plain:
            words.append("--plain")
        rescue = ["--rescue", "--wireless-file", task.wireless]
        words += rescue if self.rescue else ["--no-rescue"]
        return [*words, *TLS]

    def get(self, task: Task) -> list[str]:
        """A download."""
        return [
            *(task.multilink, "get", task.url, *self.flags(task)),
            *([] if self.rescue else ["--resume=false"]),
            *("--ca-file", task.ca_file, "--checksum", f"sha-256={task.sha256}"),
            *("--run-dir", task.run_dir, "-o", task.output),
        ]

    def put(self, task: Task) -> list[str]:
        """An upload. The lab's server takes ranges (`exchange.rb`), and a run asks nothing else."""
        return [
            *(task.multilink, "put", task.payload, task.url, *self.flags(task)),
            *("--ranged", "--verify=false"),
            *("--ca-file", task.ca_file, "--run-dir", task.run_dir),
        ]

    def application(self, task: Task) -> list[str]:
        """A workload's program, before a proxy. An algorithm that follows the player keeps what
        the player does not take yet, as GreenBag's middleware does (GreenBag IV-A)."""
        follows = "playback-rate" in self.algorithm.options
        kept = ["--buffer", f"{task.scenario.payload.size_bytes}B"] if follows else []
        return [
            *(*_application(task), "--", "proxy", *self.flags(task), *kept),
            *("--ca-file", task.ca_file),
        ]

    @property
    def commands(self) -> Mapping[str, Command]:
        applications = dict.fromkeys(APPLICATIONS, self.application)
        uploads = {UPLOAD: self.put} if self.algorithm.uploads else {}
        return {WHOLE_FILE: self.get, **uploads, **applications}


def _application(task: Task) -> list[str]:
    """The program of a workload, without the way of its requests."""
    size_bytes = task.scenario.payload.size_bytes
    return [
        *(task.multilink, "workload", task.scenario.workload.name, task.url),
        *("--size", f"{size_bytes}B", *applications.flags(task.scenario.workload, size_bytes)),
        *("--ca-file", task.ca_file, "--checksum", f"sha-256={task.sha256}"),
        *("--run-dir", task.run_dir),
    ]


def _direct(link: str) -> Contestant:
    """A workload's program on one link, without help."""

    def command(task: Task) -> list[str]:
        return [*_application(task), "--device", task.scenario.links[link].device]

    return Contestant(f"direct-{link}", dict.fromkeys(APPLICATIONS, command))


def _mptcp_application(task: Task) -> list[str]:
    return [*_application(task), "--mptcp"]


def _flag(option: str, task: Task) -> list[str]:
    """A flag of multilink and its value, nothing where its own default is to stand."""
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


def _curl(interface: Callable[[Task], str]) -> Command:
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


def _curl_on(link: str) -> Command:
    return _curl(lambda task: task.scenario.links[link].device)


def _wifi_address(task: Task) -> str:
    """A socket bound to the device could send by that alone."""
    links = task.scenario.links
    return link_paths(links)[link_of_kind(links, WIFI)].client.address


def _loss_fetching(task: Task) -> list[str]:
    """What TLS encrypts for one connection is of no use on another."""
    from linklab.lab.super_aggregation import loss_fetching  # Few runs need it.

    url = f"http://{SERVER_ADDRESS}/{task.url.rpartition('/')[2]}"
    lte = task.scenario.links[link_of_kind(task.scenario.links, LTE)].device
    return loss_fetching.command(url, _wifi_address(task), lte, task.output, task.sha256)


def _uploading(task: Task) -> list[str]:
    """curl, sending the payload as a whole: by HTTP/1.1, since over HTTP/2 curl 7.88 may look for the
    answer a second after it has come."""
    return [
        *("curl", "--silent", "--show-error", "--fail", "--http1.1", "--cacert", task.ca_file),
        *("--upload-file", task.payload, task.url),
    ]


def _curl_alone(link: str) -> Contestant:
    def upload(task: Task) -> list[str]:
        return [*_uploading(task), "--interface", task.scenario.links[link].device]

    return Contestant(f"curl-{link}", {WHOLE_FILE: _curl_on(link), UPLOAD: upload}, needs="curl")


def _mptcp_upload(task: Task) -> list[str]:
    return ["mptcpize", "run", *_uploading(task)]


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


def aria2(
    url: str, *, connections: int, devices: Iterable[str], ca_file: str, output: str
) -> list[str]:
    """aria2, with so many connections over all devices together."""
    file = Path(output)
    return [
        *("aria2c", "--no-conf", "--quiet", "--file-allocation=none", "--console-log-level=error"),
        *(f"--ca-certificate={ca_file}", f"--multiple-interface={','.join(devices)}"),
        *("-s", str(connections), "-x", str(connections), "-k", "1M"),
        *("-d", str(file.parent), "-o", file.name, url),
    ]


def _aria2(connections: int) -> Command:
    def command(task: Task) -> list[str]:
        devices = [link.device for link in task.scenario.links.values()]
        return aria2(
            task.url,
            connections=connections,
            devices=devices,
            ca_file=task.ca_file,
            output=task.output,
        )

    return command


def _over_mptcp(name: str, use: PathUse) -> Contestant:
    """curl, or a workload's program, over Multipath TCP that uses the links so."""
    applications = dict.fromkeys(APPLICATIONS, _mptcp_application)
    commands = {WHOLE_FILE: _mptcp, UPLOAD: _mptcp_upload, **applications}
    return Contestant(name, commands, needs="mptcpize", multipath=use)


def _way(name: str, way: _Way) -> Contestant:
    return Contestant(name, way.commands, inputs=way.algorithm.needs, kinds=way.algorithm.kinds)


_ONE_LINK = [one for one in TABLE if one.one_link]
_ALL_LINKS = [one for one in TABLE if not one.one_link]


def _one_link_of(algorithm: Algorithm) -> Callable[[str], Contestant]:
    return lambda link: _way(f"{algorithm.name}-{link}", _Way(algorithm, link))


_ON_ONE: dict[str, Callable[[str], Contestant]] = {
    **{one.name: _one_link_of(one) for one in _ONE_LINK},
    "direct": _direct,
    "curl": _curl_alone,
    "mptcp": lambda link: _over_mptcp(f"mptcp-{link}", PathUse(first=link)),
}
"""What makes a contestant of one link, by what comes before the link's name."""

_ON_ALL = {
    contestant.name: contestant
    for contestant in (
        *(_way(one.name, _Way(one, rescue=one.rescue)) for one in _ALL_LINKS),
        *(
            _way(f"{one.name}-rescue", _Way(one, rescue=True))
            for one in _ALL_LINKS
            if not one.rescue
        ),
        *(
            _way(f"gb-{n}kb", _Way(one, segment=f"{n}KiB"))
            for one in _ALL_LINKS
            if one.name == "gb-p"
            for n in (20, 100, 1000, 2000)
        ),
        *(
            _way(f"{one.name}-plain", _Way(one, plain=True))
            for one in _ALL_LINKS
            if one.compared and "padding" in one.options
        ),
        _over_mptcp("mptcp", PathUse()),
        _over_mptcp("mptcp-backup", PathUse(backups=True)),
        _over_mptcp("mptcp-single-path", PathUse(control="single-path")),
        _over_mptcp("mptcp-mdp", PathUse(control="schedule")),
        _over_mptcp("emptcp-kernel", PathUse(control="energy")),
        Contestant(
            "offloading-ack", {WHOLE_FILE: _curl(_wifi_address)}, needs="curl", offloads_acks=True
        ),
        Contestant(
            "aggregating-ack",
            {WHOLE_FILE: _curl(_wifi_address)},
            needs="curl",
            aggregates_acks=True,
        ),
        Contestant("freeze", {WHOLE_FILE: _curl(_wifi_address)}, needs="curl", freezes=True),
        Contestant("loss-fetching", {WHOLE_FILE: _loss_fetching}, fetches_losses=True),
        *(Contestant(f"aria2-{n}", {WHOLE_FILE: _aria2(n)}, needs="aria2") for n in (2, 8, 16)),
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
    """The algorithms whose figures the thesis published: on two links its six rows."""
    return (
        *(f"{one.name}-{link}" for one in _ONE_LINK if one.compared for link in links),
        *(one.name for one in _ALL_LINKS if one.compared),
    )


def peers(links: Iterable[str]) -> tuple[str, ...]:
    """Programs of other people on the same links, and one link without any."""
    foreign = [
        name
        for name, one in _ON_ALL.items()
        if one.needs and one.multipath in (None, PathUse()) and not one.changes_tcp
    ]
    return (*(f"{who}-{link}" for who in ("direct", "curl") for link in links), *foreign)


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
"""Words that stand for several contestants, by a scenario's links: for those of them that can do
its workload."""


def able(scenario: Scenario) -> list[str]:
    """The names of the contestants that can do a scenario's workload over its links."""
    return [one for one in names(scenario.links) if _can(one, scenario)]


def _can(name: str, scenario: Scenario) -> bool:
    return scenario.workload.name in contestant_of(name).commands


def named(text: str, scenario: Scenario, others: Collection[str] = ()) -> str:
    """The scenario's contestant, or one of others, of that name or alias. Raises ValueError, also
    for a contestant that cannot do the scenario's workload."""
    known = (*able(scenario), *others)
    name = ALIASES.get(text, text)
    if name in names(scenario.links) and name not in known:
        raise ValueError(
            f"{name} cannot do the workload of {scenario.name}, {scenario.workload.name}; "
            f"these can: {', '.join(known)}"
        )
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
        if word in GROUPS:
            found += [one for one in GROUPS[word](scenario.links) if _can(one, scenario)]
        else:
            found.append(named(word, scenario))
    return list(dict.fromkeys(found))


def misfit(name: str, scenario: Scenario, *, has_energy: bool) -> str | None:
    """Why a contestant cannot download in a scenario, and what is needed; None if it can.
    `has_energy` is whether there is an energy model."""
    contestant = contestant_of(name)
    use = contestant.multipath
    unfit = not_one_of_each(scenario.links) if contestant.changes_tcp else None
    if use is not None:
        unfit = use.misfit(scenario.links)
    if unfit is not None:
        return f"{scenario.name}: {name} {unfit}"
    others = {link.kind.name for link in scenario.links.values()}.difference(contestant.kinds)
    if contestant.kinds and others:
        return (
            f"{scenario.name}: {name} decides between links of the kinds "
            f"{', '.join(contestant.kinds)}, and there is {', '.join(sorted(others))}"
        )
    if contestant.needs_energy and not has_energy:
        return (
            f"{scenario.name}: {name} needs an energy model to decide by: a scenario with `energy`, "
            "or --energy-model"
        )
    if "playback-rate" in contestant.inputs and scenario.workload.player is None:
        return (
            f"{scenario.name}: {name} needs to know at what rate the payload plays: a scenario with "
            "a player as its `workload`"
        )
    return None


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
