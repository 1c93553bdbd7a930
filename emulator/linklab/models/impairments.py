"""Defines the keys of impairments, which links, events and live changes share: their units, limits and
texts. Pure.

`lab/shaping/impaired_path.py` applies them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final, Protocol

from msgspec import UNSET, UnsetType

from linklab.core import units
from linklab.core.frames import FRAME_BYTES, IPV6_MTU_BYTES, MTU_BYTES
from linklab.core.impairments import NO_IMPAIRMENTS, NORMAL, Impairments
from linklab.core.ip_family import IPV4, IPV6, Families
from linklab.core.limits import MAX_PAYLOAD_BYTES, MAX_RTT_S
from linklab.core.link_state import DIRECTIONS, Direction
from linklab.models import delay_tables
from linklab.models.keys import BURST, LENGTH, RATE, SHARE, SIZE
from linklab.models.loss import check_bursts
from linklab.schema.mapping import Mapping, guess
from linklab.schema.quantities import BOOLEAN, Quantity, count, duration, pattern, size
from linklab.schema.rows import Row, Table

MAX_JITTER_S: Final = 0.25
"""netem computes in 32 bits of nanoseconds, with room for a table's widening."""

DISTRIBUTION_NAME: Final = pattern(
    "[a-z][a-z0-9-]{0,31}", "name of a distribution", "up to 32 of a-z, 0-9 and -, a letter first"
)

MIN_MTU_BYTES: Final = 576
"""The size that every host must accept (RFC 1122, 3.3.2)."""

MAX_BURST_S: Final = 270.0
"""The longest time that a policer's burst may take at its rate. The kernel counts it in 32 bits."""

NAT_UDP_S: Final = 120.0
"""The least idle time of UDP that a NAT should have (RFC 4787, REQ-5)."""

NAT_TCP_S: Final = 7440.0
"""The same of TCP: 2 h 4 min (RFC 5382, REQ-5)."""


def _or(none: str, known: Quantity) -> Quantity:
    """Returns a quantity that may also be a word, which reads as 0."""
    return Quantity(
        lambda text: 0 if text == none else known.parse(text),
        lambda value: known.form(value) if value else none,
        f"{known.allowed}, or {none}",
    )


_NONE: Final[Any] = {"unset": UNSET, "default": "none"}

KEYS: Final = {direction: f"impair_{direction}" for direction in DIRECTIONS}
"""The key of each direction, in links, events and link states."""

TABLE: Final = Table(
    Impairments,
    (
        Row("loss", "loss_ratio", SHARE, "packets lost, besides the link's own", unset=UNSET),
        Row(
            "loss_burst",
            "loss_burst_packets",
            BURST,
            "mean packets lost in a row; 1: independent",
            unset=UNSET,
            default="1",
        ),
        Row(
            "delay",
            "delay_s",
            duration(0.0, MAX_RTT_S),
            "mean delay, besides the link's own",
            unset=UNSET,
        ),
        Row(
            "jitter",
            "jitter_s",
            duration(0.0, MAX_JITTER_S),
            "standard deviation of this delay; a delay below 0 becomes 0",
            unset=UNSET,
        ),
        Row(
            "distribution",
            "distribution",
            DISTRIBUTION_NAME,
            f"of this delay: {', '.join(delay_tables.NAMES)}, or a name in `distributions`",
            unset=UNSET,
            default=NORMAL,
        ),
        Row(
            "in_order",
            "in_order",
            BOOLEAN,
            "a packet waits for those before it; false: each has its own delay, as with netem",
            unset=UNSET,
            default="true",
        ),
        Row(
            "reorder",
            "reorder_ratio",
            SHARE,
            "packets that skip this delay, so that they overtake others",
            unset=UNSET,
        ),
        Row("duplicate", "duplicate_ratio", SHARE, "packets that arrive twice", unset=UNSET),
        Row("corrupt", "corrupt_ratio", SHARE, "packets with one wrong bit", unset=UNSET),
        Row(
            "mtu",
            "mtu_bytes",
            size(MIN_MTU_BYTES, MTU_BYTES),
            "size of the largest IP packet that passes; the sender of a larger one is told",
            unset=UNSET,
            default=units.format_size(MTU_BYTES),
        ),
        Row(
            "black_hole",
            "black_hole",
            BOOLEAN,
            "true: packets larger than `mtu` vanish, and nobody is told",
            unset=UNSET,
            default="false",
        ),
        Row(
            "police",
            "police_bps",
            _or("none", RATE),
            "rate of a policer, which drops the frames beyond it",
            unset=UNSET,
            default="none",
        ),
        Row(
            "police_burst",
            "police_burst_bytes",
            size(FRAME_BYTES, MAX_PAYLOAD_BYTES),
            "bytes that pass at once before the policer drops; unused rate fills it again",
            unset=UNSET,
        ),
        Row(
            "bleach_ecn",
            "bleach_ecn",
            BOOLEAN,
            "true: clears the ECN field of IP, so that no mark arrives",
            unset=UNSET,
            default="false",
        ),
        Row(
            "nat_udp",
            "nat_udp_s",
            LENGTH,
            "of the uplink: a NAT, which forgets UDP flows that are idle for this time",
            unset=UNSET,
            default=f"no NAT; with `nat_tcp`: {units.format_duration(NAT_UDP_S)}",
        ),
        Row(
            "nat_tcp",
            "nat_tcp_s",
            LENGTH,
            "of the uplink: a NAT, which forgets TCP connections that are idle for this time",
            unset=UNSET,
            default=f"no NAT; with `nat_udp`: {units.format_duration(NAT_TCP_S)}",
        ),
        Row(
            "reset_after",
            "reset_after_s",
            _or("none", LENGTH),
            "each TCP connection is reset when it is this old; in an event, this long after the event begins",
            **_NONE,
        ),
        Row(
            "reset_bytes",
            "reset_bytes",
            _or("none", SIZE),
            "each TCP connection is reset once these bytes have arrived; in an event, these bytes after it begins",
            **_NONE,
        ),
        Row(
            "close_bytes",
            "close_bytes",
            _or("none", SIZE),
            "each TCP connection ends after these bytes, as if that was all",
            **_NONE,
        ),
        Row(
            "slice",
            "slice_bytes",
            _or("none", SIZE),
            "the data of TCP passes in pieces of at most this size",
            **_NONE,
        ),
        Row(
            "slice_pause",
            "slice_pause_s",
            LENGTH,
            "the time between two pieces of a connection",
            unset=UNSET,
        ),
        Row(
            "fault_port",
            "fault_port",
            _or("all", count(1, 65535)),
            "connections to this port of the server are reset, ended or sliced, others are not",
            unset=UNSET,
            default="all",
        ),
    ),
    about="Impairments of one direction, besides what the link does itself. A node between the link's "
    "core and the server adds them. In an event they last as the event says.",
)

ROWS: Final = tuple(
    Row(key, key, TABLE, f"what else {direction}link packets meet", unset=UNSET, default="nothing")
    for direction, key in KEYS.items()
)
"""The keys of links and events."""


class Impairing(Protocol):
    """A link or an event with impairments of both directions."""

    @property
    def impair_down(self) -> Impairments | UnsetType:
        """The downlink's."""

    @property
    def impair_up(self) -> Impairments | UnsetType:
        """The uplink's."""


def of(impairing: Impairing, direction: Direction) -> Impairments | UnsetType:
    return impairing.impair_down if direction == "down" else impairing.impair_up


def impairs(impairing: Impairing) -> bool:
    return any(of(impairing, direction) is not UNSET for direction in DIRECTIONS)


def breaks(impairing: Impairing) -> bool:
    """Tells whether TCP connections have faults."""
    found = (of(impairing, direction) for direction in DIRECTIONS)
    return any(one is not UNSET and one.breaks_connections for one in found)


def check(
    where: Mapping, impairing: Iterable[Impairing], names: Collection[str], families: Families
) -> None:
    """Refuses impairments that do not fit each other, or the families of the link's addresses.

    `impairing` are a link and the events in force, the last one in the mapping `where`. `names` are
    the scenario's distributions.
    """
    stacked = list(impairing)
    for direction in DIRECTIONS:
        if of(stacked[-1], direction) is UNSET:
            continue
        mapping = where.sub(KEYS[direction], TABLE.keys)
        total = NO_IMPAIRMENTS
        for one in stacked:
            total = total.changed(of(one, direction))
        _check_one(mapping, total, names)
        _check_families(mapping, total, families)
        if direction == "down":
            for key in ("nat_udp", "nat_tcp"):
                if mapping.has(key):
                    mapping.fail(key, f"a NAT belongs to the uplink; allowed: in {KEYS['up']}")


def _check_families(mapping: Mapping, total: Impairments, families: Families) -> None:
    if IPV4 not in families:
        for key in ("nat_udp", "nat_tcp"):
            if mapping.has(key):
                mapping.fail(
                    key, "a NAT translates IPv4 only; allowed: on a link with ip: 4 or both"
                )
    if IPV6 in families and total.mtu_bytes and total.mtu_bytes < IPV6_MTU_BYTES:
        mapping.fail(
            "mtu",
            f"{units.format_size(total.mtu_bytes)} are too little for IPv6 (RFC 8200, 5); allowed: "
            f"at least {units.format_size(IPV6_MTU_BYTES)}, or ip: 4",
        )


def _check_one(mapping: Mapping, total: Impairments, names: Collection[str]) -> None:
    if not mapping.values:
        mapping.fail(None, f"impairs nothing; allowed: any of {', '.join(TABLE.keys.all)}")
    check_bursts(mapping, "loss", total.lost_ratio, total.loss_burst_packets or 1.0)
    if total.reorder_ratio and not total.delay_s:
        mapping.fail("reorder", "needs a delay, which the packets skip; needed: delay")
    if total.jitter_s and not total.delay_s:
        mapping.fail(
            "jitter",
            f"a jitter of {units.format_duration(total.jitter_s)} around no delay; needed: delay",
        )
    if total.black_hole and not total.mtu_bytes:
        mapping.fail("black_hole", "needs a size above which packets vanish; needed: mtu")
    if total.police_bps and not total.police_burst_bytes:
        mapping.fail("police", "needs the size of its bucket; needed: police_burst")
    if total.police_bps and total.police_burst_bytes:
        most = int(total.police_bps / 8 * MAX_BURST_S)
        if total.police_burst_bytes > most:
            mapping.fail(
                "police_burst",
                f"{units.format_size(total.police_burst_bytes)} take too long at "
                f"{units.format_rate(total.police_bps)}; allowed: at most {units.format_size(most)}",
            )
    if total.slice_bytes and not total.slice_pause_s:
        mapping.fail("slice", "needs the time between its pieces; needed: slice_pause")
    known = (*delay_tables.NAMES, *names)
    if total.distribution and total.distribution not in known:
        mapping.fail(
            "distribution",
            f"no distribution is called {total.distribution!r}"
            f"{guess(total.distribution, known)}; allowed: {', '.join(known)}, "
            "or another name in distributions",
        )


def in_words(found: Impairments) -> list[tuple[str, str]]:
    """Returns the keys that are set, and their values as text."""
    return [(key, text(value)) for key, value in TABLE.write(found).items()]


def text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
