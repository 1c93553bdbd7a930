"""Reads each link's activity over time from a run directory: bytes and radio states. Pure.

In the lab the bytes come from the queues' counters, every 0.5 s, in both directions, for any
client. On hardware they come from multilink's samples, every 100 ms, received payload only.

A link is active for a whole sample if it carried anything in that sample. If the scenario models
the radio (`models/rrc.py`), its states count instead. They are recorded to the microsecond.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from linklab.core.link_kinds import LinkKind
from linklab.core.link_state import CONNECTED
from linklab.core.records import ClientRecord, LinkRecord, QueueRecord


@dataclass(frozen=True, slots=True)
class Counted:
    """The bytes that a link carried from the scenario's start until `t_s`."""

    t_s: float
    down_bytes: int
    up_bytes: int


@dataclass(frozen=True, slots=True)
class RadioState:
    """The state of a radio from `t_s` on, with the names of `LinkState.rrc`."""

    t_s: float
    state: str


@dataclass(frozen=True, slots=True)
class Activity:
    """The activity of a link over time.

    `counted` ascends in time and begins with zero bytes. `radio` is empty if the scenario does not
    model the radio.
    """

    kind: LinkKind
    counted: tuple[Counted, ...]
    radio: tuple[RadioState, ...] = ()


def of_lab(
    queues: Iterable[QueueRecord], states: Iterable[LinkRecord], kinds: Mapping[str, LinkKind]
) -> dict[str, Activity]:
    """Returns each link's activity, from `queues.jsonl` and `links.jsonl` of a run in the lab."""
    totals: dict[str, dict[float, dict[str, int]]] = {name: {} for name in kinds}
    for record in queues:
        if record.link in totals:
            at = totals[record.link].setdefault(record.t_s, {})
            at[record.direction] = record.sent_bytes
    radios: dict[str, list[RadioState]] = {name: [] for name in kinds}
    for state in states:
        radio = radios.get(state.link)
        if radio is not None and (not radio or radio[-1].state != state.rrc):
            radio.append(RadioState(state.t_s, state.rrc))
    return {
        name: Activity(
            kind,
            (
                Counted(0.0, 0, 0),
                *(
                    Counted(t_s, sent.get("down", 0), sent.get("up", 0))
                    for t_s, sent in sorted(totals[name].items())
                    if t_s > 0
                ),
            ),
            tuple(radios[name]) if any(one.state != CONNECTED for one in radios[name]) else (),
        )
        for name, kind in kinds.items()
    }


def of_client(
    records: Iterable[ClientRecord], kinds: Mapping[str, LinkKind], shift_s: float = 0.0
) -> dict[str, Activity]:
    """Returns each link's activity, from multilink's `client.jsonl`.

    `shift_s` is the time from the scenario's start to the client's start.
    """
    counted: dict[str, list[Counted]] = {name: [Counted(shift_s, 0, 0)] for name in kinds}
    for record in records:
        if record.event == "sample" and record.link in counted:
            counted[record.link].append(Counted(record.t_s + shift_s, record.received_bytes, 0))
    return {name: Activity(kind, tuple(counted[name])) for name, kind in kinds.items()}
