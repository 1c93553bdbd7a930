"""Reads a scenario's settings from YAML, and the traces that it names."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping as Mappings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from yaml.nodes import MappingNode, Node, ScalarNode

from linklab.core import units
from linklab.core.link_kinds import KINDS, MAX_LINKS, LinkKind, devices, in_order, link_name
from linklab.models import events, impairments
from linklab.models.events import Event
from linklab.scenario import distributions, link, link_words, payload, traffic
from linklab.scenario.distributions import DelayDistribution
from linklab.scenario.link import LinkSettings
from linklab.scenario.network import NetworkSettings
from linklab.scenario.payload import Payload
from linklab.scenario.settings import TABLE, Scenario
from linklab.scenario.traffic import TrafficFlow
from linklab.scenario.workload import Workload
from linklab.schema import document
from linklab.schema.document import ScenarioError
from linklab.schema.mapping import NULL_TAG, Keys, Mapping, guess, one_of
from linklab.traces import library, plain
from linklab.traces.trace import TraceSample

NODES: Final = (
    "client",
    "server",
    "other",
    "air",
    *(node for kind in KINDS.values() for node in (kind.access, kind.core)),
)
"""The names of the lab's nodes. No access point may have one of them."""


UNFILED: Final = "links"
"""The name of a scenario that has no file."""

UNFILED_SIZE: Final = "50 MB"
"""The size of its payload."""

RETIRED: Final = ("published", "findings")
"""Former keys of scenarios, which old run directories contain. Publications now have their own files."""


def parse(
    text: str,
    file_name: str = "<text>",
    *,
    path: Path | None = None,
    stem: str | None = None,
    of_a_run: bool = False,
) -> Scenario:
    """Reads a scenario from YAML text.

    `file_name` names the file in errors. If `stem` is given, the scenario's name must equal it. With
    `of_a_run`, former keys are allowed. Raises ScenarioError.
    """
    root = document.compose(text, file_name, ", ".join(TABLE.keys.needed), canonical=of_a_run)
    if of_a_run and isinstance(root, MappingNode):
        root.value = [pair for pair in root.value if pair[0].value not in RETIRED]
    top = Mapping(file_name, root, "", TABLE.keys)
    values = TABLE.values(top, without=("links", "events", "distributions", "traffic"))
    if stem is not None and values["name"] != stem:
        top.fail("name", f"{values['name']!r} differs from the file's name; allowed: {stem!r}")
    if not of_a_run:
        check_size(top, values["payload"], values.get("workload", Workload()))
    base = None if path is None else path.parent
    tables = distributions.read(top, "distributions", base)
    addresses = values.get("network", NetworkSettings())
    named = top.sub("links", Keys((), named=link_name))
    at_start = _from_lines(named)
    links = _links(named, base, tables, addresses)
    if stem is not None and "energy" in values:
        _check_energy(top, values["energy"], path)
    return Scenario(
        **values,
        links=links,
        events=_events([*at_start, *top.items("events", events.TABLE.keys)], links, tables),
        distributions=tables,
        traffic=_traffic(top, links),
        path=path,
    )


def of_links(links: Mappings[str, str], name: str = UNFILED) -> Scenario:
    """Returns a scenario of links in one line each (`link_words`). Raises ScenarioError."""
    top = {"name": name, "payload": {"size": UNFILED_SIZE}, "links": dict(links)}
    try:
        return parse(json.dumps(top), "")
    except ScenarioError as error:
        raise ScenarioError(str(error).removeprefix(":1: ")) from None


def check_size(top: Mapping, read: Payload, workload: Workload) -> None:
    """Refuses a payload that is too large for a workload of the same file."""
    why = workload.misfit(read.size_bytes)
    if why is not None:
        top.sub("payload", payload.TABLE.keys).fail("size", why)


def _check_energy(top: Mapping, name: str, path: Path | None) -> None:
    """Checks that a user's file names an existing energy model. A run directory has its own copy."""
    from linklab.energy import library as models  # A guest does not need it.

    try:
        models.find(name, None if path is None else path.parent)
    except ScenarioError as error:
        top.fail("energy", str(error))


def _from_lines(maps: Mapping) -> list[Mapping]:
    """Replaces links in one line by mappings. Returns what only events can say, at time 0."""
    at_start = []
    allowed = link.ANY_KEYS.all
    for name, node in maps.values.items():
        if not isinstance(node, ScalarNode) or (node.tag == NULL_TAG and not node.style):
            continue
        keys = maps.get(name, link_words.keys_of)
        kind = keys.pop("preset_kind", None)
        if kind is not None and name not in KINDS:
            keys.setdefault("kind", kind)
        events_keys = {key: keys.pop(key) for key in list(keys) if key not in allowed}
        maps.values[name] = _node_of(keys, node)
        if events_keys:
            first = _node_of({"at": "0 s", "link": name, **events_keys}, node)
            at_start.append(Mapping(maps.shown, first, maps.path(name), events.TABLE.keys))
    return at_start


def _node_of(value: Any, at: Node) -> Node:
    """Returns keys and values as YAML that stands where `at` does."""
    marks = (at.start_mark, at.end_mark)
    if isinstance(value, str):
        return ScalarNode("tag:yaml.org,2002:str", value, *marks, style='"')
    pairs = [(_node_of(key, at), _node_of(one, at)) for key, one in value.items()]
    return MappingNode("tag:yaml.org,2002:map", pairs, *marks)


def _links(
    maps: Mapping,
    base: Path | None,
    tables: dict[str, DelayDistribution],
    addresses: NetworkSettings,
) -> dict[str, LinkSettings]:
    if not 1 <= len(maps.values) <= MAX_LINKS:
        maps.fail(None, f"{len(maps.values)} links; allowed: 1 to {MAX_LINKS}")
    kinds = {name: _kind_of(maps, name) for name in maps.values}
    names = in_order(kinds)
    nodes = set(NODES)
    found = {}
    for name, device in zip(names, devices(kinds[name] for name in names), strict=True):
        mapping = maps.sub(name, link.keys_of(kinds[name]))
        find_trace = functools.partial(_find_trace, base)
        found[name] = link.read(mapping, kinds[name], device, find_trace, nodes, addresses)
        impairments.check(mapping, (found[name],), tables, found[name].families)
    return found


def _kind_of(maps: Mapping, name: str) -> LinkKind:
    """Returns a link's kind: by its key `kind`, else by its name."""
    mapping = maps.sub(name, link.keys_of(KINDS[name]) if name in KINDS else link.ANY_KEYS)
    allowed = ", ".join(KINDS)
    if not mapping.has("kind"):
        if name not in KINDS:
            mapping.fail(
                None, f"{name!r}{guess(name, KINDS)} has no kind; needed: kind, of {allowed}"
            )
        return KINDS[name]
    kind = mapping.get("kind", one_of(*KINDS))
    if name in KINDS and kind != name:
        mapping.fail("kind", f"{kind!r} for a link called {name}; allowed: {name}, or another name")
    return KINDS[kind]


def _find_trace(base: Path | None, name: str) -> tuple[Path, tuple[TraceSample, ...]]:
    file = library.find(name, base)
    return file, _samples(file, file.stat().st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _samples(file: Path, _changed_ns: int) -> tuple[TraceSample, ...]:
    """Reads a trace once for all scenarios that play it."""
    return plain.load(file)


def _traffic(top: Mapping, links: dict[str, LinkSettings]) -> tuple[TrafficFlow, ...]:
    flows = tuple(
        traffic.TABLE.of(item, link=item.get("link", one_of(*links)))
        for item in top.items("traffic", traffic.TABLE.keys)
    )
    traffic.check_all(top, flows)
    return flows


def _events(
    items: Sequence[Mapping], links: dict[str, LinkSettings], tables: dict[str, DelayDistribution]
) -> tuple[Event, ...]:
    found: list[Event] = []
    last: dict[str, float] = {}
    for item in items:
        event = events.TABLE.of(item, link=item.get("link", one_of(*links)))
        name = event.link
        if event.at_s is not None:
            if event.at_s < last.get(name, 0.0):
                item.fail(
                    "at",
                    f"{units.format_duration(event.at_s)} is before the event of {name} above it; "
                    f"allowed: at least {units.format_duration(last[name])}",
                )
            last[name] = event.at_s
        changes = (*events.in_force(found, event), event)
        rtt_s, jitter_s = events.round_trip(links[name].rtt_s, links[name].jitter_s, changes)
        link.check_jitter(item, jitter_s, rtt_s)
        impairments.check(item, (links[name], *changes), tables, links[name].families)
        _check_handover(item, event, links[name])
        found.append(event)
    return tuple(found)


def _check_handover(item: Mapping, event: Event, settings: LinkSettings) -> None:
    if event.handover is None:
        return
    points = settings.access_points
    if len(points) < 2:
        item.fail("handover", "needs several access points; needed: radio with access_points")
    if event.handover not in ("next", *points):
        allowed = ", ".join(("next", *points))
        item.fail("handover", f"no access point is {event.handover!r}; allowed: {allowed}")
