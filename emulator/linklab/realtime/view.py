"""Collects what the lab's page shows of a run, from its records.

It keeps the last minutes only, so its memory is bounded, whatever the run and the readers do.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from msgspec import UNSET

from linklab.core import units
from linklab.core.link_state import DIRECTIONS
from linklab.core.printable import printable
from linklab.core.records import EventRecord, LinkRecord, QueueRecord, Record
from linklab.metrics.links import LinkMetrics
from linklab.metrics.run import RunMetrics
from linklab.models import events, impairments, registry
from linklab.realtime import link_command, plan
from linklab.realtime.plan import LinkPlan
from linklab.scenario import LinkSettings, Scenario, link_words
from linklab.schema.rows import Row

MOST_SAMPLES: Final = 480
"""Four minutes of samples, at two a second."""

MOST_MARKS: Final = 300
"""The most events that are kept."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """What a reader has already: a run by its number and that of its starts, and how many of its
    items."""

    run: tuple[int, int] = (0, 0)
    samples: int = 0
    marks: int = 0
    planned: int = 0


class PageView:
    """What the page shows of one run, the `number`th of its lab."""

    def __init__(
        self, number: int, label: str, who: str, seed: int, scenario: Scenario, metrics: RunMetrics
    ) -> None:
        self._number = (number, 0)
        self._zero_s = 0.0
        self._carried_before: dict[tuple[str, str], int] = {}
        self._seed = seed
        self._scenario = scenario
        self._metrics = metrics
        self._about = {
            "label": label,
            "who": who,
            "seed": seed,
            "scenario": scenario.name,
            "title": scenario.title,
            "size": units.format_size(scenario.payload.size_bytes),
            "links": {
                name: {
                    "kind": link.kind.name,
                    "access_points": list(link.access_points),
                    "models": [registry.of_settings(one).rows[0].key for one in link.models],
                }
                for name, link in scenario.links.items()
            },
            "events": [
                {
                    "at_s": one.at_s,
                    "after": None
                    if one.after_bytes is None
                    else units.format_size(one.after_bytes),
                    "for_s": None if math.isinf(one.duration_s) else one.duration_s,
                    "link": one.link,
                    "words": events.in_words(one),
                }
                for one in scenario.events
            ],
            "plan_step_s": plan.STEP_S,
            "keys": {
                "": _said(events.CHANGES),
                **dict.fromkeys(impairments.KEYS.values(), _said(impairments.TABLE.flat)),
            },
            "presets": {
                name: {"title": one.title, "change": link_command.as_line(name)}
                for name, one in link_words.presets().items()
            },
        }
        self._plan = LinkPlan(scenario, seed)
        self._samples: deque[dict[str, Any]] = deque(maxlen=MOST_SAMPLES)
        self._marks: deque[dict[str, Any]] = deque(maxlen=MOST_MARKS)
        self._counts = {"samples": 0, "marks": 0}
        self._lost: dict[str, int] = {}
        self._last = (list(scenario.links)[-1], DIRECTIONS[-1])

    def take(self, record: Record) -> None:
        """Takes in a record, which the metrics have already."""
        match record:
            case QueueRecord(t_s=t_s) if t_s >= self._zero_s:
                way = record.link, record.direction
                before = record.sent_bytes if self._zero_s else 0
                self._carried_before.setdefault(way, before)
                if way == self._last:
                    self._samples.append(self._sample(t_s))
                    self._counts["samples"] += 1
            case EventRecord(kind=events.BEGUN_ANEW):
                self._begin_anew(record.t_s)
            case EventRecord():
                self._marks.append(
                    {
                        "t_s": record.t_s - self._zero_s,
                        "link": record.link,
                        "kind": record.kind,
                        "detail": printable(record.detail),
                    }
                )
                self._counts["marks"] += 1

    def _begin_anew(self, zero_s: float) -> None:
        """Forgets what was before the scenario's new start. The player writes a sample then."""
        self._number = (self._number[0], self._number[1] + 1)
        self._zero_s = zero_s
        self._carried_before = {}
        self._plan = LinkPlan(self._scenario, self._seed)
        self._samples.clear()
        self._marks.clear()
        self._counts = dict.fromkeys(self._counts, 0)

    def _carried(self, name: str, link: LinkMetrics) -> dict[str, int]:
        """Returns the bytes that a link has carried since the scenario's start, at the newest sample,
        by direction."""
        return {
            direction: 0
            if one.queue is None or (name, direction) not in self._carried_before
            else one.queue.sent_bytes - self._carried_before[name, direction]
            for direction, one in link.directions.items()
        }

    def since(self, cursor: Cursor) -> tuple[Cursor, dict[str, Any]]:
        """Returns what a reader does not have yet, and its new cursor."""
        is_new = cursor.run != self._number
        if is_new:
            cursor = Cursor(self._number)
        self._plan.extend(self._metrics.now_s - self._zero_s)
        first, planned = self._plan.since(cursor.planned)
        news: dict[str, Any] = {
            "samples": _latest(self._samples, self._counts["samples"] - cursor.samples),
            "marks": _latest(self._marks, self._counts["marks"] - cursor.marks),
        }
        if planned:
            news["plan"] = {"first": first, "rates": planned}
        if is_new:
            news["run"] = self._about
        counts = self._counts
        return (
            Cursor(self._number, counts["samples"], counts["marks"], first + len(planned)),
            news,
        )

    def _sample(self, t_s: float) -> dict[str, Any]:
        links = self._metrics.links.items()
        points = [self._point(name, link) for name, link in links]
        return {"t_s": t_s - self._zero_s, "links": points}

    def _point(self, name: str, link: LinkMetrics) -> list[float]:
        """Returns a link's downlink: capacity and use (bit/s), round trip without and with both
        queues (s), queue (bytes), loss ratio and packets lost since the last sample."""
        down = link.directions["down"]
        capacity, use, _ = down.last_second.per_second()
        state = link.state
        rtt_s = state.rtt_s if state else 0.0
        waits_s = sum(
            known.queue.queue_bytes * 8 / rate_bps
            for direction, known in link.directions.items()
            if known.queue is not None and state and (rate_bps := state.rate_bps(direction))
        )
        queued, lost = 0, 0
        if down.queue is not None:
            queued = down.queue.queue_bytes
            total = down.queue.lost_packets + down.queue.dropped_packets
            lost = total - self._lost.get(name, 0)
            self._lost[name] = total
        loss = state.lost_ratio("down") if state else 0.0
        ms = [round(one, 6) for one in (rtt_s, rtt_s + waits_s)]
        return [round(capacity * 8), round(use * 8), *ms, queued, round(loss, 6), lost]

    def _newest(self) -> Iterator[QueueRecord]:
        for link in self._metrics.links.values():
            yield from (one.queue for one in link.directions.values() if one.queue is not None)

    def now(self) -> dict[str, Any]:
        """Returns what the run and its links are at the newest recorded time."""
        metrics = self._metrics
        return {
            "t_s": metrics.now_s - self._zero_s,
            "progress": metrics.progress_ratio,
            "lateness_s": metrics.lateness_s,
            "keeps_up": metrics.keeps_up,
            "sampled_s": max((one.t_s for one in self._newest()), default=0.0),
            "links": {
                name: {
                    "up": state.up,
                    "out": state.is_out("down"),
                    "access_point": state.access_point,
                    "values": _values(state, self._scenario.links[name]),
                    "impaired": {
                        key: dict(impairments.in_words(state.impairments(direction)))
                        for direction, key in impairments.KEYS.items()
                    },
                    "by_hand": metrics.by_hand(name),
                    "bytes": self._carried(name, link),
                }
                for name, link in metrics.links.items()
                if (state := link.state) is not None
            },
        }


def _said(rows: Iterable[Row]) -> dict[str, str]:
    """Returns what can be changed, by the keys of scenarios. Impairments have keys of their own."""
    return {
        row.key: f"{row.about}; allowed: {row.value.allowed}"
        for row in rows
        if row.value is not impairments.TABLE
    }


def _values(state: LinkRecord, settings: LinkSettings) -> dict[str, tuple[float, str]]:
    """Returns what a link is now: each value in base units, and as a scenario has it."""
    queue = settings.queue_down_bytes if state.queue_bytes is UNSET else state.queue_bytes
    rtt_s, jitter_s = round(2 * state.delay_s, 6), round(state.jitter_s, 6)
    loss = round(state.loss_ratio, 6)
    return {
        "down": (state.down_rate_bps, units.format_rate(state.down_rate_bps)),
        "up": (state.up_rate_bps, units.format_rate(state.up_rate_bps)),
        "rtt": (rtt_s, units.format_duration(rtt_s)),
        "jitter": (jitter_s, units.format_duration(jitter_s)),
        "loss": (loss, units.format_ratio(loss)),
        "queue": (queue, units.format_size(queue)),
    }


def _latest(kept: deque[dict[str, Any]], wanted: int) -> list[dict[str, Any]]:
    return list(kept)[len(kept) - min(wanted, len(kept)) :]
