"""Records what a client observed of a link over time. Pure."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from linklab.core.frames import FRAME_BYTES, goodput_ratio
from linklab.core.records import ClientRecord
from linklab.runs import requests
from linklab.runs.requests import RangeRequest

Span = tuple[float, float]
"""Start and end, in seconds since the download began."""


@dataclass(frozen=True, slots=True)
class LinkProgress:
    """A sample of a link at `t_s`.

    Attributes:
        carried_bytes: bytes until then, in frames with their headers.
        rtt_s: round trip with the queues of that moment; 0 if unknown.
        base_rtt_s: round trip without queues; 0 if unknown.
        out_of_order: packets until then that came after a lost one.
    """

    t_s: float
    carried_bytes: int
    rtt_s: float
    base_rtt_s: float
    out_of_order: int = 0


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection, dialled at `dialled_s` and open to requests from `ready_s`.

    `tcp_s` is the time for the name lookup and TCP's handshake.
    """

    dialled_s: float
    ready_s: float
    tcp_s: float


@dataclass(frozen=True, slots=True)
class LinkHistory:
    """What a client observed of a link during a download.

    Attributes:
        is_exact: True if packets were counted as they arrived. False if bytes were counted as
            the program read them: in order, so a loss shows as a pause and a burst.
        samples: ascending in time.
        asked: spans in which the client waited for bytes or received some.
        coming: spans in which response bodies arrived, as far as the requests tell.
        held_s: arrivals, after a silence, of data that was sent before the silence.
        given_away_s: times at which other links took over requests whose bytes still arrived.
        failures: times and messages of failed connections.
    """

    link: str
    device: str
    is_exact: bool
    samples: tuple[LinkProgress, ...]
    asked: tuple[Span, ...]
    coming: tuple[Span, ...]
    held_s: tuple[float, ...] = ()
    connections: tuple[Connection, ...] = ()
    given_away_s: tuple[float, ...] = ()
    failures: tuple[tuple[float, str], ...] = field(default=())

    @property
    def carried_bytes(self) -> int:
        """The bytes of the whole download."""
        return self.samples[-1].carried_bytes if self.samples else 0

    def carried_between(self, start_s: float, end_s: float) -> float:
        """Returns the bytes carried between two times, interpolated between samples."""
        return self._carried_until(end_s) - self._carried_until(start_s)

    def _carried_until(self, at_s: float) -> float:
        index = bisect.bisect_left(self.samples, at_s, key=lambda one: one.t_s)
        if index == len(self.samples):
            return self.carried_bytes
        after = self.samples[index]
        before_s, before = 0.0, 0
        if index:
            before_s, before = self.samples[index - 1].t_s, self.samples[index - 1].carried_bytes
        share = max(0.0, at_s - before_s) / (after.t_s - before_s) if after.t_s > before_s else 1.0
        return before + share * (after.carried_bytes - before)


_LEFT_ALONE: Final = ("lost", "excluded")
"""Reasons of the event `failover` after which the link has no open connection."""


def of_records(
    records: Sequence[ClientRecord], link: str, device: str, end_s: float
) -> LinkHistory:
    """Returns a link's history from the records of `client.jsonl`; the download ended at `end_s`."""
    own = [one for one in records if one.link == link]
    connections = tuple(
        Connection(
            dialled_s=max(0.0, one.t_s - (one.tcp_ns + one.tls_ns) / 1e9),
            ready_s=one.t_s,
            tcp_s=one.tcp_ns / 1e9,
        )
        for one in own
        if one.event == "connected"
    )
    made = [one for one in requests.of_records(records) if one.link == link]
    ends = [end_s if one.end_s is None else one.end_s for one in made]
    down = _down(own, end_s)
    rtt_s = min((one.min_rtt_ns / 1e9 for one in own if one.min_rtt_ns), default=0.0)
    return LinkHistory(
        link=link,
        device=device,
        is_exact=any(one.segments for one in own),
        samples=_samples([one for one in own if one.event == "sample"]),
        asked=merged([*((one.start_s, end) for one, end in zip(made, ends, strict=True)), *down]),
        coming=merged(
            (begin, end)
            for one, end in zip(made, ends, strict=True)
            if (begin := _first_byte_s(one, rtt_s)) < end
        ),
        connections=connections,
        given_away_s=_given_away(own, records),
        failures=tuple((one.t_s, one.error) for one in own if one.event == "ban"),
    )


def _samples(samples: Sequence[ClientRecord]) -> tuple[LinkProgress, ...]:
    """Sums up the counters: the kernel's if known, else the client's.

    The kernel's counters start at zero with each connection.
    """
    found = []
    closed, closed_out_of_order, before = 0, 0, 0
    last: ClientRecord | None = None
    for one in samples:
        if last is not None and one.segments < last.segments:
            closed, closed_out_of_order = closed + last.segments, before + last.out_of_order
        before = closed_out_of_order
        segments = closed + one.segments
        found.append(
            LinkProgress(
                one.t_s,
                segments * FRAME_BYTES if segments else round(one.received_bytes / goodput_ratio()),
                one.rtt_ns / 1e9,
                one.min_rtt_ns / 1e9,
                closed_out_of_order + one.out_of_order,
            )
        )
        last = one
    return tuple(found)


def _first_byte_s(request: RangeRequest, rtt_s: float) -> float:
    """Returns the earliest time at which a request's body can have arrived.

    The client reads in large parts, so its own time of the first byte may be late.
    """
    soonest_s = request.start_s + rtt_s
    return soonest_s if request.first_byte_s is None else min(request.first_byte_s, soonest_s)


def _down(own: Iterable[ClientRecord], end_s: float) -> list[Span]:
    """Returns the spans in which the client knew that the link was down."""
    spans: list[Span] = []
    since_s: float | None = None
    for one in own:
        gone = one.event == "ban" or (one.event == "failover" and one.reason in _LEFT_ALONE)
        if gone and since_s is None:
            since_s = one.t_s
        elif one.event == "connected" and since_s is not None:
            spans.append((since_s, one.t_s))
            since_s = None
    return spans if since_s is None else [*spans, (since_s, end_s)]


def _given_away(own: Iterable[ClientRecord], records: Iterable[ClientRecord]) -> tuple[float, ...]:
    links = {one.link for one in own}
    taken = [one.t_s for one in records if one.event == "request" and one.from_link in links]
    return tuple(sorted(taken))


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Returns the spans in order. Spans that touch become one."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif end > begin:
            found.append((begin, end))
    return tuple(found)


def covered_s(spans: Iterable[Span], begin_s: float, end_s: float) -> float:
    """Returns the seconds between two times that the spans cover."""
    return sum(max(0.0, min(end_s, to) - max(begin_s, at)) for at, to in spans)
