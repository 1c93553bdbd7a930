"""Sends the acknowledgements of one link's connections over another link (super-aggregation,
offloading-ACK).

A routing rule for the connections' address on their link does so. The rule exists while they
receive a download, when they send nothing but acknowledgements. Handshake and request use the link
itself. The server's route back to that address is still the link's.
"""

from __future__ import annotations

from typing import Final

from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.netlink import SOCK_DIAG, Channel
from linklab.lab.multipath import sock_diag
from linklab.lab.network.lab import Lab
from linklab.lab.player.player import Player
from linklab.models.model import Happening

PERIOD_S: Final = 0.1
"""The interval in which a connection that receives a download is looked for."""

_PRIORITY: Final = 50
"""A higher precedence than the links' rules (`lab/network/routes.py`)."""


class AckOffload:
    """Sends the acknowledgements of the link `of` over the link `over`, while that is up."""

    def __init__(self, lab: Lab, player: Player, *, of: str, over: str) -> None:
        self._lab, self._player, self._over = lab, player, over
        self._address = lab.links[of].path.client.address
        self._table = lab.links[over].path.table
        self._is_led = False
        with inside(lab.client.node.namespace):
            self._sockets = Channel(SOCK_DIAG)

    def look(self, due_s: float) -> float:
        """Decides, and returns when to decide again (`path_control.Control`)."""
        leads = self._lab.client.is_up(self._lab.links[self._over].path.device) and any(
            sock_diag.downloads(self._sockets.dump(sock_diag.all_connections()), self._address)
        )
        if leads != self._is_led:
            rule = rtnetlink.rule(
                self._table, _PRIORITY, source=f"{self._address}/32", deletes=not leads
            )
            self._lab.client.channel.request(rule)
            self._is_led = leads
            what = "led over it" if leads else "no longer led over it"
            self._player.write_event(due_s, self._over, Happening("acknowledgements", what))
        return due_s + PERIOD_S

    def close(self) -> None:
        self._sockets.close()
