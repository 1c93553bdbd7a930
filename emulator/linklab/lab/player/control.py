"""Sends changes to a running lab, as commands in a file of the run directory.

`linklab link` and `linklab next` append lines to `control.jsonl`. The player reads new lines ten
times a second. It writes into `events.jsonl` what became of them. Both are files because both guest
and host see them.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from linklab.core import plain_file, units
from linklab.core.bounded import Bps, Bytes, Name, Ratio, Seconds
from linklab.core.impairments import Impairments
from linklab.core.link_state import DIRECTIONS
from linklab.core.records import EventRecord, Tail
from linklab.models import impairments
from linklab.models.events import REFUSED, Event

FILE = "control.jsonl"

PERIOD_S = 0.1
"""The interval in which a running lab reads commands."""

ANSWER_S = 4.0
"""The longest wait for the lab to execute a command. Clients wait 10 s for the lab's answer."""

_POLL_S = 0.02

RESTORED = "as the scenario says"
"""What becomes of a link whose changes are taken back."""


NO_OUTAGE = "outage over"
"""What becomes of a link whose outage ends."""


class Command(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Describes a change of `link` from now on, in base units.

    `restore` takes back what earlier commands did to the link. `next` goes on to the next
    algorithm of a live lab, or to `algorithm`. `pause` has it begin no further download, or go on.
    """

    link: Name = ""
    carrier: Name | None = None
    down_rate_bps: Bps | None = None
    up_rate_bps: Bps | None = None
    rtt_s: Seconds | None = None
    loss_ratio: Ratio | None = None
    outage: bool | None = None
    handover: Name | None = None
    duration_s: Seconds | None = None
    next: bool = False
    jitter_s: Seconds | None = None
    queue_bytes: Bytes | None = None
    restore: bool = False
    algorithm: Name | None = None
    pause: bool | None = None
    impair_down: Impairments | UnsetType = UNSET
    impair_up: Impairments | UnsetType = UNSET

    def in_words(self) -> str:
        """Describes the change, such as "rate 10 Mbit/s, loss 1 %" or "down for 3 s". Each part
        begins with the changed property."""
        if self.restore:
            return RESTORED
        said = [self.carrier] if self.carrier else []
        if self.outage is not None:
            said.append("outage" if self.outage else NO_OUTAGE)
        if self.handover:
            said.append("handover" if self.handover == "next" else f"handover to {self.handover}")
        if self.down_rate_bps is not None:
            said.append(f"rate {units.format_rate(self.down_rate_bps)}")
        if self.up_rate_bps is not None:
            said.append(f"uplink {units.format_rate(self.up_rate_bps)}")
        if self.rtt_s is not None:
            said.append(f"RTT {units.format_duration(self.rtt_s)}")
        if self.jitter_s is not None:
            said.append(f"jitter {units.format_duration(self.jitter_s)}")
        if self.loss_ratio is not None:
            said.append(f"loss {units.format_ratio(self.loss_ratio)}")
        if self.queue_bytes is not None:
            said.append(f"queue {units.format_size(self.queue_bytes)}")
        for direction in DIRECTIONS:
            found = impairments.of(self, direction)
            if found is not UNSET:
                key = impairments.KEYS[direction]
                said += [f"{key}.{one} {text}" for one, text in impairments.in_words(found)]
        span = "" if self.duration_s is None else f" for {units.format_duration(self.duration_s)}"
        return ", ".join(one + span for one in said)

    def event(self) -> Event:
        """Returns the command as an event of its link."""
        event = Event(
            link=self.link,
            carrier=self.carrier,
            down_rate_bps=self.down_rate_bps,
            up_rate_bps=self.up_rate_bps,
            rtt_s=self.rtt_s,
            jitter_s=self.jitter_s,
            loss_ratio=self.loss_ratio,
            queue_bytes=self.queue_bytes,
            outage=self.outage,
            handover=self.handover,
            impair_down=self.impair_down,
            impair_up=self.impair_up,
        )
        if self.duration_s is None:
            return event
        return replace(event, duration_s=self.duration_s)


def send(run_dir: Path, command: Command) -> int:
    """Appends a command for the lab that runs in `run_dir`. Returns its number, from 1.

    One thread at a time may send.
    """
    line = msgspec.json.encode(command) + b"\n"
    with plain_file.appending(run_dir / FILE) as file:
        file.write(line)
    return plain_file.read(run_dir / FILE).count(b"\n")


def wait_until_executed(run_dir: Path, number: int) -> bool:
    """Waits until the lab has executed a command. Returns False if it has not within `ANSWER_S`,
    such as while it starts.

    Raises ValueError with the reason if the lab refuses the command, RecordError, OSError.
    """
    events, deadline_s = Tail(run_dir, EventRecord), time.monotonic() + ANSWER_S
    while True:
        for record in events.read():
            if record.command == number:
                if record.kind == REFUSED:
                    raise ValueError(record.detail)
                return True
        if time.monotonic() > deadline_s:
            return False
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
