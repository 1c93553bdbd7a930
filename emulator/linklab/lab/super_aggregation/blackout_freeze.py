"""Keeps a sender trying while its link is silent (super-aggregation, proxying-blackout-freeze).

The study freezes the sender by a window of 0. Linux' sender then still treats packets in flight as
lost (`tcp_retransmit_timer`), rightly, because an outage loses them. But it need not double its
timeout with each try and then still wait when the link is back. So the sender is told over another
link that the client is unreachable (ICMP). Upon that it restores its timeout (RFC 6069).
"""

from __future__ import annotations

import contextlib
import socket
from collections import defaultdict, deque
from typing import Final

from linklab.lab.kernel import socket_options
from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.netlink import SOCK_DIAG, Channel
from linklab.lab.multipath import sock_diag
from linklab.lab.network.lab import Lab
from linklab.lab.network.topology import SERVER_ADDRESS
from linklab.lab.player.player import Player
from linklab.lab.super_aggregation import other_way, tcp_segment
from linklab.lab.super_aggregation.other_way import TELLS_S
from linklab.lab.super_aggregation.tcp_segment import ACK, Segment
from linklab.models.model import Happening

PERIOD_S: Final = 0.02
"""The interval in which it is checked whether something arrived."""

LAST: Final = 4
"""The number of acknowledgements that messages quote. The sender only believes the last one that it
saw. The link may have lost later ones: a delayed one, and those in the uplink's queue."""

_ROOM_BYTES: Final = 4 << 20
_HEADERS_BYTES: Final = 120


class BlackoutFreeze:
    """Tells the senders over the link `of`, by way of the link `over`, whenever nothing has arrived
    for a round trip."""

    def __init__(self, lab: Lab, player: Player, *, of: str, over: str) -> None:
        self._lab, self._player, self._of = lab, player, of
        self._path = lab.links[of].path
        self._ends = (socket.inet_aton(SERVER_ADDRESS), socket.inet_aton(self._path.client.address))
        self._last: defaultdict[int, deque[Segment]] = defaultdict(lambda: deque(maxlen=LAST))
        self._silent: list[Segment] = []
        self._tell_s = 0.0
        self._received_bytes = 0
        self._quiet_from_s = 0.0
        with inside(lab.client.node.namespace):
            self._sockets = Channel(SOCK_DIAG)
            self._leaving = _leaving(self._path.device)
            self._other = other_way.raw_socket(
                lab.links[over].path.device,
                self._path.client.address,
                SERVER_ADDRESS,
                socket.IPPROTO_ICMP,
            )

    def look(self, due_s: float) -> float:
        """Decides, and returns when to decide again (`path_control.Control`)."""
        self._read()
        received_bytes = self._lab.client.received_bytes(self._path.device)
        if received_bytes != self._received_bytes:
            self._received_bytes, self._quiet_from_s = received_bytes, due_s
            if self._silent:
                self._silent = []
                self._player.write_event(due_s, self._of, Happening("sender", "goes on"))
        elif not self._silent:
            self._find_silent(due_s)
        if self._silent and due_s >= self._tell_s:
            self._tell_s = due_s + TELLS_S
            for one in self._silent:
                self._other.send(tcp_segment.unreachable(one, *self._ends))
        return due_s + PERIOD_S

    def _read(self) -> None:
        """Reads what has been sent since the last look."""
        while True:
            try:
                packet = self._leaving.recv(_HEADERS_BYTES)
            except BlockingIOError:
                return
            with contextlib.suppress(ValueError):  # Of another kind, or longer than its headers.
                segment = tcp_segment.parsed(packet)
                if segment.flags == ACK and not segment.payload:
                    self._last[segment.from_port].append(segment)

    def _find_silent(self, due_s: float) -> None:
        """Finds the connections that have been silent for a round trip."""
        answers = self._sockets.dump(sock_diag.all_connections())
        self._silent = [
            segment
            for one in sock_diag.downloads(answers, self._path.client.address)
            if due_s - self._quiet_from_s >= one.min_rtt_s
            for segment in self._last[one.port]
        ]
        if self._silent:
            self._player.write_event(due_s, self._of, Happening("sender", "frozen"))

    def close(self) -> None:
        self._sockets.close()
        self._leaving.close()
        self._other.close()


def _leaving(device: str) -> socket.socket:
    """Opens a socket that gets the first bytes of each packet leaving by a device, from the IP
    header on (packet(7))."""
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, 0)
    socket_options.take_leaving(packets, _HEADERS_BYTES)
    socket_options.give_room(packets, _ROOM_BYTES)
    packets.bind((device, socket_options.ALL_PROTOCOLS))
    return packets
