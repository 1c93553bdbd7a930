"""Switches segmentation and receive offloads off: links must see packets, not super-packets.

By the SIOCETHTOOL ioctl of ethtool(8), which costs no process per interface.
"""

from __future__ import annotations

import array
import fcntl
import socket
import struct

SIOCETHTOOL = 0x8946
_SWITCHES = {"tso": 0x1F, "gso": 0x24, "gro": 0x2C}
"""Commands ETHTOOL_STSO, ETHTOOL_SGSO and ETHTOOL_SGRO (linux/ethtool.h)."""


def switch_off(interface: str) -> None:
    """Switches TSO, GSO and GRO of an interface of the calling thread's network namespace off.

    Raises OSError naming the switch that the driver refused.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name, command in _SWITCHES.items():
            value = array.array("B", struct.pack("II", command, 0))
            address, _ = value.buffer_info()
            request = struct.pack("16sP", interface.encode(), address)
            try:
                fcntl.ioctl(control, SIOCETHTOOL, request)
            except OSError as error:
                raise OSError(error.errno, f"{interface}: {name} off: {error.strerror}") from error
