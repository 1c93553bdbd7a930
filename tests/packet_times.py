"""Compares each packet's time on a link with Lindley's recursion over the recorded rates.

The recursion of Lindley (1952) in work instead of time. The work of a rate until t is its integral
from the first change to t, in bit/s × ns. A frame of B bytes takes 8e9 B of it, beginning at its
arrival or at the end of the frame before, whichever is later:

    end(k) = max(end(k-1), work(arrival(k))) + 8e9 bytes(k)

It leaves at the first moment at which the work has reached its end. Work is a whole number at whole
nanoseconds, so nothing is rounded except that moment. The recursion shares no code with linklab.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from conftest import PROBES, lines
from linklab import scenario as scenarios
from linklab.core.ip_family import in_family
from linklab.core.link_state import DIRECTIONS, Direction
from linklab.lab.network.topology import SERVER_ADDRESS, link_paths

AIM_US = 2.0

_WORK_PER_BYTE = 8 * 10**9

Frames = list[tuple[int, int, int | str]]
"""What passed a place: time in ns, bytes, and number in the plan or digest."""


class Rates:
    """Holds a rate over time: pairs of time in ns and the rate in bit/s from then on, in the order of
    time. The last rate stays. Raises ValueError for times before the first pair."""

    def __init__(self, changes: Sequence[tuple[int, int]]) -> None:
        self._times = [t_ns for t_ns, _ in changes]
        self._rates = [rate_bps for _, rate_bps in changes]
        passed = ((b - a) * rate for (a, rate), (b, _) in pairwise(changes))
        self._work = list(accumulate(passed, initial=0))

    def work(self, t_ns: int) -> int:
        """Returns the work until a time."""
        number = bisect_right(self._times, t_ns) - 1
        if number < 0:
            raise ValueError(f"{t_ns} ns is before the first rate")
        return self._work[number] + self._rates[number] * (t_ns - self._times[number])

    def time_ns(self, work: int) -> int:
        """Returns the first whole nanosecond at which the work is done. Raises ValueError if it never
        is."""
        number = max(0, bisect_left(self._work, work) - 1)
        left, rate_bps = work - self._work[number], self._rates[number]
        if left and not rate_bps:
            raise ValueError("the link never sends this frame: its last rate is 0")
        return self._times[number] + (-(-left // rate_bps) if left else 0)


def departures_ns(frames: Iterable[tuple[int, int]], rates: Rates) -> Iterator[int]:
    """Yields when each frame leaves, of pairs of arrival in ns and bytes, in the order of service."""
    end = 0
    for arrival_ns, size_bytes in frames:
        end = max(end, rates.work(arrival_ns)) + size_bytes * _WORK_PER_BYTE
        yield rates.time_ns(end)


class Planned(NamedTuple):
    """A packet to send: time since the scenario began, index of the link, and bytes of the frame."""

    t_ns: int
    link: int
    direction: Direction
    frame_bytes: int


@dataclass(frozen=True)
class Packet:
    """A packet of the plan that passed its link. Times are in ns since the scenario began.

    It came to the access node's queue at `came_ns`. It left at `left_ns`, and by the recursion at
    `expected_ns`. Its host sent it at `sent_ns`, and the other one received it at `received_ns`, None
    if the link lost it elsewhere.
    """

    number: int
    came_ns: int
    left_ns: int
    expected_ns: int
    sent_ns: int
    received_ns: int | None

    @property
    def error_us(self) -> float:
        """How much later it left the queue than it should have."""
        return (self.left_ns - self.expected_ns) / 1e3

    def end_to_end_error_us(self, delay_ns: int) -> float:
        """How much later it was received than it should have been, over a constant delay."""
        assert self.received_ns is not None
        took_ns = self.received_ns - self.sent_ns
        return (took_ns - (self.expected_ns - self.came_ns) - delay_ns) / 1e3


@dataclass(frozen=True)
class Judged:
    """The packets of a link's direction, and how many were sent but not delivered."""

    packets: list[Packet]
    lost: int


def probe(file: Path, work: Path, packets: Sequence[Planned]) -> tuple[object, ...]:
    """Returns the words of `linklab` that send these packets over a scenario's links. Numbers count
    them in this order, which is that of time."""
    links = []
    for link in link_paths(scenarios.load(file).links).values():
        access, family = link.accesses[0], min(link.families)
        links.append(
            {
                "device": link.device,
                "near": access.down.interface,
                "far": access.up.interface,
                "end": link.server.interface,
                "address": in_family(SERVER_ADDRESS, family),
            }
        )
    plan = work / f"{file.stem}.plan.json"
    plan.write_text(json.dumps({"links": links, "packets": packets}))
    return (file, "--", "python3", PROBES / "packets.py", plan)


def recorded_rates(lines: Iterable[dict[str, Any]], link: str, direction: str) -> Rates:
    """Returns a link's rate as `links.jsonl` has it, 0 while it holds or loses everything."""
    changes = {}
    for line in lines:
        if line["link"] == link:
            loses = not line["up"] or line["blackout"]
            stops = loses or line[f"hold_{direction}"]
            rate_bps = 0 if stops else line[f"{direction}_rate_bps"]
            changes[round(line["t_s"] * 1e9)] = rate_bps
    return Rates(list(changes.items()))


def judge(run_dir: Path) -> dict[tuple[str, str], Judged]:
    """Returns the packets of each link and direction of a run of the probe."""
    states = lines(run_dir / "links.jsonl")
    names = list(dict.fromkeys(line["link"] for line in states))
    passed: dict[tuple[str, str, bool], Frames] = defaultdict(list)
    for line in (run_dir / "packets.jsonl").read_text().splitlines():
        link, place, left, t_ns, size, number = json.loads(line)
        passed[names[link], place, left].append((t_ns, size, number))
    found: dict[tuple[str, str], Judged] = {}
    for link in names:
        for direction in DIRECTIONS:
            path = ("device", "near", "far", "end")
            if direction == "down":
                path = path[::-1]
            frames = [passed[link, place, number in (0, 2)] for number, place in enumerate(path)]
            rates = recorded_rates(states, link, direction)
            found[link, direction] = _judge(frames, rates)
    return found


def _judge(places: Sequence[Frames], rates: Rates) -> Judged:
    """Matches what came to the queue with what left it. A frame that the access node itself made
    only leaves, so it is taken to come as it leaves."""
    sent, came, left, received = places
    arrivals: dict[int | str, deque[int]] = defaultdict(deque)
    for t_ns, _, number in came:
        arrivals[number].append(t_ns)
    served = [
        (arrivals[number].popleft() if arrivals[number] else t_ns, t_ns, size, number)
        for t_ns, size, number in left
    ]
    place = {number: at for at, (_, _, number) in enumerate(came)}
    served.sort(key=lambda one: place.get(one[3], -1))
    expected = departures_ns(((came_ns, size) for came_ns, _, size, _ in served), rates)
    starts = {number: t_ns for t_ns, _, number in sent}
    ends = {number: t_ns for t_ns, _, number in reversed(received)}
    packets = [
        Packet(number, came_ns, left_ns, expected_ns, starts[number], ends.get(number))
        for (came_ns, left_ns, _, number), expected_ns in zip(served, expected, strict=True)
        if isinstance(number, int)
    ]
    planned = sum(isinstance(number, int) for number in starts)
    return Judged(packets, planned - sum(one.received_ns is not None for one in packets))
