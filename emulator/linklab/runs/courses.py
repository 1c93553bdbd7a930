"""What a run did over time: rates, capacity and requests, from its directory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from linklab.core import plain_file
from linklab.core.records import FILES, ClientRecord, LinkRecord, QueueRecord, Tail

MOST_STEPS: Final = 150
"""How many points a course has at most: as many as can be told apart on a screen."""

Course = list[tuple[float, float]]
"""Times in seconds and values, from each time to the next."""


class _Request(msgspec.Struct, frozen=True):
    """A line of `client.jsonl` as far as requests go."""

    t_ns: int
    event: str
    link: str = ""
    id: int = 0
    offset: int = 0
    length: int = 0
    bytes: int = 0
    outcome: str = ""
    wasted_bytes: int = 0
    taken_from: str = msgspec.field(default="", name="from")


@dataclass(frozen=True, slots=True)
class Range:
    """A range that was asked for: when, on which link, and what became of it.

    `outcome` is `complete`, `taken over` (another link fetched the rest), `failed`, `cancelled` or
    `unfinished`. `taken_from` is the link that it was taken from, "" if it was new.
    """

    number: int
    link: str
    start_s: float
    end_s: float
    offset: int
    asked_bytes: int
    got_bytes: int
    wasted_bytes: int
    outcome: str
    taken_from: str


def rates_bps(run_dir: Path, end_s: float, step_s: float) -> dict[str, Course]:
    """Of each link what it carried downwards, headers included, as the means of steps that begin at
    their times. Raises RecordError."""
    sent: dict[str, list[tuple[float, int]]] = {}
    for one in Tail(run_dir, QueueRecord).read():
        if one.direction == "down":
            sent.setdefault(one.link, [(0.0, 0)]).append((one.t_s, one.sent_bytes))
    return {link: _means(counts, end_s, step_s) for link, counts in sent.items()}


def step_s(end_s: float) -> float:
    """How long the steps of a course up to `end_s` are: as the lab's samples or longer."""
    return max(0.5, end_s / MOST_STEPS)


def _means(counts: Sequence[tuple[float, int]], end_s: float, step_s: float) -> Course:
    course: Course = []
    begin_s, begin = counts[0]
    for t_s, total in counts[1:]:
        if t_s - begin_s >= step_s * 0.99:
            course.append((begin_s, (total - begin) * 8 / (t_s - begin_s)))
            begin_s, begin = t_s, total
        if begin_s >= end_s:
            break
    return course


def capacities_bps(run_dir: Path, end_s: float, step_s: float) -> dict[str, Course]:
    """Of each link what it could have carried downwards, at the starts of steps. Raises
    RecordError."""
    states: dict[str, list[tuple[float, float]]] = {}
    for one in Tail(run_dir, LinkRecord).read():
        states.setdefault(one.link, []).append((one.t_s, one.rate_bps("down")))
    return {link: _sampled(changes, end_s, step_s) for link, changes in states.items()}


def _sampled(changes: Sequence[tuple[float, float]], end_s: float, step_s: float) -> Course:
    """The mean of what held in each step."""
    course: Course = []
    index, value = 0, 0.0
    for number in range(int(end_s / step_s) + 1):
        begin_s, last_s = number * step_s, (number + 1) * step_s
        area, since_s = 0.0, begin_s
        while index < len(changes) and changes[index][0] < last_s:
            at_s = max(changes[index][0], begin_s)
            area += value * (at_s - since_s)
            since_s, value = at_s, changes[index][1]
            index += 1
        course.append((begin_s, (area + value * (last_s - since_s)) / step_s))
    return course


def requests(run_dir: Path, shift_s: float, end_s: float) -> list[Range]:
    """The ranges that multilink asked for; none of other programs. Raises DecodeError."""
    try:
        lines = plain_file.read(run_dir / FILES[ClientRecord]).splitlines()
    except FileNotFoundError:
        return []
    decoder = msgspec.json.Decoder(_Request)
    events = [decoder.decode(line) for line in lines if b'"event":"sample"' not in line]
    return _ranges(events, shift_s, end_s)


def _ranges(events: Iterable[_Request], shift_s: float, end_s: float) -> list[Range]:
    asked: dict[int, _Request] = {}
    found = []
    for one in events:
        if one.event == "request":
            asked[one.id] = one
        elif one.event == "end" and one.id in asked:
            begun = asked.pop(one.id)
            short = one.outcome == "complete" and one.bytes < begun.length
            outcome = "taken over" if short else one.outcome
            found.append(_range(begun, one, outcome, shift_s + one.t_ns / 1e9, shift_s))
    found += [_range(begun, begun, "unfinished", end_s, shift_s) for begun in asked.values()]
    return sorted(found, key=lambda one: one.number)


def _range(begun: _Request, ended: _Request, outcome: str, end_s: float, shift_s: float) -> Range:
    return Range(
        number=begun.id,
        link=begun.link,
        start_s=shift_s + begun.t_ns / 1e9,
        end_s=end_s,
        offset=begun.offset,
        asked_bytes=begun.length,
        got_bytes=ended.bytes,
        wasted_bytes=ended.wasted_bytes,
        outcome=outcome,
        taken_from=begun.taken_from,
    )
