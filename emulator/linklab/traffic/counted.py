"""Makes the record of a flow from what its two ends have counted. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from linklab.core.records import TrafficRecord
from linklab.scenario.traffic import TrafficFlow

LATE_S: Final = 5.0
"""A packet of a call that has not come by then is lost."""

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Holds the start of the scenario, in nanoseconds of the monotonic clock, and the run's end in
    seconds after it."""

    start_ns: int
    end_s: float


def record(
    flow: TrafficFlow, number: int, times: RunTimes, server: Counts, other: Counts
) -> TrafficRecord:
    """Returns the record of a flow, by the counts of the server's end and of the other end."""
    sender, receiver = (server, other) if flow.direction == "down" else (other, server)
    to_s = min(times.end_s, flow.end_s)
    # The other end fetches pages, or sends them.
    timed = receiver if flow.web is None else other
    known = {
        f"{key.removesuffix('_ns')}_s": value / 1e9
        for key, value in timed.items()
        if "_p" in key and key.endswith("_ns")
    }
    is_call = flow.call is not None
    return TrafficRecord(
        t_s=times.end_s,
        flow=number,
        link=flow.link,
        direction=flow.direction,
        kind=flow.kind,
        from_s=min(flow.from_s, to_s),
        to_s=to_s,
        received_bytes=receiver["bytes"],
        sent_packets=sender["sent"] if is_call else None,
        lost_packets=_lost(flow, times.start_ns, to_s, sender, receiver) if is_call else None,
        pages=timed.get("pages"),
        **known,
    )


def _lost(flow: TrafficFlow, start_ns: int, to_s: float, sender: Counts, receiver: Counts) -> int:
    """Returns the number of a call's packets that are lost, and not still under way."""
    assert flow.call is not None
    first_s = (sender["start_ns"] - start_ns) / 1e9
    old_s = to_s - LATE_S - first_s
    old = 0 if old_s < 0 else min(sender["sent"], int(old_s / flow.call.interval_s) + 1)
    return max(receiver["numbered"], old) - receiver["packets"]
