"""Defines the metrics that mark spans in graphs: outages and changes by hand. Pure.

A label describes the change. The value is 1 while it lasts. Shorter changes stay visible for a
second, because Prometheus scrapes once a second.
"""

from __future__ import annotations

from dataclasses import dataclass

from linklab.core.records import EventRecord
from linklab.metrics.links import AllLinkMetrics, LinkMetrics
from linklab.metrics.metric import Metric, Readings, declared
from linklab.models.events import BY_HAND, BY_HAND_END

SHOWN_S = 1.0
"""The least time that a mark is visible: the scrape interval."""


@dataclass
class _Mark:
    begun_s: float
    ended_s: float | None = None

    def is_shown(self, now_s: float) -> bool:
        """Tells whether the change lasts, or ended less than SHOWN_S after its start."""
        return self.ended_s is None or now_s < self.begun_s + SHOWN_S


class Marks:
    """Tracks outages and manual changes of links."""

    def __init__(self, links: AllLinkMetrics) -> None:
        self._links = links
        self._now_s = 0.0
        self._out: dict[tuple[str, str], _Mark] = {}
        self._by_hand: dict[tuple[str, str], _Mark] = {}
        self._in_force: dict[tuple[str, str], str] = {}
        """The user's command words, by link and by the property that was changed."""
        self._why_out: dict[str, str] = {}
        """The reason for each current outage, by link."""

    def event(self, t_s: float, record: EventRecord) -> None:
        """Takes in an event of time `t_s`."""
        if record.kind not in (BY_HAND, BY_HAND_END):
            return
        for words in record.detail.split(", "):
            about = record.link, _about(words)
            before = self._in_force.get(about)
            if record.kind == BY_HAND_END and before != words:
                continue  # A later change replaced this one.
            if before is not None:
                del self._in_force[about]
                self._by_hand[record.link, before].ended_s = t_s
            if record.kind == BY_HAND and _lasts(words):
                self._in_force[about] = words
                self._by_hand[record.link, words] = _Mark(t_s)

    def pass_time(self, now_s: float) -> None:
        """Moves to `now_s` seconds since the scenario's start, with the links' current states."""
        self._now_s = now_s
        for name, link in self._links.links.items():
            if link.is_out and name not in self._why_out:
                self._why_out[name] = self._why(name, link)
                self._out[name, self._why_out[name]] = _Mark(now_s)
            elif not link.is_out and name in self._why_out:
                self._out[name, self._why_out.pop(name)].ended_s = now_s

    def _why(self, name: str, link: LinkMetrics) -> str:
        for what in ("carrier", "outage"):
            if (name, what) in self._in_force:
                return f"{self._in_force[name, what]}, by hand"
        return "down" if link.state is not None and not link.state.up else "out"

    def in_force(self, link: str) -> list[str]:
        """Returns the values of a link that a user has set, in words."""
        return [words for (name, _), words in self._in_force.items() if name == link]

    def out(self) -> Readings:
        """Yields the outages with their reasons."""
        for names, mark in self._out.items():
            yield names, float(mark.is_shown(self._now_s))

    def by_hand(self) -> Readings:
        """Yields the changes by hand."""
        for names, mark in self._by_hand.items():
            yield names, float(mark.is_shown(self._now_s))


def _about(words: str) -> str:
    """Returns the key that a command changes, its first word."""
    return words.partition(" ")[0]


def _lasts(words: str) -> bool:
    """Tells whether a command's effect lasts. A handover is over at once, a restored link is not
    changed, and the end of an outage leaves none."""
    return not words.startswith(("carrier up", "outage false", "handover", "as "))


OUT = Metric[Marks](
    "linklab_link_out",
    "Whether nothing can pass over the link, and what is the matter with it.",
    Marks.out,
    ("link", "what"),
)

CHANGED = Metric[Marks](
    "linklab_link_by_hand",
    "Whether a user has set a value of the link that the scenario does not have.",
    Marks.by_hand,
    ("link", "what"),
)

METRICS = declared(globals())
