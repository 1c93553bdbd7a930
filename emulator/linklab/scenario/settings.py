"""Defines the top-level keys of a scenario. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from linklab.models import events, impairments
from linklab.models.delay_tables import DelayTable
from linklab.models.events import Event
from linklab.models.layer import STEP_S
from linklab.scenario import client, clients, link, network, payload, tcp, traffic, workload
from linklab.scenario.client import ClientSettings
from linklab.scenario.clients import Downloader
from linklab.scenario.distributions import DelayDistribution, DistributionMapping
from linklab.scenario.link import LinkSettings
from linklab.scenario.name import NAME
from linklab.scenario.network import NetworkSettings
from linklab.scenario.payload import Payload
from linklab.scenario.tcp import TcpSettings
from linklab.scenario.traffic import TrafficFlow
from linklab.scenario.workload import Workload
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import TEXT, WORDS, duration
from linklab.schema.rows import Listed, Row, Table

SAMPLE_S: Final = 0.5
"""The default interval of the queues' samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A validated scenario. `path` is its file, and does not count in comparisons."""

    name: str
    title: str = ""
    description: str = ""
    source: str = ""
    payload: Payload
    workload: Workload = field(default_factory=Workload)
    links: dict[str, LinkSettings]
    events: tuple[Event, ...] = ()
    distributions: dict[str, DelayDistribution] = field(default_factory=dict)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    traffic: tuple[TrafficFlow, ...] = ()
    clients: tuple[Downloader, ...] = clients.ALONE
    tcp: TcpSettings = field(default_factory=TcpSettings)
    client: ClientSettings = field(default_factory=ClientSettings)
    step_s: float = STEP_S
    sample_s: float = SAMPLE_S
    energy: str | None = None
    path: Path | None = field(default=None, compare=False)

    @property
    def impaired_links(self) -> frozenset[str]:
        """The names of the links that have impairments at any time."""
        return self._links_with(impairments.impairs)

    @property
    def breaking_links(self) -> frozenset[str]:
        """The names of the links whose TCP connections have faults at any time."""
        return self._links_with(impairments.breaks)

    def _links_with(self, has: Callable[[impairments.Impairing], bool]) -> frozenset[str]:
        from_start = (name for name, link in self.links.items() if has(link))
        later = (event.link for event in self.events if has(event))
        return frozenset((*from_start, *later))

    @property
    def shared_links(self) -> frozenset[str]:
        """The names of the links that other hosts also use."""
        if len(self.clients) > 1:
            return frozenset(self.links)
        return frozenset(flow.link for flow in self.traffic)

    @property
    def delay_tables(self) -> dict[str, DelayTable]:
        """The scenario's own delay distributions, by name."""
        return {name: one.table for name, one in self.distributions.items()}


@dataclass(frozen=True, slots=True)
class LinkMapping:
    """Writes the mapping of links by name. `reading.py` reads it, because it finds the traces."""

    allowed: str = "one to eight links by name, see below"

    def read(self, mapping: Mapping, key: str) -> Any:
        raise NotImplementedError

    def write(self, links: dict[str, LinkSettings]) -> dict[str, Any]:
        """Returns the links' mapping for the file."""
        return {name: link.write(name, one) for name, one in links.items()}


_STEP: Final = duration(1e-3, 10.0)

TABLE: Final = Table(
    Scenario,
    (
        Row("name", "name", NAME, "the file's name without .yaml", needed=True),
        Row("title", "title", TEXT, "one line", unset=""),
        Row("description", "description", TEXT, "what it is about", unset=""),
        Row("source", "source", TEXT, "where the figures come from", unset=""),
        Row("payload", "payload", payload.TABLE, "the file", needed=True),
        Row(
            "workload",
            "workload",
            workload.TABLE,
            "what the client does with the payload",
            unset=Workload(),
            default="a download of the file",
        ),
        Row(
            "links",
            "links",
            LinkMapping(),
            "one to eight links, each a mapping or one line",
            needed=True,
        ),
        Row("events", "events", Listed(events.TABLE), "what happens to the links", unset=()),
        Row(
            "distributions",
            "distributions",
            DistributionMapping(),
            "delay distributions of your own, for `impair_down` and `impair_up`",
            unset={},
            default="none",
        ),
        Row(
            "traffic",
            "traffic",
            Listed(traffic.TABLE),
            "traffic of another host on the links",
            unset=(),
            default="none",
        ),
        Row(
            "clients",
            "clients",
            clients.EachClient(),
            "how many clients download at the same time, or a list of them",
            unset=clients.ALONE,
            default="1",
        ),
        Row(
            "step", "step_s", _STEP, "how often models that depend on load or movement are updated"
        ),
        Row("sample", "sample_s", _STEP, "how often the queues' counters are recorded"),
        Row(
            "network",
            "network",
            network.TABLE,
            "the lab's addresses",
            unset=NetworkSettings(),
            default="`{ip: 4}`",
        ),
        Row("tcp", "tcp", tcp.TABLE, "TCP settings of both end hosts"),
        Row("client", "client", client.TABLE, "options of multilink"),
        Row(
            "energy",
            "energy",
            WORDS,
            "the energy model: a name of `linklab energy`, or a file beside this one",
            unset=None,
            default="none, and no joules",
        ),
    ),
)
