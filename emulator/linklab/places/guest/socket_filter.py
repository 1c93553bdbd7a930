"""The system calls by which a guest could reach a program of the host, refused (seccomp).

A read-only mount, Landlock and a network namespace all let a socket be connected to that has a path.
A guest makes no sockets but pairs of its own (streams, which cannot be led elsewhere): so it is
refused to make others, and to connect. Pure.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence
from typing import Final

# linux/bpf_common.h, of words: load; jump if equal, if not less; and; return.
_LOAD, _IS_EQUAL, _IS_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06

# struct seccomp_data: where the call's number, the processor and the second argument lie.
_NUMBER, _PROCESSOR, _SECOND_ARGUMENT = 0, 4, 24

_X86_64: Final = 0xC000003E
_OTHER_NUMBERS: Final = 0x40000000
"""From here on the numbers are those of x32."""

_SOCKET, _CONNECT, _SOCKETPAIR, _IO_URING_SETUP = 41, 42, 53, 425
_KIND_MASK, _STREAM = 0xF, 1

_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | errno.EPERM


def _program() -> Sequence[tuple[int, int, int, int]]:
    """Steps: what is done, how many steps are left out if it is so and if not, and with what."""
    return (
        (_LOAD, 0, 0, _PROCESSOR),
        (_IS_EQUAL, 0, 10, _X86_64),
        (_LOAD, 0, 0, _NUMBER),
        (_IS_LEAST, 8, 0, _OTHER_NUMBERS),
        (_IS_EQUAL, 7, 0, _SOCKET),
        (_IS_EQUAL, 6, 0, _CONNECT),
        (_IS_EQUAL, 5, 0, _IO_URING_SETUP),
        (_IS_EQUAL, 0, 3, _SOCKETPAIR),
        (_LOAD, 0, 0, _SECOND_ARGUMENT),
        (_AND, 0, 0, _KIND_MASK),
        (_IS_EQUAL, 0, 1, _STREAM),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    )


FILTER: Final = b"".join(struct.pack("=HBBI", *step) for step in _program())
"""What seccomp(2) and bwrap(1) take, as bytes."""
