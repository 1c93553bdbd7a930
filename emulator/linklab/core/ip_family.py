"""Names the families of IP addresses, and the address in each family. Pure.

The lab's plan is written in IPv4. Each of its addresses has an IPv6 one beside it, with the same
numbers: 10.1.0.2 and 2001:db8:1::2. The prefix is that of RFC 3849, for documentation. Programs choose
between the families by RFC 6724, which prefers IPv6 with this prefix, as on the Internet. It would
prefer IPv4 to private addresses of IPv6 (RFC 4193).
"""

from __future__ import annotations

import ipaddress
from typing import Final

IPV4: Final = 4
IPV6: Final = 6

Families = tuple[int, ...]
"""Some of IPV4 and IPV6, in this order."""

ONLY_IPV4: Final[Families] = (IPV4,)

_PREFIX_BITS: Final = {"0": "0", "24": "64", "32": "128"}


def family_of(address: str) -> int:
    """Returns the family of an address or a network."""
    return IPV6 if ":" in address else IPV4


def in_family(plan: str, family: int) -> str:
    """Returns an address or a network of the plan (10.1.0.2, 10.1.0.0/24) in a family."""
    if family == IPV4:
        return plan
    address, slash, bits = plan.partition("/")
    if slash and bits == "0":
        return "::/0"
    ten, net, part, number = address.split(".")
    assert ten == "10", f"{plan} is no address of the plan"
    written = f"2001:db8:{net}:{part}::{number}"
    shortest = str(ipaddress.IPv6Address(written))
    return shortest + slash + (_PREFIX_BITS[bits] if slash else "")


def in_url(host: str) -> str:
    """Returns a name or an address as a URL has it (RFC 3986, 3.2.2)."""
    return f"[{host}]" if ":" in host else host


def in_words(families: Families) -> str:
    """Returns `IPv4`, `IPv6`, or both."""
    return " and ".join(f"IPv{family}" for family in families)
