"""Sends changes to a running lab, as commands in a file of the run directory.

`linklab link` and `linklab next` append lines to `control.jsonl`. The player reads new lines ten
times a second. It writes into `events.jsonl` what became of them. Both are files because both guest
and host see them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from linklab.core import plain_file
from linklab.core.bounded import Name, Seconds
from linklab.core.records import EventRecord, Tail
from linklab.models import events
from linklab.models.events import REFUSED, Event

FILE = "control.jsonl"

PERIOD_S = 0.1
"""The interval in which a running lab reads commands."""

ANSWER_S = 4.0
"""The longest wait for the lab to execute a command. Clients wait 10 s for the lab's answer."""

ANEW_S = 8.0
"""The same for a new start of the scenario, which also starts programs."""

_POLL_S = 0.02

RESTORED = "as the scenario says"
"""What becomes of a link whose changes are taken back."""

_HINTS = get_type_hints(Event, include_extras=True)
_Change: Any = msgspec.defstruct(
    "_Change",
    [(row.attribute, _HINTS[row.attribute], row.unset) for row in events.CHANGES],
    module=__name__,
    frozen=True,
)
"""The attributes of an event that say what it changes."""


class Command(_Change, frozen=True, omit_defaults=True, forbid_unknown_fields=True):  # type: ignore[misc, call-arg]
    """Describes a change of `link` from now on, with the attributes of an event.

    `restore` takes back what earlier commands did to the link, before its own changes. Without a link
    it sets the lab back to the scenario's start. `next` goes on to the next
    algorithm of a live lab, or to `algorithm`. `pause` has it begin no further download, or go on.
    """

    link: Name = ""
    duration_s: Seconds | None = None
    next: bool = False
    restore: bool = False
    algorithm: Name | None = None
    pause: bool | None = None

    @property
    def begins_anew(self) -> bool:
        """Whether the command sets the lab back to the scenario's start."""
        return self.restore and not self.link

    def parts(self) -> list[Command]:
        """Returns the command as commands that each do one thing: restore a link, or change it."""
        restored = Command(link=self.link, restore=True)
        if not self.restore or self == restored:
            return [self]
        return [restored, msgspec.structs.replace(self, restore=False)]

    def in_words(self) -> str:
        """Describes the change, such as "down 10 Mbit/s, loss 1 %" (`events.in_words`)."""
        return RESTORED if self.restore else events.in_words(self.event())

    def event(self) -> Event:
        changed = {row.attribute: getattr(self, row.attribute) for row in events.CHANGES}
        span_s = math.inf if self.duration_s is None else self.duration_s
        return Event(self.link, duration_s=span_s, **changed)


def send(run_dir: Path, command: Command) -> int:
    """Appends a command for the lab that runs in `run_dir`. Returns its number, from 1.

    One thread at a time may send.
    """
    line = msgspec.json.encode(command) + b"\n"
    with plain_file.appending(run_dir / FILE) as file:
        file.write(line)
    return plain_file.read(run_dir / FILE).count(b"\n")


def wait_until_executed(
    run_dir: Path,
    number: int,
    patience_s: float = ANSWER_S,
    goes_on: Callable[[], bool] = lambda: True,
) -> EventRecord | None:
    """Waits until the lab has executed a command. Returns its record, None if there is none within
    `patience_s`, such as while the lab starts, or before the run no longer `goes_on`.

    Raises ValueError with the reason if the lab refuses the command, RecordError, OSError.
    """
    tail, deadline_s = Tail(run_dir, EventRecord), time.monotonic() + patience_s
    while True:
        for record in tail.read():
            if record.command == number:
                if record.kind == REFUSED:
                    raise ValueError(record.detail)
                return record
        if time.monotonic() > deadline_s or not goes_on():
            return None
        time.sleep(_POLL_S)


class Inbox:
    """Reads new commands of a run directory."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / FILE
        self._offset = 0

    def read(self) -> list[Command | str]:
        """Returns complete new lines as commands, and an error text for each invalid one."""
        try:
            # Opened each time, because hostfs keeps an open file's old size.
            with self._path.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        commands: list[Command | str] = []
        for line in whole.splitlines():
            try:
                commands.append(msgspec.json.decode(line, type=Command))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                commands.append(f"{FILE}: {error}")
        return commands
