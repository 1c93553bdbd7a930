"""Turns the changes that a user made by hand in a live run into the events of a scenario.

The run directory has every command and the time at which the lab executed it. `linklab run` of the
made scenario changes the links at the same times.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import UNSET

from linklab.core.limits import MIN_LENGTH_S
from linklab.core.records import EventRecord, Tail
from linklab.energy import library as energy_models
from linklab.lab.player.control import Command, Inbox
from linklab.models import events
from linklab.models.events import BY_HAND, Event
from linklab.scenario import Scenario, to_yaml
from linklab.scenario.name import NAME
from linklab.scenario.named_files import with_files
from linklab.traces.recipes import TRACES


@dataclass(frozen=True, slots=True)
class Executed:
    """A command, and when the lab executed it, in seconds since the scenario's start."""

    at_s: float
    command: Command


def changes_of(run_dir: Path) -> list[Executed]:
    """Returns the changes by hand of a run that goes on or has ended. Raises RecordError, OSError."""
    commands = Inbox(run_dir).read()
    found = []
    for record in Tail(run_dir, EventRecord).read():
        number = record.command
        if record.kind == BY_HAND and number is not UNSET and 0 < number <= len(commands):
            command = commands[number - 1]
            if isinstance(command, Command):
                found.append(Executed(record.t_s, command))
    return found


def events_of(changes: Sequence[Executed]) -> list[Event]:
    """Returns what the changes do, as events. Pure.

    A link that becomes as the scenario says ends its earlier events.
    """
    made: list[Event] = []
    for change in changes:
        if not change.command.restore:
            made.append(replace(change.command.event(), at_s=change.at_s))
            continue
        made = [_ended(one, change) if one.link == change.command.link else one for one in made]
    return [one for one in made if one.duration_s >= MIN_LENGTH_S]


def _ended(event: Event, restored: Executed) -> Event:
    """Returns the event as it is if its link was restored at a later time. Pure."""
    assert event.at_s is not None
    return replace(event, duration_s=min(event.duration_s, restored.at_s - event.at_s))


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
    scenario: Scenario, changes: Sequence[Executed], name: str, title: str, base: Path | None = None
) -> str:
    """Writes the scenario with the changes, for a file called `name` in the directory `base`.

    Without `base`, paths of the user's traces, distributions and energy model are absolute. Raises ValueError if a
    scenario cannot have that name.
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
    return to_yaml(made)


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
