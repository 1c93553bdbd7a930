"""Describes what a relay joins, for the programs that start one."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NotRequired, TypedDict

PROGRAM: Final = Path(__file__).parent
"""A directory that Python runs by its `__main__.py`."""


class Rule(TypedDict):
    """Describes a listening socket's descriptor and its target: [HOST, PORT], or None for the
    address that the peer connected to. A `udp` socket takes datagrams.

    If `greets`, the relay sends one byte when it has accepted a connection. `lanes` replace `to`.
    They are addresses that all lead to the target. Over each one the relay opens one connection at
    a time and waits for that byte, because what lies between may have room for only one waiting
    connection. No two connections have the same local port, although the kernel would allow it for
    different lanes. Beyond, the lanes may be one address.

    If `breaks`, the relay connects from the peer's address, with the faults that its input says
    (`relay/faults.py`).

    If the target is a SOCKS5 server and `associates`, a UDP association's socket is opened here, and
    its datagrams take the client's connection.
    """

    descriptor: int
    to: NotRequired[tuple[str, int] | None]
    udp: NotRequired[bool]
    greets: NotRequired[bool]
    lanes: NotRequired[list[tuple[str, int]]]
    associates: NotRequired[bool]
    breaks: NotRequired[bool]
