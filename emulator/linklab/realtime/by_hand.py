"""Turns the changes that a user made by hand in a live run into the events of a scenario.

The run directory has every command and the time at which the lab executed it. `linklab run` of the
made scenario changes the links at the same times, and lasts until the last change has had its effect.

If nobody downloads in the lab (`--listen-proxy`), its clock runs while nothing happens. Then the made
scenario begins with the first traffic or change.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import UNSET

from linklab.core import units
from linklab.core.frames import FRAME_BYTES
from linklab.core.limits import MAX_PAYLOAD_BYTES, MAX_SENT_BYTES, MAX_TIME_S, MIN_LENGTH_S
from linklab.core.records import EventRecord, QueueRecord, Tail
from linklab.energy import library as energy_models
from linklab.lab.player.control import Command, Inbox
from linklab.links import oracle
from linklab.models import events, trace
from linklab.models.events import BEGUN_ANEW, BY_HAND, Event
from linklab.models.trace import Trace
from linklab.scenario import Scenario, to_yaml
from linklab.scenario.name import NAME
from linklab.scenario.named_files import with_files
from linklab.traces.library import TRACES

_AFTER_S = 1.0
"""How long a made scenario lasts after the last change, so that the change shows."""

_MARGIN = 1.25
"""The payload's margin, since models with another seed may carry more."""


@dataclass(frozen=True, slots=True)
class Executed:
    """A command, and when the lab executed it, in seconds since the scenario's start."""

    at_s: float
    command: Command


def changes_of(run_dir: Path) -> list[Executed]:
    """Returns the changes by hand of a run that goes on or has ended, since the scenario's last start
    in it. Raises RecordError, OSError."""
    commands, begun_s = Inbox(run_dir).read(), _begun_s(run_dir)
    found = []
    for record in Tail(run_dir, EventRecord).read():
        number = record.command
        if record.t_s < begun_s:
            continue
        if record.kind == BY_HAND and number is not UNSET and 0 < number <= len(commands):
            command = commands[number - 1]
            if isinstance(command, Command):
                found.append(Executed(_rounded(record.t_s - begun_s), command))
    return found


def _begun_s(run_dir: Path) -> float:
    """Returns the time of the scenario's last start in a run. Raises RecordError, OSError."""
    times = [one.t_s for one in Tail(run_dir, EventRecord).read() if one.kind == BEGUN_ANEW]
    return times[-1] if times else 0.0


def events_of(changes: Sequence[Executed]) -> list[Event]:
    """Returns what the changes do, as events. Pure.

    A link that becomes as the scenario says ends its earlier events.
    """
    made: list[Event] = []
    for change in changes:
        if not change.command.restore:
            made.append(replace(change.command.event(), at_s=_rounded(change.at_s)))
            continue
        made = [_ended(one, change) if one.link == change.command.link else one for one in made]
    return [one for one in made if one.duration_s >= MIN_LENGTH_S]


def _ended(event: Event, restored: Executed) -> Event:
    """Returns the event as it is if its link was restored at a later time. Pure."""
    assert event.at_s is not None
    return replace(event, duration_s=min(event.duration_s, _rounded(restored.at_s - event.at_s)))


def _rounded(time_s: float) -> float:
    """Returns a time in whole nanoseconds, as the lab plays it: 124.3 for 124.30000000000001."""
    return round(time_s, 9)


def zero_s(run_dir: Path, changes: Sequence[Executed]) -> float:
    """Returns when the first traffic or change was in a run without a download. Raises RecordError,
    OSError.

    Traffic is more than a frame between two samples, since hosts look for their neighbours.
    """
    first_s, begun_s = min((one.at_s for one in changes), default=0.0), _begun_s(run_dir)
    seen: dict[tuple[str, str], tuple[float, int]] = {}
    for record in Tail(run_dir, QueueRecord).read():
        at_s, way = record.t_s - begun_s, (record.link, record.direction)
        if at_s < 0:
            continue
        if at_s >= first_s:
            break
        before_s, before_bytes = seen.get(way, (0.0, record.sent_bytes if begun_s else 0))
        if record.sent_bytes - before_bytes > FRAME_BYTES:
            return _rounded(before_s)
        seen[way] = (at_s, record.sent_bytes)
    return _rounded(first_s)


def merged(scenario: Scenario, changes: Sequence[Executed]) -> tuple[Event, ...]:
    """Returns the scenario's events and those by hand, in order of time. Pure.

    At equal times the events by hand come last, as in the lab.
    """
    timed = [one for one in (*scenario.events, *events_of(changes)) if one.at_s is not None]
    ordered = sorted(timed, key=lambda one: one.at_s or 0.0)
    found = [one for one in scenario.events if one.at_s is None]
    for event in ordered:
        found.append(_fitting(scenario, found, event))
    return tuple(found)


def _fitting(scenario: Scenario, earlier: Sequence[Event], event: Event) -> Event:
    """Returns the event with the jitter that its link has in the lab: at most half the round trip."""
    if event.rtt_s is None and event.jitter_s is None:
        return event
    link = scenario.links[event.link]
    changes = (*events.in_force(earlier, event), event)
    rtt_s, jitter_s = events.round_trip(link.rtt_s, link.jitter_s, changes)
    return event if jitter_s <= rtt_s / 2 else replace(event, jitter_s=rtt_s / 2)


def saved(
    scenario: Scenario,
    changes: Sequence[Executed],
    name: str,
    title: str,
    base: Path | None = None,
    *,
    seed: int = 1,
    from_s: float = 0.0,
) -> str:
    """Writes the scenario with the changes, for a file called `name` in the directory `base`.

    It begins `from_s` after the run's start. Without `base`, paths of the user's traces, distributions
    and energy model are absolute. Raises ValueError if no scenario can have that name or that length.
    """
    NAME.parse(name)
    moved = with_files(scenario, lambda _, file: _named(file, base))
    made = replace(
        moved,
        name=name,
        title=title,
        events=merged(scenario, changes),
        energy=scenario.energy and _energy(scenario.energy, scenario, base),
    )
    made = begun_at(made, from_s)
    return to_yaml(lasting(made, _needed_s(changes, from_s), seed))


def begun_at(scenario: Scenario, from_s: float) -> Scenario:
    """Returns the scenario as it goes on `from_s` after its start. Pure.

    Traces and events go on. All other models begin anew.
    """
    if not from_s:
        return scenario
    links = {
        name: link
        if (played := link.model(Trace)) is None
        else link.having(trace.from_moment(played, from_s))
        for name, link in scenario.links.items()
    }
    going = [_from(event, from_s) for event in scenario.events]
    kept = tuple(one for one in going if one.duration_s >= MIN_LENGTH_S)
    since = f"Time 0 is {units.format_duration(from_s)} of the live lab."
    return replace(scenario, links=links, events=kept, description=_said(scenario, since))


def _from(event: Event, from_s: float) -> Event:
    """Returns an event as it is from a time on. One that was over has no duration."""
    if event.at_s is None:
        return event
    gone_s = max(from_s - event.at_s, 0.0)
    return replace(
        event,
        at_s=_rounded(max(event.at_s - from_s, 0.0)),
        duration_s=max(_rounded(event.duration_s - gone_s), 0.0),
    )


def _needed_s(changes: Sequence[Executed], from_s: float) -> float:
    """Returns how long a scenario lasts in which all these changes happen. Raises ValueError."""
    ends = [
        one.at_s + (0.0 if math.isinf(one.duration_s) else one.duration_s)
        for one in events_of(changes)
        if one.at_s is not None
    ]
    needed_s = max(ends, default=from_s) - from_s
    if needed_s > MAX_TIME_S:
        raise ValueError(
            f"the last change ends {units.format_duration(_rounded(needed_s))} after time 0; allowed: "
            f"up to {units.format_duration(MAX_TIME_S)}, so choose a later time 0"
        )
    return needed_s + _AFTER_S if needed_s > 0 else 0.0


def lasting(scenario: Scenario, needed_s: float, seed: int) -> Scenario:
    """Returns the scenario with a payload that lasts at least so long, by every client. Pure."""
    workload, size = scenario.workload, scenario.payload.size_bytes
    player = workload.player
    if player is not None and player.length_s is not None:
        longer = max(needed_s / player.length_s, 1.0)
        wanted = size * longer
        player = replace(player, length_s=player.length_s * longer)
    elif player is not None:
        wanted = player.mean_rate_bps(size) * needed_s / 8
    elif workload.paced is not None:
        wanted = workload.paced.rate_bps * (needed_s + workload.paced.every_s) / 8
    elif workload.rounds is not None and workload.rounds.think_s:
        wanted = workload.rounds.answer_bytes * (needed_s / workload.rounds.think_s + 1)
    else:
        wanted = oracle.carried_bytes(scenario, needed_s, seed) * _MARGIN
    most = MAX_SENT_BYTES if workload.sends else MAX_PAYLOAD_BYTES
    grown = min(_two_digits(wanted), most)
    if grown <= size:
        return scenario
    why = f"The payload was {units.format_size(size)}; all changes happen while this one comes."
    return replace(
        scenario,
        payload=replace(scenario.payload, size_bytes=grown, sha256=None),
        workload=replace(workload, player=player),
        description=_said(scenario, why),
    )


def _said(scenario: Scenario, more: str) -> str:
    return f"{scenario.description} {more}".strip()


def _two_digits(value: float) -> int:
    """Rounds up to a number of two digits and zeros."""
    step = int(10 ** max(len(str(math.ceil(value))) - 2, 0))
    return math.ceil(value / step) * step


def _named(file: Path, base: Path | None) -> Path:
    """Returns a trace's name if linklab ships it, else its path."""
    ships = file.parent.resolve() == TRACES.resolve()
    return Path(file.stem) if ships else _path(file, base)


def _energy(named: str, scenario: Scenario, base: Path | None) -> str:
    """Returns an energy model's name if linklab ships it, else its path."""
    if named in energy_models.names() or scenario.path is None:
        return named
    return str(_path(scenario.path.parent / named, base))


def _path(file: Path, base: Path | None) -> Path:
    absolute = file.resolve()
    return absolute if base is None else Path(os.path.relpath(absolute, base.resolve()))
