"""Builds each link's model from the scenario: its base state and its layers. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from linklab.core.link_state import LinkState
from linklab.models import registry
from linklab.models.events import Event, Events
from linklab.models.layer import NO_LOAD, Layer, LinkModel, Load, Roams
from linklab.models.model import Making
from linklab.scenario import LinkSettings, Scenario


def base_state(link: LinkSettings) -> LinkState:
    """Returns a link's state by its settings, before any layer."""
    return LinkState(
        up=True,
        down_rate_bps=link.down_rate_bps,
        up_rate_bps=link.up_rate_bps,
        delay_s=link.rtt_s / 2,
        jitter_s=link.jitter_s,
        loss_ratio=link.loss_ratio,
        loss_burst_packets=link.loss_burst_packets,
        impair_down=link.impair_down,
        impair_up=link.impair_up,
    )


class ScenarioLink(LinkModel):
    """A link's model whose events can be added while it runs.

    The layer with access points carries out handovers, if the link has one. `zero_s` is the caller's
    time of the scenario's start.
    """

    def __init__(self, base: LinkState, layers: Sequence[Layer], events: Events) -> None:
        super().__init__(base, [*layers, events])
        self._events = events
        self._roaming = next((layer for layer in layers if isinstance(layer, Roams)), None)
        self._begun: list[Event] = []
        self._by_hand: list[Event] = []
        self.zero_s = 0.0
        self._now_s, self._due_s = 0.0, math.inf

    def at(self, t_s: float, load: Load = NO_LOAD) -> LinkState:
        """Returns the link's state at the caller's time `t_s`, which must never decrease."""
        own_s = self._now_s = self._since_zero(t_s)
        state = super().at(own_s, load)
        begun = self._events.begun()
        self._begun += begun
        handovers = [event.handover for event in begun if event.handover is not None]
        if not handovers or self._roaming is None:
            return state
        for target in handovers:
            self._roaming.force(own_s, None if target == "next" else target)
        return super().at(own_s, load)

    def next_s(self) -> float:
        """Returns the caller's time at which the state may change next; inf for never."""
        self._due_s = super().next_s()
        return self._due_s + self.zero_s

    def _since_zero(self, t_s: float) -> float:
        """Returns the seconds since the scenario's start. A due time is exactly the one that a layer
        gave: a time that rounding makes earlier would be due again for ever."""
        own_s = max(t_s - self.zero_s, self._now_s)
        return max(own_s, self._due_s) if t_s >= self._due_s + self.zero_s else own_s

    def change(self, event: Event, t_s: float) -> Event:
        """Applies an event to the link from `t_s` on, and returns it as recorded.

        Raises ValueError for a handover without a target.
        """
        if event.handover is not None and self._roaming is None:
            raise ValueError("no access points: a handover needs a scenario with a radio")
        happening = replace(event, at_s=self._since_zero(t_s))
        self._events.add(happening)
        self._by_hand.append(happening)
        return happening

    def take_back(self, event: Event) -> None:
        """Ends an event that `change` has applied."""
        self._events.end((event,))
        self._by_hand.remove(event)

    def restore(self) -> None:
        """Ends all events that `change` has applied; the link is as the scenario says."""
        self._events.end(frozenset(self._by_hand))
        self._by_hand = []

    def begun(self) -> list[Event]:
        """Returns the events that have begun since the last call."""
        begun, self._begun = self._begun, []
        return begun

    def ended(self) -> list[Event]:
        """Returns the events that have ended since the last call."""
        return self._events.ended()


def models(scenario: Scenario, seed: int) -> dict[str, ScenarioLink]:
    """Returns a new model for every link, at time 0, for the run with `seed`."""
    return {name: _model(scenario, name, seed) for name in scenario.links}


def _model(scenario: Scenario, name: str, seed: int) -> ScenarioLink:
    link = scenario.links[name]
    events = Events([event for event in scenario.events if event.link == name], scenario.step_s)
    made = Making(seed, name, scenario.step_s)
    layers = [
        registry.of_settings(settings).layer(settings, made)
        for settings in registry.stacked(link.models)
    ]
    return ScenarioLink(base_state(link), layers, events)
