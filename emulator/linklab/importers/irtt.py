"""Reads irtt's JSON: round trips at a steady pace (`irtt client -o FILE`, also packed with gzip).

The client's monotonic clock tells when a probe was sent, else its wall clock. `lost` may name the way
on which a probe was lost (`--stats=both`). What was lost on the uplink does not count, because a trace
has the downlink's loss. One-way delays are not used: clocks of two machines differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final, NoReturn

import ijson
import msgspec

from linklab.importers import json_feed, probes
from linklab.importers.format import Format
from linklab.importers.json_feed import Feed
from linklab.importers.probes import Probe
from linklab.traces.trace import TraceFile

_ALLOWED: Final = "the output of irtt client -o FILE"
_LOST_UP: Final = "true_up"


class _Clock(msgspec.Struct):
    wall: int | None = None
    monotonic: int | None = None


class _Client(msgspec.Struct):
    send: _Clock


class _Timestamps(msgspec.Struct):
    client: _Client


class _Delay(msgspec.Struct):
    rtt: int | None = None


class _RoundTrip(msgspec.Struct):
    seqno: int
    lost: bool | str
    timestamps: _Timestamps
    delay: _Delay


def read(file: BinaryIO, name: str, bin_s: float | None) -> TraceFile:
    """Reads a file. Raises TraceError."""
    feed = Feed(file, name)
    feed.first()
    notes: list[str] = []

    def fail(reason: str) -> NoReturn:
        raise feed.error(reason)

    return probes.trace(_probes(feed, notes), bin_s, fail, notes)


def _probes(feed: Feed, notes: list[str]) -> Iterator[Probe]:
    count = up = 0
    for trip in _round_trips(feed, notes):
        if trip.seqno < count:
            raise feed.error(f"seqno: {trip.seqno} comes again; allowed: one test in a file")
        count = trip.seqno + 1
        clock = trip.timestamps.client.send
        t_ns = clock.wall if clock.monotonic is None else clock.monotonic
        if t_ns is None:
            raise feed.error("a probe has no time; needed: timestamps.client.send")
        if trip.lost in (False, "false"):
            if trip.delay.rtt is None or trip.delay.rtt < 0:
                raise feed.error("delay.rtt: is missing or negative; needed: ns of a round trip")
            yield Probe(t_ns, trip.delay.rtt / 1e9)
        elif trip.lost == _LOST_UP:
            up += 1
        else:
            yield Probe(t_ns, None)
    if up:
        notes.append(f"{up} probes were lost on the uplink: a trace has no loss of it")


def _round_trips(feed: Feed, notes: list[str]) -> Iterator[_RoundTrip]:
    has_any = False
    try:
        for item in ijson.items(ijson.parse(feed.events(_ALLOWED)), "round_trips.item"):
            yield json_feed.converted(feed, item, _RoundTrip, "irtt", _ALLOWED)
            has_any = True
    except (ijson.JSONError, UnicodeDecodeError) as error:
        reason = json_feed.reason(error)
        if "premature EOF" not in reason or not has_any:
            raise feed.error(f"not valid JSON: {reason}; allowed: {_ALLOWED}") from error
        notes.append("the file is cut off: it is read up to its last whole round trip")
    if not has_any:
        raise feed.error(f"'round_trips' is missing or empty; needed: {_ALLOWED}")


def _has_head(head: bytes) -> bool:
    return head.lstrip().startswith(b"{") and any(
        key in head for key in (b'"round_trips"', b'"irtt"')
    )


FORMAT: Final = Format(
    name="irtt",
    looks="the JSON of irtt client -o",
    begins=lambda line, where: False,
    has_head=_has_head,
    read=lambda file, name, options, only_up: read(file, name, options.bin_s),
    keeps=frozenset({"rtt", "loss"}),
    takes=frozenset({"bin_s"}),
)
