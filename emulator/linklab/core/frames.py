"""Defines sizes of packets, headers and the overhead around payload, in bytes. Pure.

Rates, queues and counters count frames like Linux's qdiscs: an IP packet with its Ethernet header.
"""

from __future__ import annotations

from typing import Final

from linklab.core.ip_family import IPV6, ONLY_IPV4, Families

MTU_BYTES: Final = 1500
"""The largest IP packet that Ethernet carries (RFC 894)."""

ETHERNET_BYTES: Final = 14
"""Ethernet's header: two addresses and a type. Qdiscs do not count preamble and checksum."""

IPV4_BYTES: Final = 20
"""A header of IPv4 without options (RFC 791 3.1)."""

IPV6_BYTES: Final = 40
"""A header of IPv6 without extensions (RFC 8200 3)."""

IPV6_MTU_BYTES: Final = 1280
"""The least MTU that a link with IPv6 may have (RFC 8200 5)."""

UDP_BYTES: Final = 8
"""A header of UDP (RFC 768)."""

TCP_BYTES: Final = 20 + 12
"""A header of TCP (RFC 9293 3.1) with the timestamp option and its padding (RFC 7323 3.2), which
Linux sends with every segment."""

FRAME_BYTES: Final = MTU_BYTES + ETHERNET_BYTES
"""A full packet as counted: 1514."""

PACKET_MEMORY_BYTES: Final = 3400
"""Linux's memory for a queued full packet. Measured in the guest: 2305 B for UDP, 3300 B for TCP."""

SEGMENT_BYTES: Final = MTU_BYTES - IPV4_BYTES - TCP_BYTES
"""TCP's payload in a full packet: 1448."""

ACK_BYTES: Final = ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES
"""A pure acknowledgement as counted: 66."""

TLS_RECORD_BYTES: Final = 16384
"""Largest plaintext of a TLS 1.3 record (RFC 8446 5.1), which H2O fills for bulk data."""

TLS_OVERHEAD_BYTES: Final = 22
"""Per record: 5 header, 1 content type (RFC 8446 5.2), 16 authentication tag (AES-GCM)."""

DATA_BYTES: Final = 16384
"""Payload of an HTTP/2 DATA frame: SETTINGS_MAX_FRAME_SIZE at its initial value (RFC 9113
6.5.2), up to which H2O fills frames."""

DATA_OVERHEAD_BYTES: Final = 9
"""The frame header (RFC 9113 4.1)."""


def _more_header_bytes(families: Families) -> int:
    """Returns what a header of IPv6 has beyond one of IPv4. Clients on a link with both `families`
    use IPv6 (RFC 6724)."""
    return IPV6_BYTES - IPV4_BYTES if IPV6 in families else 0


def ack_bytes(families: Families) -> int:
    """Returns the size of a pure acknowledgement as counted: 66 over IPv4, 86 over IPv6."""
    return ACK_BYTES + _more_header_bytes(families)


def goodput_ratio(families: Families = ONLY_IPV4) -> float:
    """Returns payload bytes per byte counted at the bottleneck, for bulk data over HTTP/2: 0.9546
    over IPv4, 0.9414 over IPv6."""
    tcp = (SEGMENT_BYTES - _more_header_bytes(families)) / FRAME_BYTES
    tls = TLS_RECORD_BYTES / (TLS_RECORD_BYTES + TLS_OVERHEAD_BYTES)
    return tcp * tls * (DATA_BYTES / (DATA_BYTES + DATA_OVERHEAD_BYTES))
