"""Packs and parses netlink messages: requests, attributes, and the attributes of answers
(netlink(7)). Pure."""

from __future__ import annotations

import struct
from typing import Final

REQUEST, ACK, ECHO, REPLACE, EXCLUSIVE, CREATE = 0x1, 0x4, 0x8, 0x100, 0x200, 0x400
DUMP = 0x300
"""Flags of a message (linux/netlink.h)."""

HEADER: Final = struct.Struct("=IHHII")
"""The fields length, kind, flags, sequence number, port."""

HEADER_BYTES: Final = HEADER.size
_ATTRIBUTE = struct.Struct("=HH")
_KIND_MASK = 0x3FFF
_NESTED = 0x8000


def message(kind: int, flags: int, body: bytes) -> bytes:
    """Returns a request with its kind (linux/rtnetlink.h), flags besides REQUEST, and body."""
    return HEADER.pack(HEADER.size + len(body), kind, REQUEST | flags, 0, 0) + body


def attribute(kind: int, payload: bytes) -> bytes:
    """Returns an attribute, padded."""
    length = _ATTRIBUTE.size + len(payload)
    return _ATTRIBUTE.pack(length, kind) + payload + bytes(-length % 4)


def nested(kind: int, payload: bytes) -> bytes:
    """Returns an attribute that holds attributes."""
    return attribute(kind | _NESTED, payload)


def text(kind: int, words: str) -> bytes:
    """Returns an attribute with a zero-terminated string."""
    return attribute(kind, words.encode() + b"\0")


def number(kind: int, value: int) -> bytes:
    """Returns an attribute of 32 bits."""
    return attribute(kind, struct.pack("=I", value))


def attributes(data: memoryview) -> dict[int, memoryview]:
    """Returns the consecutive attributes in `data`, by kind."""
    found = {}
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            break
        found[kind & _KIND_MASK] = data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    return found


def of_answer(answer: bytes, header_bytes: int) -> dict[int, memoryview]:
    """Returns the attributes of an answer. Its own header, after netlink's, has `header_bytes`."""
    return attributes(memoryview(answer)[HEADER.size + header_bytes :])
