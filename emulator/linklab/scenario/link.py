"""Defines the keys of a link: its state before its models and its first event. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from msgspec import UNSET, UnsetType

from linklab.core import units
from linklab.core.impairments import Impairments
from linklab.core.ip_family import ONLY_IPV4, Families
from linklab.core.limits import MAX_QUEUE_BYTES, MAX_RATE_BPS, MIN_RATE_BPS
from linklab.core.link_kinds import KINDS, LinkKind
from linklab.models import impairments, registry
from linklab.models.keys import BURST, RATE, ROUND_TRIP, SHARE
from linklab.models.loss import check_bursts
from linklab.models.model import Around, FindTrace
from linklab.queues import registry as disciplines
from linklab.queues.registry import Queue
from linklab.scenario import network
from linklab.scenario.network import NetworkSettings
from linklab.schema.mapping import Keys, Mapping
from linklab.schema.quantities import one_named, rate
from linklab.schema.rows import Mappings, Row, Table, keys

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """A link before its first event.

    Attributes:
        jitter_s: standard deviation of the one-way delay, whose mean is rtt_s/2.
        loss_ratio: share of downlink packets lost before the queue.
        discipline_down, discipline_up: settings of one of `linklab.queues.registry`.
        impair_down, impair_up: what else packets of a direction meet.
        ip: the families of its addresses as its key says, None without the key.
        families: those families, else the network's.
        bandwidth_bps: B_x of thesis 4.3.4 and 4.3.5, the capacity that algorithms assume. 1.3 times
            the true rate reproduces the thesis' link Δ.
        models: settings of the link's models, in the order of `linklab.models.registry`.
    """

    kind: LinkKind
    device: str
    down_rate_bps: int
    up_rate_bps: int
    rtt_s: float
    jitter_s: float = 0.0
    loss_ratio: float = 0.0
    loss_burst_packets: float = 1.0
    queue_down_bytes: int
    queue_up_bytes: int
    bandwidth_bps: int
    discipline_down: Any = disciplines.DEFAULT
    discipline_up: Any = disciplines.DEFAULT
    impair_down: Impairments | UnsetType = UNSET
    impair_up: Impairments | UnsetType = UNSET
    ip: Families | None = None
    families: Families = ONLY_IPV4
    models: tuple[Any, ...] = ()

    @property
    def queue(self) -> Queue:
        """The queue of both directions if equal, else the downlink's."""
        return self.queue_down

    @property
    def queue_down(self) -> Queue:
        """The queue of the downlink."""
        return Queue(self.queue_down_bytes, self.discipline_down)

    @property
    def queue_up(self) -> Queue:
        """The queue of the uplink."""
        return Queue(self.queue_up_bytes, self.discipline_up)

    @property
    def access_points(self) -> tuple[str, ...]:
        """The names of the link's access points."""
        return tuple(
            name
            for settings in self.models
            for name in registry.of_settings(settings).access_points(settings)
        )

    def model(self, settings: type[S]) -> S | None:
        """Returns a model's settings by their class; None if the link does not have the model."""
        return next((one for one in self.models if isinstance(one, settings)), None)

    def having(self, settings: object) -> LinkSettings:
        """Returns the link with these settings of a model, in place of its own."""
        others = [one for one in self.models if type(one) is not type(settings)]
        return replace(self, models=registry.ordered([*others, settings]))

    def without(self, settings: type[object]) -> LinkSettings:
        """Returns the link without a model, by the class of its settings."""
        return replace(
            self, models=tuple(one for one in self.models if not isinstance(one, settings))
        )


def default_queue_bytes(rate_bps: int) -> int:
    """Returns max(1 MB, 0.4 s of the rate) for a queue, an assumption for LTE and Wi-Fi.

    The result is at most 1 GB, which only rates above 20 Gbit/s would exceed.
    """
    return min(max(1_000_000, rate_bps * 4 // 10 // 8), MAX_QUEUE_BYTES)


def _default_bytes(queue: Queue, rate_bps: int) -> int:
    known = disciplines.of_settings(queue.discipline).default_bytes
    return default_queue_bytes(rate_bps) if known is None else known


def default_bandwidth_bps(down_rate_bps: int) -> int:
    """Returns 1.3 times the true rate, which reproduces the link Δ of 2.6-4.6 s in thesis table 5.10."""
    return down_rate_bps * 13 // 10


_QUEUE: Final = disciplines.Choice()

TABLE: Final = Table(
    LinkSettings,
    (
        Row(
            "kind",
            "kind",
            one_named({kind: name for name, kind in KINDS.items()}),
            "which models and device name it has; needed if its name says neither",
            default="the link's name",
        ),
        Row(
            "down",
            "down_rate_bps",
            RATE,
            "downlink rate on the wire; models change it",
            needed=True,
        ),
        Row("up", "up_rate_bps", RATE, "the same of the uplink", needed=True),
        Row(
            "rtt",
            "rtt_s",
            ROUND_TRIP,
            "round-trip time without queues and the time that frames take",
            needed=True,
        ),
        Row(
            "jitter",
            "jitter_s",
            ROUND_TRIP,
            "standard deviation of the one-way delay, up to half the rtt; packets stay in order",
        ),
        Row("loss", "loss_ratio", SHARE, "downlink packets lost"),
        Row(
            "loss_burst", "loss_burst_packets", BURST, "mean packets lost in a row; 1: independent"
        ),
        Row(
            "queue",
            "queue",
            _QUEUE,
            "size of the queue in both directions, or its discipline",
            default="0.4 s of the rate, at least 1 MB",
        ),
        Row("queue_down", "queue_down", _QUEUE, "the same of the downlink", default="`queue`"),
        Row("queue_up", "queue_up", _QUEUE, "the same of the uplink", default="`queue`"),
        *impairments.ROWS,
        Row("ip", "ip", network.IP, "IPv4, IPv6 or both", unset=None, default="that of `network`"),
        Row(
            "bandwidth",
            "bandwidth_bps",
            rate(MIN_RATE_BPS, 2 * MAX_RATE_BPS),
            "the link's capacity that algorithms assume, their B",
            default="1.3 times `down`",
        ),
    ),
    about="A link before its models and its first event.",
)
"""`bandwidth` is only an assumption of algorithms, so it may exceed the rates that can be shaped."""


def keys_of(kind: LinkKind) -> Keys:
    """Returns the keys of a link of this kind."""
    models = (row for model in registry.of_kind(kind) for row in model.rows)
    return keys((*TABLE.flat, *models))


ANY_KEYS: Final = Keys(
    (), tuple(dict.fromkeys(key for kind in KINDS.values() for key in keys_of(kind).all))
)
"""The keys of a link whose kind is not known yet."""


def read(
    link: Mapping,
    kind: LinkKind,
    device: str,
    find_trace: FindTrace,
    nodes: set[str],
    addresses: NetworkSettings,
) -> LinkSettings:
    """Reads the settings of a link. Raises ScenarioError."""
    values = TABLE.values(link, without=("kind",))
    values["families"] = network.families_of(link, values.get("ip"), addresses)
    down, up = values["down_rate_bps"], values["up_rate_bps"]
    both = values.pop("queue", Queue())
    for direction, rate_bps in (("down", down), ("up", up)):
        queue = values.pop(f"queue_{direction}", both)
        discipline = disciplines.of_settings(queue.discipline)
        values[f"discipline_{direction}"] = discipline.facing(queue.discipline, direction)
        values[f"queue_{direction}_bytes"] = queue.size_bytes or _default_bytes(queue, rate_bps)
    values.setdefault("bandwidth_bps", default_bandwidth_bps(down))
    settings = LinkSettings(kind=kind, device=device, **values)
    check_jitter(link, settings.jitter_s, settings.rtt_s)
    check_bursts(link, "loss", settings.loss_ratio, settings.loss_burst_packets)
    around = Around(down, up, settings.rtt_s, settings.loss_burst_packets, find_trace, nodes)
    found = (model.read(link, around) for model in registry.of_kind(kind))
    return replace(settings, models=tuple(one for one in found if one is not None))


def write(name: str, link: LinkSettings) -> Mappings:
    """Writes the canonical form of a link."""
    same = link.queue_down == link.queue_up
    without = {"queue_down", "queue_up"} if same else {"queue"}
    if name == link.kind.name:
        without.add("kind")
    written = TABLE.write(link, without)
    for model in registry.of_kind(link.kind):
        written |= model.write(link.model(model.settings))
    return written


def check_jitter(where: Mapping, jitter_s: float, rtt_s: float) -> None:
    """Refuses a jitter that would make the one-way delay of rtt/2 negative."""
    if jitter_s > rtt_s / 2:
        where.fail(
            "jitter" if where.has("jitter") else "rtt",
            f"a jitter of {units.format_duration(jitter_s)} does not fit an rtt of "
            f"{units.format_duration(rtt_s)}; allowed: a jitter of at most half the rtt, "
            f"{units.format_duration(rtt_s / 2)}",
        )
