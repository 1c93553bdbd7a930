"""Holds what a run reaches outside its lab, and the sockets that lead into it."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from linklab.lab.network.services import Outside


@dataclass(frozen=True)
class Reach:
    """What a run reaches outside, and the listening sockets of its proxies, in their order.

    They are open from before their ports are told, so no other program can take a port.
    """

    outside: Outside
    listeners: tuple[socket.socket, ...] = ()

    def close(self) -> None:
        """Gives the ports back."""
        for one in self.listeners:
            one.close()
