"""Builds multilink's range requests from the events of a run. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from linklab.core.records import ClientRecord


class RangeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Holds one range request of multilink. Times are in seconds of the scenario, None if the event
    did not happen. `from_link` is the link that the range was taken from. `outcome` is complete,
    failed, cancelled, or empty if the client ended earlier."""

    id: int
    link: str
    offset: int
    length: int
    from_link: str | None
    rate_bps: float
    start_s: float
    first_byte_s: float | None = None
    end_s: float | None = None
    bytes: int = 0
    wasted_bytes: int = 0
    outcome: str = ""
    error: str = ""

    @property
    def is_taken_over(self) -> bool:
        """Whether another link fetched the rest."""
        return self.outcome == "complete" and self.bytes < self.length


def of_records(records: Iterable[ClientRecord], shift_s: float = 0.0) -> list[RangeRequest]:
    """Returns the requests of a client that began `shift_s` into its scenario, in the order of ids."""
    found: dict[int, dict[str, Any]] = {}
    for one in records:
        at_s = shift_s + one.t_s
        if one.event == "request":
            found[one.id] = {
                "id": one.id,
                "link": one.link,
                "offset": one.offset,
                "length": one.length,
                "from_link": one.from_link,
                "rate_bps": one.rate_bps,
                "start_s": at_s,
            }
        elif one.event == "first_byte" and one.id in found:
            found[one.id]["first_byte_s"] = at_s
        elif one.event == "end" and one.id in found:
            found[one.id] |= {
                "end_s": at_s,
                "bytes": one.bytes,
                "wasted_bytes": one.wasted_bytes,
                "outcome": one.outcome,
                "error": one.error,
            }
    return [RangeRequest(**found[number]) for number in sorted(found)]
