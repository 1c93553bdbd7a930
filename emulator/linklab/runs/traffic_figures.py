"""Computes the figures of a scenario's traffic from a run's records. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

from linklab.core.bounded import Count, LinkName, Name, Rate, Ratio, Seconds
from linklab.core.link_state import Direction
from linklab.core.records import TrafficRecord


@dataclass(frozen=True, slots=True)
class TrafficFigures:
    """Holds the figures of one flow of `traffic`. None if the flow has no such value.

    `flow` is its number in the scenario, from 1. `flowed_s` is how long it flowed; 0 if the run ended
    before. `goodput_bps` is the payload that it delivered by that time. `lost_ratio` and the delays
    are those of a call's packets, `pages` and the times those of pages that came whole.
    """

    flow: Count
    link: LinkName
    direction: Direction
    kind: Name
    flowed_s: Seconds
    goodput_bps: Rate | None = None
    lost_ratio: Ratio | None = None
    delay_p50_s: Seconds | None = None
    delay_p95_s: Seconds | None = None
    delay_p99_s: Seconds | None = None
    pages: Count | None = None
    page_p50_s: Seconds | None = None
    page_p95_s: Seconds | None = None
    page_p99_s: Seconds | None = None

    @property
    def title(self) -> str:
        """Its number, kind, direction and link."""
        return f"{self.flow} {self.kind} {self.direction} {self.link}"

    @property
    def words(self) -> str:
        """Describes its goodput, and the delay and loss of a call, or its pages."""
        if self.goodput_bps is None:
            return "had not begun"
        words = f"{self.goodput_bps / 1e6:.2f} Mbit/s"
        if self.delay_p50_s is not None:
            words += f", delay {_milliseconds(self, 'delay')} ms (p50 p95 p99)"
        if self.lost_ratio is not None:
            words += f", {self.lost_ratio * 100:.2f} % lost"
        if self.pages is not None:
            words += f", {self.pages} pages"
        if self.page_p50_s is not None:
            words += f" in {_milliseconds(self, 'page')} ms (p50 p95 p99)"
        return words

    def flat(self) -> dict[str, float]:
        """Returns all known figures by name."""
        known = ((name, getattr(self, name)) for name in NAMES)
        return {name: value for name, value in known if value is not None}


_SAYS_WHICH: Final = ("flow", "link", "direction", "kind", "flowed_s")

NAMES: Final = tuple(one.name for one in fields(TrafficFigures) if one.name not in _SAYS_WHICH)
"""The names of the figures, as in tables and JSON."""

_TIMES: Final = tuple(name for name in NAMES if name.endswith("_s"))


def _milliseconds(figures: TrafficFigures, what: str) -> str:
    times = (getattr(figures, name) for name in _TIMES if name.startswith(what))
    return " ".join(f"{time_s * 1e3:.1f}" for time_s in times)


def of_records(records: Sequence[TrafficRecord]) -> list[TrafficFigures]:
    """Computes the figures of each flow."""
    return [_figures(one) for one in records]


def _figures(record: TrafficRecord) -> TrafficFigures:
    flowed_s = max(record.to_s - record.from_s, 0.0)
    sent, lost = record.sent_packets, record.lost_packets
    return TrafficFigures(
        flow=record.flow,
        link=record.link,
        direction=record.direction,
        kind=record.kind,
        flowed_s=flowed_s,
        goodput_bps=record.received_bytes * 8 / flowed_s if flowed_s else None,
        lost_ratio=min(lost / sent, 1.0) if sent and lost is not None else None,
        pages=record.pages,
        **{name: getattr(record, name) for name in _TIMES},
    )
