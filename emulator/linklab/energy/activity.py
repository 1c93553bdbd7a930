"""What links did over time, as the records of a run directory tell: bytes and radio states. Pure.

In the lab the queues' counters tell it, every half second and in both directions, for any program.
Elsewhere, on hardware, multilink's own samples do, every 100 ms; they know the payload that came and
not what went. A link counts as active in all of a sample in which it carried anything, unless the
scenario has the radio's states (`models/rrc.py`), which are noted to the microsecond.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from linklab.core.link_kinds import LinkKind
from linklab.core.link_state import CONNECTED
from linklab.core.records import ClientRecord, LinkRecord, QueueRecord


@dataclass(frozen=True, slots=True)
class Counted:
    """All bytes that a link has carried until `t_s` since the scenario began."""

    t_s: float
    down_bytes: int
    up_bytes: int


@dataclass(frozen=True, slots=True)
class RadioState:
    """From `t_s` on the radio is in `state`, as `LinkState.rrc` has it."""

    t_s: float
    state: str


@dataclass(frozen=True, slots=True)
class Activity:
    """A link over time. `counted` ascends and begins with nothing carried; `radio` is empty where
    the scenario has no such layer."""

    kind: LinkKind
    counted: tuple[Counted, ...]
    radio: tuple[RadioState, ...] = ()


def of_lab(
    queues: Iterable[QueueRecord], states: Iterable[LinkRecord], kinds: Mapping[str, LinkKind]
) -> dict[str, Activity]:
    """Each link's activity, from `queues.jsonl` and `links.jsonl` of a run in the lab."""
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
    """Each link's activity, from multilink's `client.jsonl`, which began `shift_s` late."""
    counted: dict[str, list[Counted]] = {name: [Counted(shift_s, 0, 0)] for name in kinds}
    for record in records:
        if record.event == "sample" and record.link in counted:
            counted[record.link].append(Counted(record.t_s + shift_s, record.received_bytes, 0))
    return {name: Activity(kind, tuple(counted[name])) for name, kind in kinds.items()}
