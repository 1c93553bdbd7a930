"""Defines the keys of `traffic`: flows of another host on the scenario's links. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from linklab.core import units
from linklab.core.frames import IPV6_BYTES, MTU_BYTES, UDP_BYTES
from linklab.core.link_state import Direction
from linklab.models.keys import LENGTH, RATE, SIZE, TIME
from linklab.scenario.tcp import CONGESTION_CONTROLS
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import WORDS, choice, count, size
from linklab.schema.rows import Row, Table

MOST_FLOWS: Final = 16
"""The most flows of a scenario. Each has two processes."""

MOST_PACKETS_PER_S: Final = 10_000
"""The most packets of a call in a second."""

PAGE_SIGMA: Final = 1.0
"""The standard deviation of the logarithm of a page's size."""

_LEAST_PACKET_BYTES: Final = 16
"""A call's packet has its number and its time."""

_MOST_PACKET_BYTES: Final = MTU_BYTES - IPV6_BYTES - UDP_BYTES
"""A whole packet of either family."""


@dataclass(frozen=True, slots=True)
class Bulk:
    """Long TCP connections that always have something to send, as iperf3's do."""

    connections: int = 1
    congestion_control: str | None = None


@dataclass(frozen=True, slots=True)
class Web:
    """Pages over TCP. Each is fetched, then read in a pause.

    Sizes are log-normal. The median is that of mobile pages, 2311 kB (HTTP Archive, Web Almanac
    2024). The logarithm's standard deviation is 1, so 75 % and 90 % of the pages have at most 1.96
    and 3.6 medians. Ecoindex' pages have 1.98 and 3.73 (ecoindex_reference, response_size). Pauses
    are exponential with a mean of 30 s (3GPP TR 25.892, as in ns-3's ThreeGppHttpVariables).
    """

    page_bytes: int = 2_311_000
    pause_s: float = 30.0
    connections: int = 6
    congestion_control: str | None = None

    @property
    def mean_page_bytes(self) -> float:
        """The mean of the pages' sizes."""
        return self.page_bytes * math.exp(PAGE_SIGMA**2 / 2)


@dataclass(frozen=True, slots=True)
class Call:
    """UDP packets of one size at a constant rate, as a call sends them. Both count the payload of
    UDP, as iperf3 does."""

    rate_bps: int
    packet_bytes: int = 1200

    @property
    def interval_s(self) -> float:
        """The time from one packet to the next."""
        return self.packet_bytes * 8 / self.rate_bps


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficFlow:
    """Traffic of another host over one link. One of `bulk`, `web` and `call` is set.

    `to_s` is None for a flow that lasts until the run's end. Times count from the scenario's
    start.
    """

    link: str
    direction: Direction = "down"
    bulk: Bulk | None = None
    web: Web | None = None
    call: Call | None = None
    from_s: float = 0.0
    to_s: float | None = None

    @property
    def kind(self) -> str:
        """The key of what it sends."""
        return next(key for key in KINDS if getattr(self, key) is not None)

    @property
    def congestion_control(self) -> str | None:
        """Its sender's congestion control, None for the host's, and for UDP."""
        sender = self.bulk or self.web
        return None if sender is None else sender.congestion_control

    @property
    def words(self) -> str:
        """Describes what it sends, and when."""
        what = self.kind
        if self.call is not None:
            what += f" of {units.format_rate(self.call.rate_bps)}"
        elif self.bulk is not None and self.bulk.connections > 1:
            what += f" of {self.bulk.connections} connections"
        words = f"{what} {self.direction} {self.link}"
        if self.from_s:
            words += f" from {units.format_duration(self.from_s)}"
        return words if self.to_s is None else f"{words} to {units.format_duration(self.to_s)}"

    @property
    def end_s(self) -> float:
        """The time of its end, infinite if it lasts until the run's end."""
        return math.inf if self.to_s is None else self.to_s


KINDS: Final = ("bulk", "web", "call")


def _check_call(mapping: Mapping, call: Call) -> None:
    if call.interval_s * MOST_PACKETS_PER_S < 1:
        most = units.format_rate(MOST_PACKETS_PER_S * call.packet_bytes * 8)
        mapping.fail(
            "rate",
            f"{units.format_rate(call.rate_bps)} in packets of "
            f"{units.format_size(call.packet_bytes)} are too many packets; allowed: up to {most}",
        )


def _check_flow(mapping: Mapping, flow: TrafficFlow) -> None:
    given = [key for key in KINDS if mapping.has(key)]
    if len(given) != 1:
        found = f"has {' and '.join(given)}" if given else "sends nothing"
        mapping.fail(None, f"{found}; needed: one of {', '.join(KINDS)}")
    if flow.end_s <= flow.from_s:
        start = units.format_duration(flow.from_s)
        mapping.fail(
            "to",
            f"{units.format_duration(flow.end_s)} is not after its beginning; allowed: above {start}",
        )


def check_all(mapping: Mapping, flows: tuple[TrafficFlow, ...]) -> None:
    """Refuses more flows than a scenario may have."""
    if len(flows) > MOST_FLOWS:
        mapping.fail("traffic", f"{len(flows)} flows; allowed: up to {MOST_FLOWS}")


_CONNECTIONS: Final = count(1, 64)

_CONTROL_ROW: Final = Row(
    "congestion_control",
    "congestion_control",
    choice(*CONGESTION_CONTROLS),
    "congestion control of the sender",
    unset=None,
    default="that of `tcp`",
)

_BULK: Final = Table(
    Bulk,
    (Row("connections", "connections", _CONNECTIONS, "number of connections"), _CONTROL_ROW),
    about="TCP connections that always have something to send. `bulk: {}` is one of them.",
)

_WEB: Final = Table(
    Web,
    (
        Row("page", "page_bytes", SIZE, "median size of a page; sizes are log-normal"),
        Row("pause", "pause_s", LENGTH, "mean time from a page to the next; exponential"),
        Row("connections", "connections", _CONNECTIONS, "number of connections for each page"),
        _CONTROL_ROW,
    ),
    about="Pages over TCP with pauses. The seed of the run decides sizes and pauses. The median is that of the "
    "Web Almanac 2024 (mobile), the pause that of 3GPP TR 25.892.",
)

_CALL: Final = Table(
    Call,
    (
        Row("rate", "rate_bps", RATE, "rate of the payload", needed=True),
        Row(
            "packet",
            "packet_bytes",
            size(_LEAST_PACKET_BYTES, _MOST_PACKET_BYTES),
            "payload of each packet",
        ),
    ),
    _check_call,
    f"UDP packets at a constant rate, up to {MOST_PACKETS_PER_S} in a second.",
)

TABLE: Final = Table(
    TrafficFlow,
    (
        Row("link", "link", WORDS, "the link that it shares with the client", needed=True),
        Row("direction", "direction", choice("down", "up"), "from the server, or to it"),
        Row("bulk", "bulk", _BULK, "long connections", unset=None),
        Row("web", "web", _WEB, "pages and pauses", unset=None),
        Row("call", "call", _CALL, "packets at a constant rate", unset=None),
        Row("from", "from_s", TIME, "when it begins"),
        Row("to", "to_s", TIME, "when it ends", unset=None, default="the end of the run"),
    ),
    _check_flow,
    f"Flows of another host behind the same links, up to {MOST_FLOWS}. Each has one of `bulk`, `web` and "
    "`call`. They wait in the same queues as the client's packets.",
)
