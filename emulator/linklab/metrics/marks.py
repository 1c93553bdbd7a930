"""What is otherwise with a link for some time, in words, for marks in graphs. Pure.

A series is there as long as something is so; its labels say what. What is over before Prometheus
has looked stays for a second.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from linklab.core.records import EventRecord
from linklab.metrics.links import Link, Links
from linklab.metrics.metric import Metric, Readings, declared
from linklab.models.events import BY_HAND, BY_HAND_END

SHOWN_S = 1.0
"""At least so long: as often as Prometheus asks."""


@dataclass
class _Mark:
    words: str
    begun_s: float
    ended_s: float | None = None

    def is_shown(self, now_s: float) -> bool:
        """Whether it is so, or was so for a moment that somebody is to see."""
        return self.ended_s is None or now_s < self.begun_s + SHOWN_S


@dataclass
class Marks:
    """What is otherwise with links now, from the records that it has been told so far."""

    links: Links
    now_s: float = 0.0
    _out: dict[str, _Mark] = field(default_factory=dict)
    _by_hand: dict[tuple[str, str], _Mark] = field(default_factory=dict)
    """By link and what of it was changed; a later change of the same takes an earlier one's place."""

    def event(self, t_s: float, record: EventRecord) -> None:
        """Takes in something that happened at `t_s`."""
        if record.kind not in (BY_HAND, BY_HAND_END):
            return
        for words in record.detail.split(", "):
            key = record.link, _about(words)
            if record.kind == BY_HAND:
                self._by_hand[key] = _Mark(words, t_s)
            elif key in self._by_hand and self._by_hand[key].words == words:
                self._by_hand[key].ended_s = t_s

    def pass_time(self, now_s: float) -> None:
        """It is `now_s` seconds after the scenario's beginning now, and links are as they are."""
        self.now_s = now_s
        for name, link in self.links.links.items():
            mark = self._out.get(name)
            if link.is_out and (mark is None or mark.ended_s is not None):
                self._out[name] = _Mark(self._why(name, link), now_s)
            elif not link.is_out and mark is not None and mark.ended_s is None:
                mark.ended_s = now_s

    def _why(self, name: str, link: Link) -> str:
        for what in ("down", "outage"):
            mark = self._by_hand.get((name, what))
            if mark is not None and mark.ended_s is None and _is_other(mark.words):
                return f"{mark.words}, by hand"
        return "down" if link.state is not None and not link.state.up else "out"

    def out(self) -> Readings:
        """Links over which nothing passes, and why."""
        for name, mark in self._out.items():
            if mark.is_shown(self.now_s):
                yield (name, mark.words), 1

    def by_hand(self) -> Readings:
        """What of links is as somebody wants it, and not as the scenario has it."""
        for (name, _), mark in self._by_hand.items():
            if mark.is_shown(self.now_s) and _is_other(mark.words):
                yield (name, mark.words), 1


def _about(words: str) -> str:
    """What a change is of, by its first word: "up" takes "down" back."""
    first = words.partition(" ")[0]
    return "down" if first == "up" else first


def _is_other(words: str) -> bool:
    """Whether it is otherwise than in the scenario for some time: a handover is over at once."""
    return words.partition(" ")[0] not in ("up", "handover")


OUT = Metric[Marks](
    "linklab_link_out",
    "gauge",
    "1 while nothing can pass over the link, and what is the matter with it.",
    Marks.out,
    ("link", "what"),
)

BY_HAND_NOW = Metric[Marks](
    "linklab_link_by_hand",
    "gauge",
    "1 while something of the link is as somebody wants it, and not as the scenario has it.",
    Marks.by_hand,
    ("link", "what"),
)

METRICS = declared(globals())
