"""Switches segmentation and receive offloads off: links must see packets, not super-packets.

By ethtool's ioctl, as pyroute2 has it, which costs no process per interface.
"""

from __future__ import annotations

import contextlib

from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool

OFFLOADS = (
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
)
"""By their names in ethtool(8)."""


def switch_off(interface: str) -> None:
    """Switches `OFFLOADS` of an interface of the calling thread's network namespace off.

    Raises OSError naming the offload that the driver refused.
    """
    with contextlib.closing(IoctlEthtool(interface)) as ethtool:
        for name in OFFLOADS:
            try:
                ethtool.set_offload_flag(name, 0)
            except OSError as error:
                raise OSError(error.errno, f"{interface}: {name} off: {error.strerror}") from error
            except EthtoolError as error:
                raise OSError(f"{interface}: {name} off: {type(error).__name__}") from error
