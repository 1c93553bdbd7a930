"""Services that a user brings into a lab, as its manifest says them: a server in H2O's place, and
servers outside. Commands read and write them on machines that have no Mininet. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from linklab.schema.mapping import integer, within

HTTPS_PORT: Final = 443
"""What a server listens on unless told otherwise; RFC 9110, 4.2.2."""

HTTP_PORT: Final = 80
"""What H2O listens on without TLS, for who cannot use that; RFC 9110, 4.2.1."""

parse_port = within(integer, 1, 65535, "1 to 65535")
"""The number of a port. ValueError."""


class OwnServer(msgspec.Struct, frozen=True):
    """What is to serve: a command's words, with placeholders, and the port that it listens on, by
    TCP or UDP."""

    command: tuple[str, ...]
    port: int = HTTPS_PORT


class Origin(msgspec.Struct, frozen=True):
    """A server outside. In the lab it is called `name`, if it has one, at `address` and `port`; `to`
    is where the relay finds it."""

    url: str
    name: str
    address: str
    port: int
    to: tuple[str, int]


class Outside(msgspec.Struct, frozen=True):
    """What of the outside a lab reaches, and who reaches it: by name of a link, or "" for all, the
    port of this machine's loopback device that leads to a proxy on the client host. `resolver`
    answers for names, where everything may be reached. `reaches_loopback` if an origin is this
    machine itself."""

    origins: tuple[Origin, ...] = ()
    resolver: tuple[str, int] | None = None
    proxies: dict[str, int] = {}
    reaches_loopback: bool = False
