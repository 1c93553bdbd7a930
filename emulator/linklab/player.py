"""Plays a scenario's changes into a running lab, timed absolutely.

Also works the gates of very slow links and samples the queues. Everything it
does is written down with the time at which it really happened.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import select
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO

import msgspec

from linklab.lab import Lab
from linklab.linkmodel import Change, LinkState
from linklab.shaping import GATE_OPEN_S, RateQueue
from linklab.timer import Timer

SAMPLE_PERIOD_S = 0.5
"""How often the queues' counters are read."""

_encoder = msgspec.json.Encoder()


class Player:
    """Applies changes to a lab; single-threaded, as a lab's netlink sockets are.

    Writes `links.jsonl` (every state as applied, with `late_s`, the time by which
    it came late) and `queues.jsonl` (counters per link and direction) into `run_dir`.
    """

    def __init__(self, lab: Lab, changes: list[Change], run_dir: Path) -> None:
        self._lab = lab
        self._agenda: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = itertools.count()
        self._links: IO[bytes] = (run_dir / "links.jsonl").open("wb", buffering=0)
        self._queues: IO[bytes] = (run_dir / "queues.jsonl").open("wb", buffering=0)
        self._timer = Timer()
        self._start_ns = 0
        for change in changes:
            self._at(change.t_s, functools.partial(self._apply, change))
        self._at(SAMPLE_PERIOD_S, self._sample)

    def start(self) -> None:
        """Begins at scenario time zero: the next whole second of the monotonic clock.

        Booting reads the clock more often on one machine than on another, 256 virtual ns
        each. The phase between timers and packets must not depend on that: 4 µs moved a
        download by 0.4 s.
        """
        self._timer.set((time.monotonic_ns() // 1_000_000_000 + 1) * 1_000_000_000)
        select.select([self._timer.fileno()], [], [])
        self._start_ns = time.monotonic_ns()
        for name, link in self._lab.links.items():
            self._record(name, link.state, 0.0, 0.0)
            for queue in link.queues.values():
                self._open_next(queue, queue.changes, 0.0)

    def play(self, until: list[int]) -> list[int]:
        """Plays until one of the file descriptors is readable; returns those that are."""
        while True:
            due_s = self._agenda[0][0]
            self._timer.set(self._start_ns + round(due_s * 1e9))
            readable, _, _ = select.select([*until, self._timer.fileno()], [], [])
            ready = [descriptor for descriptor in until if descriptor in readable]
            if ready:
                return ready
            heapq.heappop(self._agenda)[2](due_s)

    def stop(self) -> None:
        """Takes the last sample and closes the files."""
        self._write_sample()
        self._links.close()
        self._queues.close()
        self._timer.close()

    def now_s(self) -> float:
        """Scenario time in seconds."""
        return (time.monotonic_ns() - self._start_ns) / 1e9

    def _at(self, due_s: float, action: Callable[[float], None]) -> None:
        heapq.heappush(self._agenda, (due_s, next(self._order), action))

    def _apply(self, change: Change, due_s: float) -> None:
        link = self._lab.links[change.link]
        before = {direction: queue.changes for direction, queue in link.queues.items()}
        link.apply(change.state)
        self._record(change.link, change.state, due_s, self.now_s() - due_s)
        for direction, queue in link.queues.items():
            if queue.changes != before[direction]:  # Else its gate is being worked already.
                self._open_next(queue, queue.changes, due_s)

    def _open_next(self, queue: RateQueue, changes: int, since_s: float) -> None:
        """Lets one frame through a period from `since_s`, and so on until the rate changes."""
        period_s = queue.gate_period_s
        if period_s is None or queue.changes != changes:
            return

        def open_gate(due_s: float) -> None:
            if queue.changes == changes:
                queue.open_gate()
                self._at(due_s + GATE_OPEN_S, close_gate)

        def close_gate(due_s: float) -> None:
            if queue.changes == changes:
                queue.close_gate()
                self._open_next(queue, changes, due_s - GATE_OPEN_S)

        self._at(since_s + period_s, open_gate)

    def _record(self, name: str, state: LinkState, due_s: float, late_s: float) -> None:
        line = {"t_s": due_s, "late_s": late_s, "link": name, **asdict(state)}
        self._links.write(_encoder.encode(line) + b"\n")

    def _sample(self, due_s: float) -> None:
        self._write_sample()
        self._at(due_s + SAMPLE_PERIOD_S, self._sample)

    def _write_sample(self) -> None:
        t_s = self.now_s()
        lines = []
        for name, link in self._lab.links.items():
            for direction, queue in link.queues.items():
                counted = queue.statistics()
                lines.append({
                    "t_s": t_s,
                    "link": name,
                    "direction": direction,
                    "sent_bytes": counted.sent_bytes,
                    "queue_bytes": counted.queue_bytes,
                    "dropped_packets": counted.dropped_packets,
                    "lost_packets": link.delays[direction].statistics().dropped_packets,
                })  # fmt: skip
        self._queues.write(b"".join(_encoder.encode(line) + b"\n" for line in lines))
