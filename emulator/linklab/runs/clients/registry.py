"""Lists all clients under test by name. Each program has a file in this folder and a line here."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from linklab.core.ip_family import ONLY_IPV4
from linklab.core.link_kinds import LTE, WIFI
from linklab.core.paths import GUEST_MULTILINK, INSTALLED, MULTILINK, PEERS, REPOSITORY
from linklab.lab.multipath.path_use import NO_COUPLING, PathUse, not_one_of_each
from linklab.runs.clients import aria2, curl, mptcp, multilink, quic, super_aggregation
from linklab.runs.clients.client import ClientFamily, ClientUnderTest
from linklab.runs.clients.multilink import ALIASES
from linklab.scenario import LinkSettings, Scenario
from linklab.scenario.clients import TESTED
from linklab.schema.document import ScenarioError
from linklab.schema.mapping import guess

FAMILIES: Final[tuple[ClientFamily, ...]] = (
    multilink.FAMILY,
    multilink.DIRECT,
    curl.FAMILY,
    mptcp.FAMILY,
    super_aggregation.FAMILY,
    aria2.FAMILY,
    quic.FAMILY,
)
"""The order is the order of lists."""

_ON_ONE = {who: made for family in FAMILIES for who, made in family.on_one.items()}
_ON_ALL = {one.name: one for family in FAMILIES for one in family.on_all}

USUAL_LINKS = (WIFI.name, LTE.name)
"""The links of most scenarios, used while no scenario is known."""


def client_of(name: str) -> ClientUnderTest:
    """Returns the client of a name that `names` has for some links. Raises KeyError."""
    if name in _ON_ALL:
        return _ON_ALL[name]
    who, _, link = name.rpartition("-")
    return _ON_ONE[who](link)


def only_link(name: str) -> str | None:
    """Returns the link of a client that is made for one link, None for a client of several."""
    who, _, link = name.rpartition("-")
    made = None if name in _ON_ALL else _ON_ONE.get(who)
    return link if made is not None and made(link).multipath is None else None


def link_by_definition(name: str, links: Mapping[str, LinkSettings]) -> str | None:
    """Returns the only link that a client uses as long as it is there, None for a client of several.
    Backups and links in turn are unused until then."""
    if name in _ON_ALL:
        use = client_of(name).multipath
        only_one = use is not None and (use.backups or use.control == "single-path")
        return use.first_of(links) if use is not None and only_one else None
    return only_link(name)


def names(links: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of all clients for a scenario's links."""
    return (*(f"{who}-{link}" for who in _ON_ONE for link in links), *_ON_ALL)


def published(links: Iterable[str]) -> tuple[str, ...]:
    """Returns the algorithms whose figures the thesis published. For two links these are its six
    rows."""
    return (
        *(f"{one.name}-{link}" for one in multilink.ONE_LINK if one.compared for link in links),
        *(one.name for one in multilink.ALL_LINKS if one.compared),
    )


def peers(links: Iterable[str]) -> tuple[str, ...]:
    """Returns foreign programs on the same links, and one link without an algorithm."""
    direct = [f"{who}-{link}" for who in multilink.DIRECT.on_one for link in links]
    return (*direct, *(name for name in names(links) if client_of(name).is_peer))


def multipath(links: Iterable[str]) -> tuple[str, ...]:
    """Returns the clients that use links by Multipath TCP."""
    return (
        *(f"{who}-{link}" for who in mptcp.FAMILY.on_one for link in links),
        *(name for name, one in _ON_ALL.items() if one.multipath not in (None, PathUse())),
    )


GROUPS: dict[str, Callable[[Iterable[str]], tuple[str, ...]]] = {
    "published": published,
    "peers": peers,
    "multipath": multipath,
}
"""Words that stand for several clients, by a scenario's links. Clients that cannot do the workload
are left out."""


def able(scenario: Scenario) -> list[str]:
    """Returns the names of the clients that can do a scenario's workload over its links."""
    return [one for one in names(scenario.links) if _can(one, scenario)]


def _can(name: str, scenario: Scenario) -> bool:
    return scenario.workload.name in client_of(name).commands


def named(text: str, scenario: Scenario, others: Collection[str] = ()) -> str:
    """Resolves a name or an alias to a client of the scenario, or to one of `others`. Raises
    ValueError, also for a client that cannot do the workload."""
    known = (*able(scenario), *others)
    name = ALIASES.get(text, text)
    if name in names(scenario.links) and name not in known:
        raise ValueError(
            f"{name} cannot do the workload of {scenario.name}, {scenario.workload.name}; "
            f"these can: {', '.join(known)}"
        )
    if name not in known and name.endswith("-rescue"):
        raise ValueError(
            f"no algorithm is called {name!r}: algorithms of publications run as published, "
            f"and rescue is a part of adaptive"
        )
    if name not in known:
        meant = guess(text, (*known, *ALIASES))
        raise ValueError(
            f"no algorithm is called {text!r}{meant}; "
            f"for {scenario.name} there are: {', '.join(known)}"
        )
    return name


def known_to(scenarios: Sequence[Scenario], others: Collection[str] = ()) -> Callable[[str], str]:
    """Returns `named` for several scenarios. Each of them has to know the name."""

    def convert(text: str) -> str:
        for scenario in scenarios:
            text = named(text, scenario, others)
        return text

    return convert


def chosen(text: str, scenario: Scenario) -> list[str]:
    """Returns the scenario's clients in a comma-separated list, with `GROUPS` expanded. Raises
    ValueError."""
    found: list[str] = []
    for word in (part.strip() for part in text.split(",")):
        if word in GROUPS:
            found += [one for one in GROUPS[word](scenario.links) if _can(one, scenario)]
        else:
            found.append(named(word, scenario))
    return list(dict.fromkeys(found))


def misfit(name: str, scenario: Scenario, *, has_energy: bool) -> str | None:
    """Returns why a client cannot download in a scenario and what is needed, None if it can.
    `has_energy` tells whether there is an energy model."""
    client = client_of(name)
    use = client.multipath
    unfit = not_one_of_each(scenario.links) if client.changes_tcp else None
    if use is not None:
        unfit = use.misfit(scenario.links)
    if unfit is not None:
        return f"{scenario.name}: {name} {unfit}"
    is_of_ipv4 = client.changes_tcp or client.server
    if is_of_ipv4 and any(one.families != ONLY_IPV4 for one in scenario.links.values()):
        return (
            f"{scenario.name}: {name} reads and writes packets of IPv4 only; needed: "
            "network: {ip: 4}"
        )
    others = {link.kind.name for link in scenario.links.values()}.difference(client.kinds)
    if client.kinds and others:
        return (
            f"{scenario.name}: {name} decides between links of the kinds "
            f"{', '.join(client.kinds)}, and there is {', '.join(sorted(others))}"
        )
    if client.needs_energy and not has_energy:
        return (
            f"{scenario.name}: {name} needs an energy model to decide by: a scenario with `energy`, "
            "or --energy-model"
        )
    if "playback-rate" in client.inputs and scenario.workload.player is None:
        return (
            f"{scenario.name}: {name} needs to know at what rate the payload plays: a scenario with "
            "a player as its `workload`"
        )
    return None


def further(scenario: Scenario, client: str | None) -> list[str | None]:
    """Returns the further clients of a scenario with several; None stands for a user's program.
    `client` is the first one. Raises ScenarioError for one that is unknown, or cannot be one of several.
    """
    if len(scenario.clients) == 1:
        return []
    if scenario.workload.upload is not None:
        raise ScenarioError(
            f"{scenario.name}: clients: an upload has one client; needed: clients: 1"
        )
    found = []
    for number, each in enumerate(scenario.clients):
        name = each.algorithm
        try:
            one = client if name == TESTED else named(name, scenario)
        except ValueError as error:
            raise ScenarioError(f"{scenario.name}: clients[{number}]: {error}") from error
        if one is not None and client_of(one).changes_lab:
            raise ScenarioError(
                f"{scenario.name}: clients[{number}]: {one} changes the lab for itself; allowed: "
                "clients that leave it as it is"
            )
        found.append(one)
    _refuse_mixed_sysctls(scenario, found)
    return found[1:]


def _refuse_mixed_sysctls(scenario: Scenario, found: Sequence[str | None]) -> None:
    """Raises ScenarioError unless all known clients ask for the same sysctls. Those of the server hold
    for its connections with all of them."""
    asked = {}
    for number, one in enumerate(found):
        if one is not None:
            use = client_of(one).multipath
            asked[number] = {} if use is None else use.sysctls
    for number, sysctls in asked.items():
        if sysctls and any(others != sysctls for others in asked.values()):
            said = ", ".join(f"{name}={value}" for name, value in sysctls.items())
            raise ScenarioError(
                f"{scenario.name}: clients[{number}]: {found[number]} sets {said} on the server, for "
                "the other clients too; allowed: clients that all set the same"
            )


def notes(wanted: Iterable[str]) -> list[str]:
    """Returns the notes to show beside figures of these clients. Names of the user's own programs
    have none."""
    uncoupled = [name for name in wanted if _is_uncoupled(name)]
    return [f"{', '.join(uncoupled)}: {NO_COUPLING}"] if uncoupled else []


def _is_uncoupled(name: str) -> bool:
    """Tells whether a client uses Multipath TCP without coupled congestion control."""
    try:
        use = client_of(name).multipath
    except KeyError:
        return False
    return use is not None and use.congestion_control is None


def is_taken(name: str) -> bool:
    """Tells whether a client of the usual links, or an alias, has this name."""
    return name in names(USUAL_LINKS) or name in ALIASES


def obstacle(wanted: Sequence[str], place: str = "guest") -> str | None:
    """Returns why these clients cannot run in an environment and what to do, None if they can. The
    guest's image has the foreign programs, except those that are compiled."""
    uncompiled = [name for name in wanted if not is_compiled_here(name)]
    if uncompiled:
        return (
            f"{', '.join(uncompiled)}: not compiled; `make peers-quic` in a checkout of linklab "
            "compiles such peers"
        )
    packages = missing_packages(wanted) if place == "host" else []
    if packages:
        return f"missing programs: apt-get install {' '.join(packages)}"
    if any(client_of(name).program is None for name in wanted):
        return client_obstacle()
    return None


def client_obstacle() -> str | None:
    """Returns why there is no multilink and what to do, None if there is one."""
    if MULTILINK.exists() and GUEST_MULTILINK.exists():
        return None
    remedy = "install linklab again" if INSTALLED else f"`make setup` in {REPOSITORY} builds it"
    return f"the client is not there: {MULTILINK}; {remedy}, or name one in LINKLAB_MULTILINK"


def is_compiled_here(name: str) -> bool:
    """Tells whether this machine has the client's program, if that is one that is compiled."""
    client = client_of(name)
    if client.program is None or not client.is_compiled:
        return True
    return (PEERS / client.program.executable).exists()


def missing_packages(wanted: Sequence[str]) -> list[str]:
    """Returns the Debian packages that these clients need and this machine lacks."""
    needed = {program for name in wanted if (program := client_of(name).program) is not None}
    return sorted(one.package for one in needed if one.package and not shutil.which(one.executable))


def packages() -> list[str]:
    """Returns the Debian packages of all peers, for the images of the guest and of the container."""
    programs = {client_of(name).program for name in names(USUAL_LINKS)}
    return sorted(one.package for one in programs if one is not None and one.package)
