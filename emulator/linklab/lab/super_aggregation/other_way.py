"""Helps a connection over another link: its acknowledgements leave there, and a sender whose link is
silent is told so there (super-aggregation, offloading-ACK and proxying-blackout-freeze)."""

from __future__ import annotations

import contextlib
import socket
from typing import Final

from linklab.lab.kernel import socket_options
from linklab.lab.super_aggregation import tcp_segment
from linklab.lab.super_aggregation.tcp_segment import Segment

TELLS_S: Final = 0.1
"""The interval of messages to the sender. Linux' timeouts are at least twice that (TCP_RTO_MIN)."""

BOTH_S: Final = 1.0
"""How long after a silence acknowledgements leave over both links."""

PACKETS: Final = 12
"""The number of packets that are acknowledged at once (note 4)."""


def raw_socket(device: str, address: str, server: str, protocol: int) -> socket.socket:
    """Opens a socket that sends packets of a protocol by a device, from this address to the server
    (raw(7)). It is never read. Raises OSError."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)
    socket_options.drop_all(raw)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    raw.bind((address, 0))
    raw.connect((server, 0))
    return raw


class OtherWay:
    """Sends by the other link's device, in the name of the connection's address. Times are of
    `time.monotonic`."""

    packets: Final = PACKETS

    def __init__(self, device: str, address: str, server: str) -> None:
        self._ends = (socket.inet_aton(server), socket.inet_aton(address))
        self._segments = raw_socket(device, address, server, socket.IPPROTO_TCP)
        self._messages = raw_socket(device, address, server, socket.IPPROTO_ICMP)
        self._trip_s = 0.0
        self._alone_from_s = 0.0
        self._is_silent = False
        self.due_s: float | None = None
        """The time of the next message to the sender, None before the first data."""

    def opened(self, trip_s: float) -> None:
        """Sets the round trip time, after which the connection's link counts as silent."""
        self._trip_s = trip_s

    def heard(self, now_s: float) -> bool:
        """Notes that data arrived. Returns whether the link was silent before."""
        was_silent, self._is_silent = self._is_silent, False
        if was_silent:
            self._alone_from_s = now_s + BOTH_S
        self.due_s = now_s + self._trip_s
        return was_silent

    def is_silent(self, now_s: float) -> bool:
        """Tells whether to tell the sender now that its link is silent."""
        if self.due_s is None or now_s < self.due_s:
            return False
        self._is_silent = True
        self.due_s = now_s + TELLS_S
        return True

    def takes(self, packet: bytes, now_s: float) -> bool:
        """Sends an acknowledgement. Returns whether that is enough. If the sender was silent, the
        other link may have lost acknowledgements. Then they leave over both links."""
        with contextlib.suppress(OSError):  # A link that is down loses it.
            self._segments.send(packet)
            return not self._is_silent and now_s >= self._alone_from_s
        return False

    def tell(self, last: Segment) -> None:
        """Tells the sender of the data that `last` acknowledges that the client is unreachable. Upon
        that it restores its timeout (RFC 6069), and goes on soon after the silence."""
        with contextlib.suppress(OSError):  # A link that is down loses it.
            self._messages.send(tcp_segment.unreachable(last, *self._ends))

    def close(self) -> None:
        self._segments.close()
        self._messages.close()
