"""Answers DNS questions at once: with a known name's address, else that the name does not exist.

Programs with a resolver of their own (musl, dig, many in Go and Rust) ask a name server whatever
nsswitch.conf says. Without an answer some wait for seconds. This is a separate program, so that the
player need not wait for it. Its arguments are lists of addresses by name, as JSON, and descriptors of
UDP sockets.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import sys
from collections.abc import Mapping, Sequence

_HEAD = struct.Struct("!HHHHHH")  # RFC 1035, 4.1.1
_IS_ANSWER, _OPCODE, _WANTS_RECURSION = 0x8000, 0x7800, 0x0100
_ANSWERS = 0x8480
"""Flags of an answer: authoritative (AA) and with recursion available (RA). Without them some
resolvers ask the next server."""
_NO_SUCH_NAME = 3
_INTERNET = 1
_KINDS = {1: socket.AF_INET, 28: socket.AF_INET6}
"""The kinds of records with an address: A and AAAA (RFC 3596)."""

_LONGEST_LABEL_BYTES = 63
_QUESTION_BYTES = 512


def answer(message: bytes, addresses: Mapping[str, Sequence[str]]) -> bytes | None:
    """Returns the answer to a question, None for an invalid one."""
    try:
        number, flags, questions, *_ = _HEAD.unpack_from(message)
        if flags & (_IS_ANSWER | _OPCODE) or questions != 1:
            return None
        at, labels = _HEAD.size, []
        while size := message[at]:
            if size > _LONGEST_LABEL_BYTES:
                return None
            labels.append(message[at + 1 : at + 1 + size].decode("latin-1").lower())
            at += 1 + size
        end = at + 5
        kind, network = struct.unpack_from("!HH", message, at + 1)
    except (struct.error, IndexError):
        return None
    known = addresses.get(".".join(labels), ())
    # The answers repeat the question's name and must not be cached (TTL 0).
    found = [
        struct.pack("!HHHIH", 0xC000 | _HEAD.size, kind, network, 0, len(packed)) + packed
        for packed in (_packed(known, kind) if network == _INTERNET else ())
    ]
    flags = _ANSWERS | flags & _WANTS_RECURSION | (0 if known else _NO_SUCH_NAME)
    head = _HEAD.pack(number, flags, 1, len(found), 0, 0)
    return head + message[_HEAD.size : end] + b"".join(found)


def _packed(addresses: Sequence[str], kind: int) -> list[bytes]:
    """Returns the addresses that records of a kind have."""
    family = _KINDS.get(kind)
    return [
        socket.inet_pton(family, one)
        for one in addresses
        if family is not None and (":" in one) == (family == socket.AF_INET6)
    ]


def main(addresses: str, *descriptors: str) -> None:
    """Answers until it is killed."""
    known = json.loads(addresses)
    sockets = [socket.socket(fileno=int(one)) for one in descriptors]
    while True:
        for sock in select.select(sockets, [], [])[0]:
            message, who = sock.recvfrom(_QUESTION_BYTES)
            said = answer(message, known)
            if said is not None:
                with contextlib.suppress(OSError):
                    sock.sendto(said, who)


if __name__ == "__main__":
    main(*sys.argv[1:])
