"""Builds messages to the filters of an interface: policers, and rewritten headers. Pure.

The qdisc clsact holds them, beside the root qdisc and before it (tc-bpf(8), linux/pkt_cls.h,
linux/tc_act). A packet passes one filter after the other, in the order of their priorities, until one
drops it.
"""

from __future__ import annotations

import struct
from typing import Final

from linklab.core.ip_family import IPV4, IPV6
from linklab.core.netlink_messages import attribute, nested, text
from linklab.lab.shaping import tc

HANDLE: Final = 0xFFFF0000
_CLSACT_PARENT, _IN, _OUT = 0xFFFFFFF1, 0xFFFFFFF2, 0xFFFFFFF3
_NEWTFILTER, _DELTFILTER = 44, 45
_ALL = 0x0003
_PROTOCOLS = {IPV4: 0x0800, IPV6: 0x86DD}
_MATCHALL_ACT = 2
_ACT_KIND, _ACT_OPTIONS = 1, 2
_NEXT_FILTER, _DROP, _NEXT_ACTION = -1, 2, 3

_POLICE_TBF, _POLICE_RATE, _POLICE_RESULT = 1, 2, 5
_POLICE = struct.Struct("=IiIII BBHhHI 12x 12x")
_RATE_TABLE_BYTES = 1024
_TICK_NS = 64
_ETHERNET = 1
_ANY_LOG = 3
_ANY_SIZE = 2**32 - 1

MAX_BURST_S: Final = 2**32 * _TICK_NS / 1e9
"""The longest time that a burst may take at the policer's rate: 274 s."""

_PEDIT_PARMS, _CSUM_PARMS, _CSUM_IPV4 = 2, 1, 1
_GENERIC = struct.Struct("=IIiii")
_WITHOUT_ECN = {IPV4: bytes((0xFF, 0xFC, 0xFF, 0xFF)), IPV6: bytes((0xFF, 0xCF, 0xFF, 0xFF))}
"""Keeps the first four bytes of a header, without the ECN field of IPv4's type of service or IPv6's
traffic class (RFC 3168, 5)."""


def add_clsact(index: int) -> bytes:
    return tc.about(tc.NEWQDISC, tc.ADD, index, HANDLE, _CLSACT_PARENT, "clsact", b"")


def delete_clsact(index: int) -> bytes:
    return tc.delete(index, HANDLE, _CLSACT_PARENT)


def remove(index: int, priority: int) -> bytes:
    return tc.about(_DELTFILTER, tc.CHANGE, index, 0, _OUT, "", b"", priority << 16)


def police(index: int, priority: int, rate_bps: int, burst_bytes: int) -> bytes:
    """Drops frames beyond a token bucket of this rate and size, which is full at first."""
    rate_bytes_per_s = rate_bps // 8
    ticks = round(burst_bytes * 1e9 / rate_bytes_per_s / _TICK_NS)
    burst = min(ticks, 2**32 - 1)
    limits = _POLICE.pack(
        0, _DROP, 0, burst, _ANY_SIZE, _ANY_LOG, _ETHERNET, 0, 0, 0, rate_bytes_per_s
    )
    table = attribute(_POLICE_RATE, bytes(_RATE_TABLE_BYTES))
    return _matchall(index, priority, _ALL, _policing(limits, table))


def drop_larger(index: int, priority: int, frame_bytes: int) -> bytes:
    """Drops frames larger than this, with the Ethernet header."""
    limits = _POLICE.pack(0, _DROP, 0, 0, frame_bytes, 0, 0, 0, 0, 0, 0)
    return _matchall(index, priority, _ALL, _policing(limits))


def drop_arriving(index: int) -> bytes:
    limits = _POLICE.pack(0, _DROP, 0, 0, 1, 0, 0, 0, 0, 0, 0)
    return _matchall(index, 1, _ALL, _policing(limits), parent=_IN)


def pass_arriving(index: int) -> bytes:
    return tc.about(_DELTFILTER, tc.CHANGE, index, 0, _IN, "", b"", 1 << 16)


def bleach_ecn(index: int, priority: int, family: int = IPV4) -> bytes:
    """Clears the ECN field of all packets of a family. IPv6's header has no checksum."""
    key = _WITHOUT_ECN[family] + bytes(4) + bytes(16)
    then = _NEXT_ACTION if family == IPV4 else _NEXT_FILTER
    selection = _GENERIC.pack(0, 0, then, 0, 0) + struct.pack("=BBxx", 1, 0) + key
    actions = [_action("pedit", attribute(_PEDIT_PARMS, selection))]
    if family == IPV4:
        checksum = _GENERIC.pack(0, 0, _NEXT_FILTER, 0, 0) + struct.pack("=I", _CSUM_IPV4)
        actions.append(_action("csum", attribute(_CSUM_PARMS, checksum)))
    return _matchall(index, priority, _PROTOCOLS[family], *actions)


def _policing(limits: bytes, more: bytes = b"") -> bytes:
    result = attribute(_POLICE_RESULT, struct.pack("=i", _NEXT_FILTER))
    return _action("police", attribute(_POLICE_TBF, limits) + more + result)


def _action(kind: str, options: bytes) -> bytes:
    return text(_ACT_KIND, kind) + nested(_ACT_OPTIONS, options)


def _matchall(
    index: int, priority: int, protocol: int, *actions: bytes, parent: int = _OUT
) -> bytes:
    """Adds a filter for all packets of a protocol, which carries out the actions in order."""
    listed = b"".join(nested(place, action) for place, action in enumerate(actions, 1))
    (in_network_order,) = struct.unpack("=H", struct.pack("!H", protocol))
    info = priority << 16 | in_network_order
    options = nested(_MATCHALL_ACT, listed)
    return tc.about(_NEWTFILTER, tc.ADD, index, 0, parent, "matchall", options, info)
