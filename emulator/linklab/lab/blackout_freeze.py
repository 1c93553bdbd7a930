"""A sender that is frozen while a link is silent (super-aggregation, proxying-blackout-freeze).

Over another link it gets acknowledgements with a window of 0. Linux' sender, though, takes what is on
its way for lost when that is late, with a window of 0 as without (`tcp_retransmit_timer`). So what came
last is acknowledged a little at a time: its timer begins anew with each. The last packets that came
before the silence can be used for that, for the link lost their acknowledgements. With the last part
the window is opened: from then on the sender takes its timeouts like any other, which with a window
of 0 would each make its window half as large.

The last acknowledgement of all is sent over the silent link again and again. When it comes through,
the link is back, and the sender goes on with the window that it had: where it had timeouts meanwhile,
the acknowledgement's timestamp shows that it is for what was sent before them (the Eifel algorithm,
RFC 3522).
"""

from __future__ import annotations

import contextlib
import socket
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from typing import Final

from linklab.core.frames import SEGMENT_BYTES
from linklab.lab import sock_diag, socket_options, tcp_segment
from linklab.lab.namespace import inside
from linklab.lab.netlink import SOCK_DIAG, Channel
from linklab.lab.network import Lab
from linklab.lab.player import Player
from linklab.lab.tcp_segment import ACK, Segment
from linklab.lab.topology import SERVER_ADDRESS
from linklab.models.model import Happening

PERIOD_S: Final = 0.02
"""How often it is looked whether something came, and the silent link is tried."""

FREEZES_S: Final = 0.1
"""How often the sender is told to wait: no timeout of Linux is shorter than twice that (TCP_RTO_MIN)."""

STEPS: Final = 30
"""How often it is told at most: for 3 s; the blackouts of figure 13 last 2 s."""

_UNSEEN_RTT: Final = 0.4
"""The part of a round trip before the silence in which acknowledgements were lost for sure: what came
in it left the server when the link was there, and was on its way for half of one."""

_ROOM_BYTES: Final = 4 << 20
_HEADERS_BYTES: Final = 120
_REMEMBERED: Final = 4096


@dataclass
class Frozen:
    """A connection whose sender waits: its last acknowledgement, how much of what that says the sender
    has not been told, and how much it is told at a time."""

    last: Segment
    kept_bytes: int
    step_bytes: int

    def told(self) -> Segment:
        """What the sender is told next, but for what is kept: with a window of 0, unless it is the last
        part."""
        is_last = self.kept_bytes <= self.step_bytes
        window = self.last.window if is_last else 0
        known = self.last.acknowledged - self.kept_bytes
        return replace(self.last, acknowledged=known, window=window)


Sent = deque[tuple[float, Segment]]
"""Acknowledgements and when they were seen to leave, as scenario time in seconds."""


def frozen(sent: Sent, unseen_from_s: float) -> Frozen:
    """What is left to tell a sender that has not seen what was sent from a time on."""
    _, last = sent[-1]
    unseen = (one.acknowledged for at_s, one in sent if at_s > unseen_from_s)
    last_number = last.acknowledged
    kept_bytes = max(
        (last_number - tcp_segment.unwrapped(n, last_number) for n in unseen), default=0
    )
    return Frozen(last, kept_bytes, max(SEGMENT_BYTES, kept_bytes // STEPS))


class BlackoutFreeze:
    """Freezes what comes over the link `of`, by way of the link `over`, whenever nothing has come for
    a round trip."""

    def __init__(self, lab: Lab, player: Player, *, of: str, over: str) -> None:
        """Links by name."""
        self._lab, self._player, self._of = lab, player, of
        self._path = lab.links[of].path
        self._ends = (socket.inet_aton(self._path.client.address), socket.inet_aton(SERVER_ADDRESS))
        self._sent: defaultdict[int, Sent] = defaultdict(lambda: deque(maxlen=_REMEMBERED))
        self._frozen: list[Frozen] = []
        self._tell_s = 0.0
        self._received_bytes = 0
        self._quiet_from_s = 0.0
        with inside(lab.client.node.namespace):
            self._sockets = Channel(SOCK_DIAG)
            self._leaving = _leaving(self._path.device)
            self._silent, self._other = (
                _way(lab.links[way].path.device, self._path.client.address) for way in (of, over)
            )

    def look(self, due_s: float) -> float:
        """Looks and decides; when to look again (`path_control.Control`)."""
        self._read(due_s)
        received_bytes = self._lab.client.received_bytes(self._path.device)
        if received_bytes != self._received_bytes:
            self._received_bytes, self._quiet_from_s = received_bytes, due_s
            if self._frozen:
                self._frozen = []
                self._player.write_event(due_s, self._of, Happening("sender", "goes on"))
        elif not self._frozen:
            self._freeze(due_s)
        else:
            for one in self._frozen:
                self._send(self._silent, one.last)
        if self._frozen and due_s >= self._tell_s:
            self._tell_s = due_s + FREEZES_S
            self._tell()
        return due_s + PERIOD_S

    def _read(self, due_s: float) -> None:
        """Takes what has been sent since the last look."""
        while True:
            try:
                packet = self._leaving.recv(_HEADERS_BYTES)
            except BlockingIOError:
                return
            with contextlib.suppress(ValueError):  # Of another kind, or longer than its headers.
                segment = tcp_segment.parsed(packet)
                if segment.flags == ACK and not segment.payload:
                    self._sent[segment.from_port].append((due_s, segment))

    def _freeze(self, due_s: float) -> None:
        """Finds those that have been silent for a round trip."""
        answers = self._sockets.dump(sock_diag.all_connections())
        for one in sock_diag.downloads(answers, self._path.client.address):
            if one.port in self._sent and due_s - self._quiet_from_s >= one.min_rtt_s:
                unseen_from_s = self._quiet_from_s - _UNSEEN_RTT * one.min_rtt_s
                self._frozen.append(frozen(self._sent[one.port], unseen_from_s))
        if self._frozen:
            self._sent.clear()
            self._player.write_event(due_s, self._of, Happening("sender", "frozen"))

    def _tell(self) -> None:
        """Tells the senders to wait, by another part of what they do not know to have come, and with the
        last one that they need not."""
        for one in self._frozen:
            if one.kept_bytes > 0:
                self._send(self._other, one.told())
                one.kept_bytes -= one.step_bytes

    def _send(self, way: socket.socket, segment: Segment) -> None:
        way.send(tcp_segment.packed(segment, *self._ends))

    def close(self) -> None:
        """Closes its sockets."""
        self._sockets.close()
        for one in (self._leaving, self._silent, self._other):
            one.close()


def _leaving(device: str) -> socket.socket:
    """A socket that gets the first bytes of each packet that leaves by a device, from IP's header on
    (packet(7))."""
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, 0)
    socket_options.take_leaving(packets, _HEADERS_BYTES)
    socket_options.give_room(packets, _ROOM_BYTES)
    packets.bind((device, socket_options.ALL_PROTOCOLS))
    return packets


def _way(device: str, address: str) -> socket.socket:
    """A socket whose segments leave by a device, from this address to the server (raw(7)). It is never
    read."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    socket_options.drop_all(raw)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    raw.bind((address, 0))
    raw.connect((SERVER_ADDRESS, 0))
    return raw
