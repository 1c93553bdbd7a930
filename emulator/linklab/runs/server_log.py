"""Turns the access log of the lab's server into records of the run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from linklab.core import plain_file
from linklab.core.ip_family import IPV6, family_of
from linklab.core.records import FILES, ClientRecord, RequestRecord, line
from linklab.lab.network.topology import LEASES, LinkPath

LOG = "h2o-access.jsonl"
_FIRST_STATION = 2 + LEASES
_GONE = "null"
"""What H2O writes in place of the address of a connection that broke."""


_Number = Annotated[str, Meta(pattern=r"^[0-9]{1,12}(\.[0-9]{1,9})?$")]
_Address = Annotated[
    str, Meta(pattern=r"^([0-9]+\.[0-9]+\.[0-9]+\.[0-9]+|2001:db8:[0-9]+:[0-9:]*:[0-9]+|null)$")
]


class _Line(msgspec.Struct, frozen=True):
    """A line of the log, as server/h2o.conf writes it."""

    t: _Number
    client: _Address
    request: str
    status: int
    bytes: int
    range: str | None
    duration: _Number | None
    response: _Number | None
    connection: int


def write(run_dir: Path, links: Mapping[str, LinkPath], start_unix_s: float) -> None:
    """Writes the requests of a program that is not multilink. The scenario started at
    `start_unix_s` by the server's clock. Leaves out what H2O does not write, and other hosts' requests."""
    if (run_dir / FILES[ClientRecord]).exists() or not (run_dir / LOG).exists():
        return
    read = list(_lines(plain_file.read(run_dir / LOG)))
    known = {one.connection: one.client for one in read if one.client != _GONE}
    found = []
    for one in read:
        link = _link(known.get(one.connection, _GONE), links)
        if link is not None:
            found.append(_record(one, link, start_unix_s))
    if found:
        plain_file.write(run_dir / FILES[RequestRecord], b"".join(map(line, found)))


def _lines(text: bytes) -> Iterator[_Line]:
    for one in text.splitlines():
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield msgspec.json.decode(one, type=_Line)


def _record(one: _Line, link: str, start_unix_s: float) -> RequestRecord:
    t_s = max(0.0, round(float(one.t) - start_unix_s, 6))
    end_s = None if one.duration is None else round(t_s + float(one.duration), 6)
    return RequestRecord(
        t_s=t_s,
        first_byte_s=(
            None
            if end_s is None or one.response is None
            else max(t_s, round(end_s - float(one.response), 6))
        ),
        end_s=end_s,
        link=link,
        request=one.request[:1000],
        status=one.status,
        bytes=one.bytes,
        range=None if one.range is None else one.range[:1000],
    )


def _link(client: str, links: Mapping[str, LinkPath]) -> str | None:
    """Returns the link of a client's address, None if it is another host's. A link's network has its
    number, also in IPv6, and behind a NAT. Without an address it is the only link, or ""."""
    if client == _GONE:
        return next(iter(links)) if len(links) == 1 else ""
    words = client.split(":" if family_of(client) == IPV6 else ".")
    network, host = words[2 if family_of(client) == IPV6 else 1], words[-1]
    for name, path in links.items():
        if path.client.address.split(".")[1] == network and int(host[:9]) < _FIRST_STATION:
            return name
    return None
