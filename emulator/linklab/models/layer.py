"""Defines layers, which compute a link's state at one instant, and stacks them. Pure.

    base state → trace → spread → run-to-run spread → dual connectivity → slots → boost → pauses
    → on-off → radio and its air → carriers → RRC → events → what the player applies

A layer takes the state of the layers below it and changes a part of it. It uses no clock, socket or
file. Its caller (player, oracle or plot) gives the time and what the link has carried, and calls
again at `next_s` at the latest. Times never decrease.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from linklab.core.link_state import LinkState

STEP_S = 0.02
"""The default interval at which models that follow load or movement are evaluated."""


@dataclass(frozen=True, slots=True)
class Load:
    """A link's load: counters since the start, and the current queues.

    Bytes and packets are those that left a direction's rate queue, with Ethernet headers.

    Attributes:
        received_bytes: payload that arrived over all links together.
        connections: client ports of the TCP connections open over this link; empty unless a layer
            `wants_connections`.
    """

    down_bytes: int = 0
    down_packets: int = 0
    up_bytes: int = 0
    up_packets: int = 0
    down_backlog_bytes: int = 0
    up_backlog_bytes: int = 0
    received_bytes: int = 0
    connections: frozenset[int] = frozenset()


NO_LOAD = Load()


class Layer(Protocol):
    """A phenomenon over the layers below it.

    `wants_load` says that `apply` uses the load, so the caller must read it from the lab.
    `wants_connections` says the same of the open connections. Most layers use neither.
    """

    @property
    def wants_load(self) -> bool:
        return False

    @property
    def wants_connections(self) -> bool:
        return False

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        """Returns the state from `t_s` seconds after the start on. `t_s` must never decrease.

        It may be called at any time, also before `next_s`. Repeated calls with the same time and
        load give the same state.
        """
        ...

    def next_s(self) -> float:
        """Returns the latest time of the next call of `apply`, after its last call; inf for never."""
        ...


@runtime_checkable
class Roams(Protocol):
    """A layer with access points that accepts forced handovers."""

    def force(self, t_s: float, target: str | None = None) -> None:
        """Starts a handover at `t_s` to `target`, or to the strongest other one. Raises ValueError."""
        ...


class LinkModel:
    """A link's model: a base state and the layers over it, lowest first."""

    def __init__(self, base: LinkState, layers: Sequence[Layer] = ()) -> None:
        self._base = base
        self._layers = tuple(layers)

    @property
    def wants_load(self) -> bool:
        return any(layer.wants_load for layer in self._layers)

    @property
    def wants_connections(self) -> bool:
        return any(layer.wants_connections for layer in self._layers)

    def at(self, t_s: float, load: Load = NO_LOAD) -> LinkState:
        """Returns the link's state from `t_s` seconds after the start on. `t_s` must never decrease."""
        state = self._base
        for layer in self._layers:
            state = layer.apply(t_s, load, state)
        return state

    def next_s(self) -> float:
        """Returns when the state may change next; inf for never."""
        return min((layer.next_s() for layer in self._layers), default=math.inf)


class Steps:
    """Computes whole multiples of a step, so that times do not drift by repeated addition."""

    def __init__(self, step_s: float = STEP_S) -> None:
        self._step_s = step_s

    def after(self, t_s: float) -> float:
        """Returns the first multiple of the step after `t_s`."""
        number = math.floor(t_s / self._step_s + 1e-6) + 1
        return number * self._step_s
