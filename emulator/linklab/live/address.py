"""Network addresses as people write them: a host and a port. Pure."""

from __future__ import annotations

import ipaddress

DEFAULT = ("127.0.0.1", 9464)
"""9464 is the port of Prometheus exporters in OpenTelemetry's specification, too."""


def parse(text: str) -> tuple[str, int]:
    """`127.0.0.1:9464`, `[::1]:9464`, `:9464` (all addresses). ValueError saying what is allowed."""
    host, colon, port = text.rpartition(":")
    try:
        number = int(port)
    except ValueError:
        number = -1
    if not colon or not 0 <= number <= 65535:
        raise ValueError(f"{text!r} is not an address; allowed: an address such as 127.0.0.1:9464")
    return (host.strip("[]") or "0.0.0.0", number)


def shown(address: tuple[str, int]) -> str:
    """The address as in a URL."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def without_mapping(host: str) -> str:
    """The IPv4 address that an IPv6 address stands for (`::ffff:192.0.2.2`); anything else as it is."""
    try:
        mapped = ipaddress.IPv6Address(host).ipv4_mapped
    except ValueError:
        return host
    return host if mapped is None else str(mapped)
