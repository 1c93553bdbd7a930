"""What is otherwise with a link for some time, in words, for marks in graphs. Pure.

A series says what in its labels, and is 1 as long as it is so. What is over before Prometheus has
looked stays for a second.
"""

from __future__ import annotations

from dataclasses import dataclass

from linklab.core.records import EventRecord
from linklab.metrics.links import AllLinkMetrics, LinkMetrics
from linklab.metrics.metric import Metric, Readings, declared
from linklab.models.events import BY_HAND, BY_HAND_END

SHOWN_S = 1.0
"""At least so long: as often as Prometheus asks."""


@dataclass
class _Mark:
    begun_s: float
    ended_s: float | None = None

    def is_shown(self, now_s: float) -> bool:
        """Whether it is so, or was so for a moment that somebody is to see."""
        return self.ended_s is None or now_s < self.begun_s + SHOWN_S


class Marks:
    """What is otherwise with links now, from the records that it has been told so far."""

    def __init__(self, links: AllLinkMetrics) -> None:
        self._links = links
        self._now_s = 0.0
        self._out: dict[tuple[str, str], _Mark] = {}
        self._by_hand: dict[tuple[str, str], _Mark] = {}
        self._in_force: dict[tuple[str, str], str] = {}
        """Somebody's words, by link and what of it was changed."""
        self._why_out: dict[str, str] = {}
        """What is the matter with links over which nothing passes."""

    def event(self, t_s: float, record: EventRecord) -> None:
        """Takes in something that happened at `t_s`."""
        if record.kind not in (BY_HAND, BY_HAND_END):
            return
        for words in record.detail.split(", "):
            about = record.link, _about(words)
            before = self._in_force.get(about)
            if record.kind == BY_HAND_END and before != words:
                continue  # Another has taken its place.
            if before is not None:
                del self._in_force[about]
                self._by_hand[record.link, before].ended_s = t_s
            if record.kind == BY_HAND and _lasts(words):
                self._in_force[about] = words
                self._by_hand[record.link, words] = _Mark(t_s)

    def pass_time(self, now_s: float) -> None:
        """It is `now_s` seconds after the scenario's beginning now, and links are as they are."""
        self._now_s = now_s
        for name, link in self._links.links.items():
            if link.is_out and name not in self._why_out:
                self._why_out[name] = self._why(name, link)
                self._out[name, self._why_out[name]] = _Mark(now_s)
            elif not link.is_out and name in self._why_out:
                self._out[name, self._why_out.pop(name)].ended_s = now_s

    def _why(self, name: str, link: LinkMetrics) -> str:
        for what in ("down", "outage"):
            if (name, what) in self._in_force:
                return f"{self._in_force[name, what]}, by hand"
        return "down" if link.state is not None and not link.state.up else "out"

    def out(self) -> Readings:
        """Whether nothing passes over links, and why."""
        for names, mark in self._out.items():
            yield names, float(mark.is_shown(self._now_s))

    def by_hand(self) -> Readings:
        """Whether links are as somebody wanted them."""
        for names, mark in self._by_hand.items():
            yield names, float(mark.is_shown(self._now_s))


def _about(words: str) -> str:
    """What a change is of, by its first word: "up" takes "down" back."""
    first = words.partition(" ")[0]
    return "down" if first == "up" else first


def _lasts(words: str) -> bool:
    """Whether it is otherwise than in the scenario for some time: a handover is over at once."""
    return words.partition(" ")[0] not in ("up", "handover")


OUT = Metric[Marks](
    "linklab_link_out",
    "gauge",
    "Whether nothing can pass over the link, and what is the matter with it.",
    Marks.out,
    ("link", "what"),
)

CHANGED = Metric[Marks](
    "linklab_link_by_hand",
    "gauge",
    "Whether something of the link is as somebody wanted it, and not as the scenario has it.",
    Marks.by_hand,
    ("link", "what"),
)

METRICS = declared(globals())
