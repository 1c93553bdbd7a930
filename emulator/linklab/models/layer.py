"""What a link is at one instant, and the layers that say so. Pure.

    base state → trace → run-to-run spread → on-off → radio and its air → carriers → RRC → events
    → what the player applies

A layer takes the state that the layers below it yield and changes what it is about. It knows
no clock, socket or file: whoever drives it, player, oracle or plot, says what time it is and
what the link has carried, and asks again at `next_s` at the latest. Times never run backwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from linklab.core.link_state import LinkState

STEP_S = 0.02
"""How often models that follow load or movement are asked unless a scenario says otherwise."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a link has carried up to now: counters since the start, and queues as they are.

    Bytes and packets are those that left the rate queue of a direction, with Ethernet headers.
    `received_bytes` is the payload that arrived over all links together. `connections` holds
    the client's ports of the TCP connections that are open over this link (empty unless a layer
    asks for them by `wants_connections`).
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
    """One phenomenon over the layers below it.

    `wants_load` says that `apply` looks at the load, so that whoever drives the model has to
    read it from the lab; `wants_connections` the same of the open connections.
    """

    @property
    def wants_load(self) -> bool: ...

    @property
    def wants_connections(self) -> bool: ...

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        """The state from `t_s` seconds after the start on; `t_s` never decreases.

        May be asked at any time, also earlier than `next_s`, and more than once at the same
        time with the same load: then it answers the same.
        """
        ...

    def next_s(self) -> float:
        """When it must be asked again at the latest, later than it was last asked; inf: never."""
        ...


@runtime_checkable
class Roams(Protocol):
    """A layer with access points, which can be told to go to another one."""

    def force(self, t_s: float, target: str | None = None) -> None:
        """A handover at `t_s` to `target` or the strongest other one. Raises ValueError."""
        ...


class LinkModel:
    """A link: a base state and the layers over it, first to last."""

    def __init__(self, base: LinkState, layers: Sequence[Layer] = ()) -> None:
        self._base = base
        self._layers = tuple(layers)

    @property
    def wants_load(self) -> bool:
        """Whether any layer looks at the load now."""
        return any(layer.wants_load for layer in self._layers)

    @property
    def wants_connections(self) -> bool:
        """Whether any layer looks at the open connections."""
        return any(layer.wants_connections for layer in self._layers)

    def at(self, t_s: float, load: Load = NO_LOAD) -> LinkState:
        """The link's state from `t_s` seconds after the start on; `t_s` never decreases."""
        state = self._base
        for layer in self._layers:
            state = layer.apply(t_s, load, state)
        return state

    def next_s(self) -> float:
        """When the state may change next by itself; inf for never."""
        return min((layer.next_s() for layer in self._layers), default=math.inf)


class Steps:
    """Whole multiples of a step, so that times do not drift by adding up."""

    def __init__(self, step_s: float = STEP_S) -> None:
        if not step_s > 0:
            raise ValueError(f"a step of {step_s} s is none; allowed: more than 0 s")
        self._step_s = step_s

    def after(self, t_s: float) -> float:
        """The first multiple of the step that lies after `t_s`."""
        number = math.floor(t_s / self._step_s + 1e-6) + 1
        return number * self._step_s
