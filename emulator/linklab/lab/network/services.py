"""Describes the user's services in a lab, as the manifest has them: servers in it and outside.
Pure.

Commands read and write these on machines without Mininet.
"""

from __future__ import annotations

from typing import Final

import msgspec

from linklab.core.ip_family import Families, in_family
from linklab.core.limits import MAX_TIME_S, MIN_RESTART_S
from linklab.core.units import parse_duration
from linklab.schema.mapping import integer, within

HTTPS_PORT: Final = 443
"""The default port of a server. RFC 9110, 4.2.2."""

HTTP_PORT: Final = 80
"""H2O's port without TLS, for clients that cannot use TLS. RFC 9110, 4.2.1."""

LISTENERS: Final = "LINKLAB_LISTENERS"
"""The environment variable with the descriptors of the proxies' sockets, which an execution on the
host inherits."""

parse_port = within(integer, 1, 65535, "1 to 65535")
"""Parses a port number. Raises ValueError."""

parse_restart = within(parse_duration, MIN_RESTART_S, MAX_TIME_S, "10 ms to 24 h")
"""Parses after how many seconds a server is started again. Raises ValueError."""


class OwnServer(msgspec.Struct, frozen=True):
    """Describes the user's server: a command's words, with placeholders, and its TCP or UDP port. If
    it ends, it is started again after `restarts_after_s`, unless that is unset."""

    command: tuple[str, ...]
    port: int = HTTPS_PORT
    restarts_after_s: float | msgspec.UnsetType = msgspec.UNSET


class Origin(msgspec.Struct, frozen=True):
    """Describes a server outside. In the lab it has `address` and `port`, and a `name` if any. The
    relay connects to `to`."""

    url: str
    name: str
    address: str
    port: int
    to: tuple[str, int]

    @property
    def is_of_plan(self) -> bool:
        """Whether its address in the lab is one of the lab's plan, all of which are in 10.0.0.0/8."""
        return self.address.startswith("10.")

    def addresses(self, families: Families) -> tuple[str, ...]:
        """Returns its addresses in a lab with these families. Those of the plan have both."""
        if not self.is_of_plan:
            return (self.address,)
        return tuple(in_family(self.address, family) for family in families)


class Outside(msgspec.Struct, frozen=True):
    """Describes what a lab reaches outside, and what reaches the lab. `proxies` has ports of this
    machine that lead to proxies on the client host, by link, "" for all links. They listen on the
    IPv4 address `listen`, before the lab starts. `resolver` answers DNS if everything may be
    reached. `reaches_loopback` tells whether an origin is this machine itself."""

    origins: tuple[Origin, ...] = ()
    resolver: tuple[str, int] | None = None
    proxies: dict[str, int] = {}
    reaches_loopback: bool = False
    listen: str = "127.0.0.1"
