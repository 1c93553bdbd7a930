"""Compares the counters of Accurate ECN with the packets that were marked (RFC 9768).

The client's counters are in each of its packets: ACE modulo 8 in the header, bytes modulo 2^24 in the
option. What they should be follows from the packets that the client has received before.
"""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import dpkt

NOT_ECT, ECT_1, ECT_0, CE = range(4)
ACE_AT_FIRST, BYTES_AT_FIRST = 5, {ECT_1: 1, ECT_0: 1, CE: 0}
ORDERS = {172: (ECT_0, CE, ECT_1), 174: (ECT_1, CE, ECT_0)}
"""The option's kinds, and the order of their counters, of which the last ones may be left out."""


class Counted(NamedTuple):
    """Marked packets that a client received, the counters that it sent, and how many were wrong."""

    marked: int
    counters: int
    wrong: int


def counted(pcap: Path, client: bytes) -> Counted:
    """Returns the counters of a capture at a client with this address."""
    marks: Counter[int] = Counter()
    sizes: dict[int, Counter[int]] = {}
    counters = wrong = 0
    with pcap.open("rb") as file:
        for _, content in dpkt.pcap.Reader(file):
            ip = dpkt.ethernet.Ethernet(content).data
            if not isinstance(ip, dpkt.ip.IP) or not isinstance(ip.data, dpkt.tcp.TCP):
                continue
            tcp = ip.data
            own = tcp.sport if ip.src == client else tcp.dport
            received = sizes.setdefault(own, Counter(BYTES_AT_FIRST))
            if ip.src != client:
                if not tcp.flags & dpkt.tcp.TH_SYN:
                    marks[own] += ip.tos & 3 == CE
                    received[ip.tos & 3] += len(tcp.data)
                continue
            is_opened = received != BYTES_AT_FIRST or tcp.data
            if not is_opened or tcp.flags & (dpkt.tcp.TH_SYN | dpkt.tcp.TH_RST):
                continue  # In the handshake the field tells how the SYN arrived.
            (flags,) = struct.unpack_from("!H", bytes(tcp), 12)
            pairs = [(flags >> 6 & 7, (ACE_AT_FIRST + marks[own]) % 8)]
            for kind, told in dpkt.tcp.parse_opts(tcp.opts):
                for at, field in enumerate(ORDERS.get(kind, ())[: len(told) // 3]):
                    value = int.from_bytes(told[3 * at : 3 * at + 3], "big")
                    pairs.append((value, received[field] % 2**24))
            counters += len(pairs)
            wrong += sum(seen != right for seen, right in pairs)
    return Counted(marks.total(), counters, wrong)
