"""Plays a scenario's link models into a running lab, on absolute times.

The player tells each model what its link has carried, asks for the link's state, and applies the
difference. Then it sleeps until the next model is due. It also samples the queues and takes
commands while the lab runs. It records everything with the actual time.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
import math
import select
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, NamedTuple

from msgspec import UNSET, UnsetType

from linklab.core.frames import goodput_ratio
from linklab.core.limits import MAX_LATE_S
from linklab.core.link_state import DIRECTIONS, Direction, LinkState
from linklab.core.records import (
    FILES,
    EventRecord,
    LinkRecord,
    QueueRecord,
    SojournRecord,
    line,
)
from linklab.core.timer import Timer
from linklab.lab.network.hosts import LabError
from linklab.lab.network.lab import Lab
from linklab.lab.network.shaped_link import ShapedLink
from linklab.lab.player import control
from linklab.lab.player.connections import OpenConnections
from linklab.lab.player.control import Command, Inbox
from linklab.lab.player.signal_file import SignalFile
from linklab.lab.shaping import link_qdisc
from linklab.lab.shaping.tc import NO_COUNTERS, Counters, ShapingError
from linklab.links.stack import ScenarioLink
from linklab.models import events, registry
from linklab.models.events import Event
from linklab.models.layer import NO_LOAD, Load, Steps
from linklab.models.model import Happening
from linklab.scenario import SAMPLE_S

_AHEAD_S = 1.0
"""How far ahead the kernel gets rates that no load decides."""

_CLOSING_S = 0.05
"""How long the client's last frames may take to leave."""


@dataclass(frozen=True)
class Anew:
    """What a new start of the scenario in a running lab needs.

    Attributes:
        models: makes the links' models anew.
        programs: start the lab's own programs anew.
        stays: what cannot be set back, in words.
    """

    models: Callable[[], dict[str, ScenarioLink]]
    programs: Sequence[Callable[[], None]] = ()
    stays: Sequence[str] = ()


class _Known(NamedTuple):
    """A state that a link will have from `due_s` on, and what happens then. `order` sorts equal times."""

    due_s: float
    order: int
    link: str
    state: LinkState
    happenings: list[Happening]


class Player:
    """Plays `models` into a lab. It uses one thread, as a lab's netlink sockets require.

    It writes into `run_dir`: `links.jsonl` (every applied state, with the lateness `late_s`),
    `events.jsonl` (events in words) and, every `sample_s`, `queues.jsonl` (counters per link and
    direction). Each sample also flushes the files. With an `inbox` it takes commands. It calls
    `on_next` for the command that asks for the next algorithm, and begins the scenario `anew` for the
    one that sets the lab back. Unless `may_be_late`, a late change
    raises LabError. So does a time of `patience_s` in which no link carried a frame, or if other
    hosts use the links (`is_shared`), none of the client's.
    """

    def __init__(
        self,
        lab: Lab,
        models: dict[str, ScenarioLink],
        run_dir: Path,
        *,
        sample_s: float = SAMPLE_S,
        counts_payload: bool = False,
        signal: SignalFile | None = None,
        inbox: Inbox | None = None,
        on_next: Callable[[], None] = lambda: None,
        anew: Anew | None = None,
        may_be_late: bool = False,
        patience_s: float = math.inf,
        is_shared: bool = False,
    ) -> None:
        self._lab = lab
        self._models = models
        self._counts_payload = counts_payload
        self._signal = signal
        self._inbox = inbox
        self._on_next = on_next
        self._anew = anew
        self._at_zero: dict[tuple[str, str], Counters] = {}
        self._may_be_late = may_be_late
        self._patience_s = patience_s
        self._is_shared = is_shared
        self._carried_bytes, self._carried_s = 0, 0.0
        self._agenda: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = itertools.count()
        self._asked = dict.fromkeys(models, 0)
        self._connections = (
            OpenConnections(lab.client.pid, lab.families) if self._wants_connections else None
        )
        self._run_dir = run_dir
        self._links: IO[bytes] = (run_dir / FILES[LinkRecord]).open("wb")
        self._queues: IO[bytes] = (run_dir / FILES[QueueRecord]).open("wb")
        self._events: IO[bytes] = (run_dir / FILES[EventRecord]).open("wb")
        self._timer = Timer()
        self._start_ns = 0
        self._by_hand: dict[Event, str] = {}
        self._ahead: list[_Known] = []
        self._commands = 0
        self._samples, self._looks = Steps(sample_s), Steps(control.PERIOD_S)
        self.at(sample_s, self._sample)
        if inbox is not None:
            self.at(control.PERIOD_S, self._obey)

    @property
    def _wants_connections(self) -> bool:
        return any(model.wants_connections for model in self._models.values())

    def start(self) -> None:
        """Begins at scenario time zero: the next whole second of the monotonic clock.

        The phase between timers and packets must be the same in every run. A shift of 4 µs moved a
        download by 0.4 s.
        """
        self._start_ns = (time.monotonic_ns() // 1_000_000_000 + 1) * 1_000_000_000
        self._timer.set(self._start_ns)
        select.select([self._timer.fileno()], [], [])
        for name, link in self._lab.links.items():
            self._record(name, link.state, 0.0, 0.0)
            self._show_signal(link, link.state)
            self._ask_again(name, 0.0)

    def every(self, period_s: float, action: Callable[[float], None]) -> None:
        """Calls `action` with the scenario's time at whole multiples of the period from now on."""
        steps = Steps(period_s)

        def again(_: float) -> None:
            now_s = self.now_s()
            action(now_s)
            self.at(steps.after(now_s), again)

        self.at(steps.after(self.now_s()), again)

    def play(self, until: list[int]) -> list[int]:
        """Plays until a file descriptor is readable. Returns the readable ones."""
        while True:
            due_s = self._agenda[0][0]
            self._timer.set(self._start_ns + round(due_s * 1e9))
            readable, _, _ = select.select([*until, self._timer.fileno()], [], [])
            ready = [descriptor for descriptor in until if descriptor in readable]
            if ready:
                return ready
            heapq.heappop(self._agenda)[2](due_s)

    def play_until(self, t_s: float) -> None:
        with contextlib.closing(Timer()) as timer:
            timer.set(self._start_ns + round(t_s * 1e9))
            self.play([timer.fileno()])

    def let_out(self) -> None:
        """Plays until the uplinks have sent what closes the client's connections, or for 50 ms.

        The radio's energy counts from the last frame.
        """
        until_s = self.now_s() + _CLOSING_S
        links = self._lab.links.values()
        while self.now_s() < until_s and any(
            one.queue_counters("up").queue_packets for one in links
        ):
            self.play_until(self.now_s() + 0.001)

    def stop(self) -> None:
        """Takes the last sample, writes how long packets waited, and closes the files."""
        self._write_sample(0.0)
        self._write_sojourns()
        for file in (self._links, self._queues, self._events):
            file.close()
        self._timer.close()
        if self._connections is not None:
            self._connections.close()

    def now_s(self) -> float:
        """Returns the scenario time in seconds."""
        return (time.monotonic_ns() - self._start_ns) / 1e9

    @property
    def start_ns(self) -> int:
        """The scenario's start, in nanoseconds of the monotonic clock."""
        return self._start_ns

    def at(self, due_s: float, action: Callable[[float], None]) -> None:
        """Calls `action` with `due_s` at that time of the scenario."""
        heapq.heappush(self._agenda, (due_s, next(self._order), action))

    def _ask_again(self, name: str, now_s: float) -> None:
        """Schedules the model's next question. Cancels the one scheduled before."""
        self._asked[name] += 1
        if self._inbox is None and self._lab.links[name].shaper == link_qdisc.NAME:
            self._look_ahead(name, now_s)
        else:
            self._ask_when_due(name)

    def _ask_when_due(self, name: str) -> None:
        due_s = self._models[name].next_s()
        if math.isfinite(due_s):
            self.at(due_s, functools.partial(self._ask, name, self._asked[name]))

    def _look_ahead(self, name: str, now_s: float) -> None:
        """Hands the link's pace to the kernel, as far as it is known, and schedules what follows.

        It is known for a while, until a load decides it, or until a state differs in more.
        """
        model, link = self._models[name], self._lab.links[name]
        known = sorted(entry for entry in self._ahead if entry.link == name)
        state, count = known[-1].state if known else link.state, len(known)
        while (due_s := model.next_s()) <= now_s + _AHEAD_S:
            if model.wants_load or model.wants_connections:
                self._ask_when_due(name)
                break
            before, state = state, model.at(due_s)
            happenings = events.noted(model.begun(), model.ended())
            entry = _Known(due_s, next(self._order), name, state, happenings)
            known.append(entry)
            if not state.differs_only_in_pace(before):
                self.at(due_s, functools.partial(self._put_known, entry))
                break
            if state != before or happenings:
                heapq.heappush(self._ahead, entry)
        else:
            if math.isfinite(due_s):
                again = functools.partial(self._look, name, self._asked[name])
                self.at(due_s - _AHEAD_S / 2, again)
        if len(known) > count:
            link.follow([(self._start_ns + round(one.due_s * 1e9), one.state) for one in known])

    def _look(self, name: str, asked: int, now_s: float) -> None:
        if asked == self._asked[name]:
            self._pass(now_s)
            self._ask_again(name, now_s)

    def _put_known(self, known: _Known, now_s: float) -> None:
        self._put(known.link, known.state, known.happenings, now_s)
        self._ask_again(known.link, now_s)

    def _pass(self, t_s: float) -> None:
        """Records the states that the kernel has put links into until `t_s`."""
        while self._ahead and self._ahead[0].due_s <= t_s:
            known = heapq.heappop(self._ahead)
            link = self._lab.links[known.link]
            before, link.state = link.state, known.state
            self._record_change(known.link, before, known.state, known.happenings, known.due_s, 0.0)

    def _ask(self, name: str, asked: int, due_s: float) -> None:
        if asked == self._asked[name]:
            self._advance(name, due_s)

    def _advance(self, name: str, due_s: float, by_hand: Happening | None = None) -> None:
        """Asks the model for its link's state at `due_s` and applies it. `by_hand` is the user's change."""
        model = self._models[name]
        state = model.at(due_s, self._load(name) if model.wants_load else NO_LOAD)
        begun, ended = model.begun(), model.ended()
        self._put(name, state, events.noted(begun, ended), due_s, by_hand)
        for event in ended:
            if event in self._by_hand:
                words = self._by_hand.pop(event)
                self.write_event(due_s, name, Happening(events.BY_HAND_END, words))
        self._ask_again(name, due_s)

    def _put(
        self,
        name: str,
        state: LinkState,
        happenings: Iterable[Happening],
        due_s: float,
        by_hand: Happening | None = None,
    ) -> None:
        """Puts a link into `state`, and records that with what happened."""
        self._pass(due_s)
        link = self._lab.links[name]
        before = link.state
        if state != before:
            link.apply(state)
        if by_hand is not None:
            self.write_event(due_s, name, by_hand, self._commands)
        self._record_change(name, before, state, happenings, due_s, self.now_s() - due_s)

    def _record_change(
        self,
        name: str,
        before: LinkState,
        state: LinkState,
        happenings: Iterable[Happening],
        due_s: float,
        late_s: float,
    ) -> None:
        """Records the state that a link has since `due_s`, if it is another one, and what happened."""
        if state != before:
            self._record(name, state, due_s, late_s)
            if late_s > MAX_LATE_S and not self._may_be_late:
                raise LabError(
                    f"this machine cannot keep up: {name} changed {late_s:.3f} s late at "
                    f"{due_s:.3f} s (allowed: {MAX_LATE_S} s); use the virtual clock, or fewer runs "
                    "side by side"
                )
            self._show_signal(self._lab.links[name], state)
            for happening in registry.transitions(before, state):
                self.write_event(due_s, name, happening)
        for happening in happenings:
            self.write_event(due_s, name, happening)

    def _load(self, name: str) -> Load:
        link = self._lab.links[name]
        down, up = self._counters(name, "down"), self._counters(name, "up")
        received_bytes = 0.0
        if self._counts_payload:
            received_bytes = sum(
                (down if other is link else self._counters(named, "down")).sent_bytes
                * goodput_ratio(other.path.families)
                for named, other in self._lab.links.items()
            )
        connections: frozenset[int] = frozenset()
        if self._connections is not None and self._models[name].wants_connections:
            connections = self._connections.of(link.path.client_network, link.path.families)
        return Load(
            down_bytes=down.sent_bytes,
            down_packets=down.sent_packets,
            up_bytes=up.sent_bytes,
            up_packets=up.sent_packets,
            down_backlog_bytes=down.queue_bytes,
            up_backlog_bytes=up.queue_bytes,
            received_bytes=round(received_bytes),
            connections=connections,
        )

    def _counters(self, name: str, direction: Direction) -> Counters:
        """Returns the counters of a link's queue since the scenario's start."""
        now = self._lab.links[name].queue_counters(direction)
        before = self._at_zero.get((name, direction), NO_COUNTERS)
        return replace(
            now,
            sent_bytes=now.sent_bytes - before.sent_bytes,
            sent_packets=now.sent_packets - before.sent_packets,
        )

    def _obey(self, due_s: float) -> None:
        assert self._inbox is not None
        for command in self._inbox.read():
            self._commands += 1
            if isinstance(command, str):
                self._refuse(due_s, "", command)
            else:
                self._carry_out(command, due_s)
            for file in (self._links, self._events):
                file.flush()  # After the change: a reader of the event finds the link changed.
        self.at(self._looks.after(due_s), self._obey)

    def _carry_out(self, command: Command, due_s: float) -> None:
        if command.next:
            self.write_event(due_s, "", Happening("next"))
            self._on_next()
        elif command.begins_anew and self._anew is not None:
            self._begin_anew(self._anew, due_s)
        elif command.link not in self._models:
            self._refuse(due_s, "", f"no link is {command.link!r}")
        else:
            try:
                self._change(command, due_s)
            except ValueError as error:
                self._refuse(due_s, command.link, str(error))

    def _refuse(self, due_s: float, link: str, why: str) -> None:
        self.write_event(due_s, link, Happening(events.REFUSED, why), self._commands)

    def _change(self, command: Command, due_s: float) -> None:
        """Changes a link as a user asks. Raises ValueError if the scenario or the kernel cannot do it."""
        model, words = self._models[command.link], command.in_words()
        event = None
        if command.restore:
            model.restore()
        else:
            event = model.change(command.event(), due_s)
            self._by_hand[event] = words
        try:
            self._advance(command.link, due_s, Happening(events.BY_HAND, words))
        except ShapingError as error:
            if event is None:
                raise
            model.take_back(event)
            del self._by_hand[event]
            link = self._lab.links[command.link]
            link.apply(link.state)
            self._ask_again(command.link, due_s)
            raise ValueError(str(error)) from error

    def _begin_anew(self, anew: Anew, due_s: float) -> None:
        """Sets the lab back to the scenario's start, which is now. Times and counters of the records
        go on.

        Its connections end. Without that they would carry what they learnt into the new start.
        """
        for name in self._asked:
            self._asked[name] += 1  # What the old models asked for is off.
        for event, words in self._by_hand.items():
            self.write_event(due_s, event.link, Happening(events.BY_HAND_END, words))
        self._by_hand = {}
        for start in anew.programs:
            start()
        self._lab.abort_connections()
        self._models = anew.models()
        states = {name: model.at(0.0) for name, model in self._models.items()}
        before = {name: link.state for name, link in self._lab.links.items()}
        stays = [self._lab.links[name].begin_anew(state) for name, state in states.items()]
        zero_s = self.now_s()
        if not self._may_be_late:
            zero_s = math.floor(zero_s) + 1.0  # As `start`, in the same phase.
            self.play_until(zero_s)
        for name, link in self._lab.links.items():
            for direction in DIRECTIONS:
                self._at_zero[name, direction] = link.queue_counters(direction)
            self._models[name].zero_s = zero_s
            self._record_change(name, before[name], states[name], (), zero_s, 0.0)
            self._ask_again(name, zero_s)
        self._write_sample(0.0)
        self._queues.flush()
        words = ", ".join(filter(None, (*anew.stays, *stays)))
        self.write_event(zero_s, "", Happening(events.BEGUN_ANEW, words), self._commands)

    def _show_signal(self, link: ShapedLink, state: LinkState) -> None:
        if self._signal is not None:
            self._signal.show(link.path.device, state.signal_dbm)

    def _record(self, name: str, state: LinkState, due_s: float, late_s: float) -> None:
        self._links.write(line(LinkRecord.of(state, t_s=due_s, late_s=late_s, link=name)))

    def write_event(
        self, t_s: float, link: str, happening: Happening, command: int | UnsetType = UNSET
    ) -> None:
        """Records an event of a link, or of the lab (""), and the command that asked for it."""
        record = EventRecord(t_s, link, happening.kind, happening.detail, command)
        self._events.write(line(record))

    def _sample(self, due_s: float) -> None:
        carried_bytes = self._write_sample(self.now_s() - due_s)
        if self._is_shared:
            carried_bytes = self._client_bytes()
        if carried_bytes != self._carried_bytes:
            self._carried_bytes, self._carried_s = carried_bytes, due_s
        elif due_s - self._carried_s > self._patience_s:
            raise LabError(
                f"no link has carried anything for {self._patience_s:.0f} s: the client waits for ever"
            )
        self.at(self._samples.after(due_s), self._sample)

    def _client_bytes(self) -> int:
        """Returns the bytes that the client has received and sent over all links."""
        client = self._lab.client
        found = [client.interface(link.path.device) for link in self._lab.links.values()]
        return sum(one.received_bytes + one.sent_bytes for one in found)

    def _write_sample(self, late_s: float) -> int:
        """Writes every counter. Returns the sum of the carried bytes."""
        t_s = self.now_s()
        self._pass(t_s)
        carried_bytes = 0
        for name, link in self._lab.links.items():
            for direction, (queue, lost_packets) in link.counters().items():
                sampled = QueueRecord(
                    t_s=t_s,
                    late_s=late_s,
                    link=name,
                    direction=direction,
                    sent_bytes=queue.sent_bytes,
                    queue_bytes=queue.queue_bytes,
                    dropped_packets=queue.dropped_packets,
                    lost_packets=lost_packets,
                    discipline=dict(link.own_counters(direction)) or UNSET,
                )
                self._queues.write(line(sampled))
                carried_bytes += queue.sent_bytes
        for file in (self._links, self._queues, self._events):
            file.flush()
        return carried_bytes

    def _write_sojourns(self) -> None:
        t_s = self.now_s()
        lines = []
        for name, link in self._lab.links.items():
            for direction in DIRECTIONS:
                for number, counts in enumerate(link.sojourns(direction) or []):
                    while counts and not counts[-1]:
                        counts.pop()
                    if counts:
                        found = SojournRecord(
                            t_s=t_s,
                            link=name,
                            direction=direction,
                            scalable=number == 1,
                            buckets=counts,
                        )
                        lines.append(line(found))
        if lines:
            (self._run_dir / FILES[SojournRecord]).write_bytes(b"".join(lines))
