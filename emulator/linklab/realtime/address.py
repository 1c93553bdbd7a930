"""Reads and writes network addresses: a host and a port. Pure."""

from __future__ import annotations

import ipaddress

from linklab.core.ip_family import in_url

DEFAULT = ("127.0.0.1", 9464)
"""OpenTelemetry's specification also gives port 9464 to Prometheus exporters."""


def parse(text: str) -> tuple[str, int]:
    """Reads `127.0.0.1:9464`, `[::1]:9464`, `:9464` (all addresses) or `9464` (the loopback device).

    Raises ValueError that says what is allowed.
    """
    host, colon, port = text.rpartition(":")
    try:
        number = int(port)
    except ValueError:
        number = -1
    if not 0 <= number <= 65535:
        raise ValueError(
            f"{text!r} is not an address; allowed: an address such as 127.0.0.1:9464, or a port"
        )
    return (host.strip("[]") or "0.0.0.0", number) if colon else (DEFAULT[0], number)


def parse_proxy(text: str) -> tuple[str, int]:
    """Reads where a proxy listens: `8080` of the loopback device, `0.0.0.0:8080` or `:8080`. Port 0
    stands for free ones.

    Raises ValueError that says what is allowed.
    """
    try:
        host, port = parse(text)
        return str(ipaddress.IPv4Address(host)), port
    except ValueError:
        raise ValueError(
            f"{text!r} is no place for a proxy; allowed: a port such as 8080, or an IPv4 address "
            "and a port such as 0.0.0.0:8080"
        ) from None


def from_here(address: tuple[str, int]) -> tuple[str, int]:
    """Returns the address by which this machine reaches a server that listens on `address`."""
    host, port = address
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port


def to_text(address: tuple[str, int]) -> str:
    """Writes an address as in a URL."""
    host, port = address
    return f"{in_url(host)}:{port}"


def is_loopback(host: str) -> bool:
    """Tells whether only this machine can reach a host's name or address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
