"""The least time in which a scenario's links could have delivered its payload. Pure.

The oracle knows every event in advance and keeps both links saturated from the start, over
the same link states that the player applies. What no client can avoid is included: packet,
TLS and HTTP/2 overhead, and the handshakes before the first byte. What a better transport
could avoid is not: slow start, loss recovery, the debt of tokens that sch_htb keeps after
a low rate, bytes of the handshakes themselves. Random loss strikes before the bottleneck's
queue, where further packets wait, so it does not lower the bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from linklab import linkmodel
from linklab.linkmodel import LinkState
from linklab.scenario import PACKET_BYTES, Scenario

SEGMENT_BYTES = 1448
"""TCP payload of a full packet: 1500 less 20 IPv4 (RFC 791), 20 TCP (RFC 9293) and 12 for
the timestamp option with its padding (RFC 7323)."""

TLS_RECORD_BYTES = 16384
"""Largest plaintext of a TLS 1.3 record (RFC 8446 5.1), which H2O fills for bulk data."""

TLS_OVERHEAD_BYTES = 22
"""Per record: 5 header, 1 content type (RFC 8446 5.2), 16 authentication tag (AES-GCM)."""

FRAME_BYTES = 16384
"""Payload of an HTTP/2 DATA frame: SETTINGS_MAX_FRAME_SIZE at its initial value (RFC 9113
6.5.2), up to which H2O fills frames."""

FRAME_OVERHEAD_BYTES = 9
"""The frame header (RFC 9113 4.1)."""

HANDSHAKE_ROUND_TRIPS = 3
"""TCP's handshake (RFC 9293 3.5), TLS 1.3's (RFC 8446 2), and the request up to the first
byte of its response."""


def goodput_ratio() -> float:
    """Payload bytes per byte that the bottleneck counts, for bulk data over HTTP/2: 0.9546."""
    return (
        SEGMENT_BYTES / PACKET_BYTES
        * (TLS_RECORD_BYTES / (TLS_RECORD_BYTES + TLS_OVERHEAD_BYTES))
        * (FRAME_BYTES / (FRAME_BYTES + FRAME_OVERHEAD_BYTES))
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Span:
    """From `start_s` until the next span a link delivers `bytes_per_s` of payload."""

    start_s: float
    bytes_per_s: float


def oracle_s(scenario: Scenario) -> float:
    """Seconds for the payload over both links; infinite where they never deliver it."""
    return _least_time(scenario, scenario.links)


def single_link_s(scenario: Scenario, link: str) -> float:
    """Seconds for the payload over `link` alone; infinite where it never delivers it.

    Raises KeyError for a link that the scenario lacks.
    """
    if link not in scenario.links:
        raise KeyError(link)
    return _least_time(scenario, [link])


def _least_time(scenario: Scenario, links: Iterable[str]) -> float:
    wanted = set(links)
    timelines: dict[str, list[tuple[float, LinkState]]] = {
        name: [(0.0, state)]
        for name, state in linkmodel.initial_states(scenario).items()
        if name in wanted
    }
    for change in linkmodel.changes(scenario):
        if change.link in wanted:
            timelines[change.link].append((change.t_s, change.state))
    return _time_to_deliver(
        scenario.payload.size_bytes, [_delivery(states) for states in timelines.values()]
    )


def _delivery(states: list[tuple[float, LinkState]]) -> list[_Span]:
    """What one link delivers over time, from the states that hold from given times on.

    The handshakes advance by the share of round trips that the time allows while the
    carrier is up, and wait while it is down. Delay lies before the bottleneck, so that a
    rate counts from the instant it is set.
    """
    spans = [_Span(0.0, 0.0)]
    round_trips_left = float(HANDSHAKE_ROUND_TRIPS)
    for (start_s, state), end_s in zip(
        states, [*(t for t, _ in states[1:]), math.inf], strict=True
    ):
        if start_s == end_s:
            continue
        if not state.up:
            spans.append(_Span(start_s, 0.0))
            continue
        rtt_s = 2 * state.delay_s
        ready_s = start_s + round_trips_left * rtt_s
        if ready_s >= end_s:
            round_trips_left = max(round_trips_left - (end_s - start_s) / rtt_s, 0.0)
            continue
        round_trips_left = 0.0
        spans.append(_Span(ready_s, state.down_rate_bps / 8 * goodput_ratio()))
    return spans


def _time_to_deliver(size_bytes: int, links: list[list[_Span]]) -> float:
    """When the links together have delivered `size_bytes`: integrates span by span."""
    times = sorted({span.start_s for spans in links for span in spans})
    left = float(size_bytes)
    for start_s, end_s in zip(times, [*times[1:], math.inf], strict=True):
        rate = sum(_rate_at(spans, start_s) for spans in links)
        if rate > 0 and left <= rate * (end_s - start_s):
            return start_s + left / rate
        left -= rate * (end_s - start_s) if rate > 0 else 0.0
    return math.inf


def _rate_at(spans: list[_Span], t_s: float) -> float:
    """The rate of the last span that has begun by `t_s`."""
    return next(span.bytes_per_s for span in reversed(spans) if span.start_s <= t_s)
