"""Builds messages to the kernel's path manager of Multipath TCP, a generic netlink family.

Layouts are those of linux/genetlink.h and linux/mptcp_pm.h. ip-mptcp(8) describes endpoints.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from enum import IntFlag

from linklab.core.ip_family import family_of
from linklab.core.netlink_messages import (
    ACK,
    HEADER_BYTES,
    attribute,
    attributes,
    message,
    nested,
    number,
    of_answer,
    text,
)
from linklab.lab.kernel.socket_options import SOCKET_FAMILIES


class Endpoint(IntFlag):
    """Flags of an endpoint, an address of this host. SIGNAL: connections tell it to the peer.
    SUBFLOW: connections open a subflow from it. BACKUP: that subflow carries data only while no
    other can. FULLMESH: one subflow to every address of the peer."""

    SIGNAL = 0x1
    SUBFLOW = 0x2
    BACKUP = 0x4
    FULLMESH = 0x8


@dataclass(frozen=True, slots=True)
class Family:
    """Holds the numbers of the kernel's path manager and of its group for events."""

    number: int
    events: int


@dataclass(frozen=True, slots=True)
class Opened:
    """Describes an established subflow: its connection (`token`), its endpoint (0 for the
    connection's first subflow), address and port."""

    token: int
    identifier: int
    address: str
    port: int


NAME = "mptcp_pm"
_EVENTS = "mptcp_pm_events"

_CONTROL = 0x10
_GET_FAMILY, _FAMILY_ID, _FAMILY_NAME, _GROUPS = 3, 1, 2, 7
_GROUP_NAME, _GROUP_ID = 1, 2
_GENERIC = struct.Struct("=BBxx")
_VERSION = 1

_ADD, _DELETE, _SET_LIMITS, _SET_FLAGS = 1, 2, 5, 7
_ENDPOINT, _ACCEPTED, _SUBFLOWS = 1, 2, 3
_FAMILY, _ID, _ADDRESS, _ADDRESS_6, _FLAGS, _INTERFACE = 1, 2, 3, 4, 6, 7

_ESTABLISHED, _SUBFLOW_ESTABLISHED = 2, 10
_TOKEN, _LOCAL_ID, _SOURCE, _SOURCE_6, _SOURCE_PORT = 1, 3, 5, 6, 9


def find_family() -> bytes:
    """Asks for the number of the path manager's family. A kernel without Multipath TCP refuses
    (ENOENT)."""
    body = _GENERIC.pack(_GET_FAMILY, _VERSION) + text(_FAMILY_NAME, NAME)
    return message(_CONTROL, 0, body)


def family(answer: bytes) -> Family:
    found = of_answer(answer, _GENERIC.size)
    groups = {
        bytes(group[_GROUP_NAME]).rstrip(b"\0").decode(): struct.unpack("=I", group[_GROUP_ID])[0]
        for group in map(attributes, attributes(found[_GROUPS]).values())
    }
    return Family(struct.unpack("=H", found[_FAMILY_ID])[0], groups[_EVENTS])


def _command(family: Family, command: int, body: bytes) -> bytes:
    return message(family.number, ACK, _GENERIC.pack(command, _VERSION) + body)


def set_limits(family: Family, *, subflows: int, accepted: int) -> bytes:
    """Limits the further subflows of a connection, and the peer's addresses that it may use."""
    return _command(family, _SET_LIMITS, number(_ACCEPTED, accepted) + number(_SUBFLOWS, subflows))


def _endpoint(identifier: int, address: str, flags: Endpoint, index: int | None) -> bytes:
    family = SOCKET_FAMILIES[family_of(address)]
    kind = _ADDRESS_6 if family == socket.AF_INET6 else _ADDRESS
    body = attribute(_FAMILY, struct.pack("=H", family))
    body += attribute(_ID, struct.pack("=B", identifier))
    body += attribute(kind, socket.inet_pton(family, address)) + number(_FLAGS, flags)
    if index is not None:
        body += number(_INTERFACE, index)
    return nested(_ENDPOINT, body)


def add_endpoint(
    family: Family, identifier: int, address: str, index: int | None, flags: Endpoint
) -> bytes:
    """Makes an address of the interface `index`, or of any, an endpoint with a number of 1 to 255.
    Open connections get their subflow at once."""
    return _command(family, _ADD, _endpoint(identifier, address, flags, index))


def delete_endpoint(family: Family, identifier: int, address: str) -> bytes:
    """Removes an endpoint and its subflows of all connections."""
    return _command(family, _DELETE, _endpoint(identifier, address, Endpoint(0), None))


def set_flags(family: Family, identifier: int, address: str, flags: Endpoint) -> bytes:
    """Changes whether an endpoint is BACKUP. The kernel tells the peers of all connections
    (MP_PRIO)."""
    return _command(family, _SET_FLAGS, _endpoint(identifier, address, flags, None))


def opened(event: bytes) -> Opened | None:
    """Parses an event about an established subflow. Returns None for other events."""
    command, _ = _GENERIC.unpack_from(event, HEADER_BYTES)
    if command not in (_ESTABLISHED, _SUBFLOW_ESTABLISHED):
        return None
    found = of_answer(event, _GENERIC.size)
    if _SOURCE in found:
        address = socket.inet_ntop(socket.AF_INET, found[_SOURCE])
    else:
        address = socket.inet_ntop(socket.AF_INET6, found[_SOURCE_6])
    return Opened(
        token=struct.unpack("=I", found[_TOKEN])[0],
        identifier=found[_LOCAL_ID][0] if command == _SUBFLOW_ESTABLISHED else 0,
        address=address,
        port=struct.unpack(">H", found[_SOURCE_PORT])[0],
    )
