"""Builds a program's HTTP requests from multilink's events, or from what the server recorded. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from linklab.core.records import ClientRecord, RequestRecord

_OK, _PARTIAL, _LEAST_ERROR = 200, 206, 400


class RangeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Holds one HTTP request. Times are in seconds of the scenario, None if the event did not happen.
    `outcome` is complete, failed, cancelled, or empty if the client ended earlier.

    Of multilink's requests `from_link` is the link that the range was taken from. Requests of other
    programs have `status` and `request`, such as "GET /file HTTP/2", and times and bytes as the
    server sent them. Then the outcome is cancelled if not all of the range was sent.
    """

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
    status: int | None = None
    request: str = ""

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


_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


def of_server(records: Iterable[RequestRecord], size_bytes: int) -> list[RangeRequest]:
    """Returns the requests that the server recorded, for a payload of this size, in order of time."""
    found = sorted(records, key=lambda one: one.t_s)
    return [_served(number, one, size_bytes) for number, one in enumerate(found, 1)]


def _served(number: int, one: RequestRecord, size_bytes: int) -> RangeRequest:
    asked = _RANGE.fullmatch(one.range or "")
    offset, length = 0, one.bytes
    if one.status == _PARTIAL and asked is not None:
        offset = int(asked[1])
        length = min(int(asked[2] or size_bytes), size_bytes - 1) + 1 - offset
    elif one.status == _OK and one.request.startswith("GET "):
        length = max(size_bytes, one.bytes)
    outcome = "complete" if one.bytes >= length else "cancelled"
    return RangeRequest(
        id=number,
        link=one.link,
        offset=offset,
        length=length,
        from_link=None,
        rate_bps=0.0,
        start_s=one.t_s,
        first_byte_s=one.first_byte_s,
        end_s=one.end_s,
        bytes=one.bytes,
        outcome=outcome if one.status < _LEAST_ERROR else "failed",
        status=one.status,
        request=one.request,
    )
