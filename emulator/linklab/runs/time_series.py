"""Reads a run's time series from its directory: rates, capacity and requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from linklab.core.link_state import Direction
from linklab.core.records import ClientRecord, LinkRecord, QueueRecord, RequestRecord, Tail
from linklab.runs.requests import RangeRequest, of_records, of_server

MOST_STEPS: Final = 150
"""The most points of a series. More could not be told apart on a screen."""

TimeSeries = list[tuple[float, float]]
"""Pairs of a time in seconds and the value that holds until the next time."""


@dataclass(frozen=True, slots=True)
class Range:
    """Holds one requested range.

    `outcome` is `complete`, `taken over` (another link fetched the rest), `failed`, `cancelled` or
    `unfinished`. `taken_from` is the link that it was taken from, "" for a new range.
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


def rates_bps(
    run_dir: Path, end_s: float, step_s: float, direction: Direction
) -> dict[str, TimeSeries]:
    """Returns the rate of each link in a direction, headers included, as means over steps. Times
    are the steps' starts. Raises RecordError."""
    sent: dict[str, list[tuple[float, int]]] = {}
    for one in Tail(run_dir, QueueRecord).read():
        if one.direction == direction:
            sent.setdefault(one.link, [(0.0, 0)]).append((one.t_s, one.sent_bytes))
    return {link: _means(counts, end_s, step_s) for link, counts in sent.items()}


def step_s(end_s: float) -> float:
    """Returns the length of steps of a series up to `end_s`, at least that of the lab's samples."""
    return max(0.5, end_s / MOST_STEPS)


def _means(counts: Sequence[tuple[float, int]], end_s: float, step_s: float) -> TimeSeries:
    series: TimeSeries = []
    begin_s, begin = counts[0]
    for t_s, total in counts[1:]:
        if t_s - begin_s >= step_s * 0.99:
            series.append((begin_s, (total - begin) * 8 / (t_s - begin_s)))
            begin_s, begin = t_s, total
        if begin_s >= end_s:
            break
    return series


def capacities_bps(
    run_dir: Path, end_s: float, step_s: float, direction: Direction
) -> dict[str, TimeSeries]:
    """Returns the capacity of each link in a direction, as means over steps. Times are the steps'
    starts. Raises RecordError."""
    states: dict[str, list[tuple[float, float]]] = {}
    for one in Tail(run_dir, LinkRecord).read():
        states.setdefault(one.link, []).append((one.t_s, one.rate_bps(direction)))
    return {link: _sampled(changes, end_s, step_s) for link, changes in states.items()}


def _sampled(changes: Sequence[tuple[float, float]], end_s: float, step_s: float) -> TimeSeries:
    """Returns the mean value in each step."""
    series: TimeSeries = []
    index, value = 0, 0.0
    for number in range(int(end_s / step_s) + 1):
        begin_s, last_s = number * step_s, (number + 1) * step_s
        area, since_s = 0.0, begin_s
        while index < len(changes) and changes[index][0] < last_s:
            at_s = max(changes[index][0], begin_s)
            area += value * (at_s - since_s)
            since_s, value = at_s, changes[index][1]
            index += 1
        series.append((begin_s, (area + value * (last_s - since_s)) / step_s))
    return series


def requests(run_dir: Path, shift_s: float, end_s: float, size_bytes: int) -> list[Range]:
    """Returns the ranges that the program requested on known links (`all_requests`). Raises
    RecordError."""
    found = all_requests(run_dir, shift_s, size_bytes)
    return [_range(one, end_s) for one in found if one.link]


def all_requests(run_dir: Path, shift_s: float, size_bytes: int) -> list[RangeRequest]:
    """Returns multilink's requests, and of another program those that the lab's server answered. A
    server of the user's records none. Raises RecordError."""
    records = Tail(run_dir, ClientRecord).read()
    if records:
        return of_records(records, shift_s)
    return of_server(Tail(run_dir, RequestRecord).read(), size_bytes)


def _range(one: RangeRequest, end_s: float) -> Range:
    return Range(
        number=one.id,
        link=one.link,
        start_s=one.start_s,
        end_s=end_s if one.end_s is None else one.end_s,
        offset=one.offset,
        asked_bytes=one.length,
        got_bytes=one.bytes,
        wasted_bytes=one.wasted_bytes,
        outcome="taken over" if one.is_taken_over else one.outcome or "unfinished",
        taken_from=one.from_link or "",
    )
