"""Switches segmentation and receive offloads, by ethtool's ioctl (linux/ethtool.h), without a
process.

Offloads are off, because links must see packets and not aggregates. If packets are recorded,
checksum offload is off too, because a virtual cable never fills in checksums.
"""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
from collections.abc import Mapping

OFFLOADS = {
    "tcp-segmentation-offload": 0x1F,
    "generic-segmentation-offload": 0x24,
    "generic-receive-offload": 0x2C,
}
"""The ioctl commands that set offloads (ETHTOOL_STSO and others), by the names of ethtool(8)."""

CHECKSUMS = {"tx-checksumming": 0x17}
"""The same for checksums of sent packets (ETHTOOL_STXCSUM)."""

_SIOCETHTOOL = 0x8946
_VALUE = struct.Struct("=II")


def switch_off(interface: str, offloads: Mapping[str, int] = OFFLOADS) -> None:
    """Switches off offloads of an interface in the calling thread's network namespace.

    Raises OSError naming the offload that the driver refused.
    """
    _switch(interface, offloads, on=False)


def switch_on(interface: str, name: str) -> None:
    """Switches on one of `OFFLOADS`. Raises OSError."""
    _switch(interface, {name: OFFLOADS[name]}, on=True)


def _switch(interface: str, offloads: Mapping[str, int], *, on: bool) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for name, command in offloads.items():
            value = array.array("B", _VALUE.pack(command, on))
            request = struct.pack("16sP", interface.encode(), value.buffer_info()[0]) + bytes(16)
            try:
                fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
            except OSError as error:
                why = os.strerror(error.errno or 0)
                raise OSError(
                    error.errno, f"{interface}: {name} {'on' if on else 'off'}: {why}"
                ) from error
