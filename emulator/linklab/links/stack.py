"""From a scenario to its link models: which layers each link has, over which base. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from linklab.core.link_state import LinkState
from linklab.models.between_runs import BetweenRuns
from linklab.models.carriers import Carriers
from linklab.models.events import Event, Events
from linklab.models.layer import NO_LOAD, Layer, LinkModel, Load
from linklab.models.on_off import OnOff
from linklab.models.rrc import Rrc
from linklab.models.seeds import quantile_for, random_for
from linklab.models.trace import TracePlayback
from linklab.models.wifi import Wifi
from linklab.scenario import LinkSettings, Scenario


def base_state(link: LinkSettings) -> LinkState:
    """A link as its settings say, before any layer."""
    return LinkState(
        up=True,
        down_rate_bps=link.down_rate_bps,
        up_rate_bps=link.up_rate_bps,
        delay_s=link.rtt_s / 2,
        jitter_s=link.jitter_s,
        loss_ratio=link.loss_ratio,
        loss_burst_packets=link.loss_burst_packets,
    )


class ScenarioLink(LinkModel):
    """A link's model with its events at hand, so that it can be changed while it runs.

    A handover is an event that the Wi-Fi layer carries out: `wifi` is None on other links.
    """

    def __init__(
        self, base: LinkState, layers: Sequence[Layer], events: Events, wifi: Wifi | None
    ) -> None:
        super().__init__(base, [*layers, events])
        self._events = events
        self._wifi = wifi
        self._begun: list[Event] = []

    def at(self, t_s: float, load: Load = NO_LOAD) -> LinkState:
        """The link's state from `t_s` seconds after the start on; `t_s` never decreases."""
        state = super().at(t_s, load)
        begun = self._events.begun()
        self._begun += begun
        handovers = [event.handover for event in begun if event.handover is not None]
        if not handovers or self._wifi is None:
            return state
        for target in handovers:
            self._wifi.force(t_s, None if target == "next" else target)
        return super().at(t_s, load)

    def change(self, event: Event, t_s: float) -> None:
        """Lets an event happen to the link from `t_s` on. Raises ValueError for a handover
        to nowhere."""
        if event.handover is not None and self._wifi is None:
            raise ValueError("no access points: a handover needs a scenario with a radio")
        self._events.add(replace(event, at_s=t_s))

    def begun(self) -> list[Event]:
        """The events that have begun since this was last asked."""
        begun, self._begun = self._begun, []
        return begun

    def ended(self) -> list[Event]:
        """The events that have ended since this was last asked."""
        return self._events.ended()


def models(scenario: Scenario, seed: int) -> dict[str, ScenarioLink]:
    """Every link's model for the run with `seed`. Each call makes new ones, at time zero."""
    return {name: _model(scenario, name, seed) for name in scenario.links}


def _model(scenario: Scenario, name: str, seed: int) -> ScenarioLink:
    link = scenario.links[name]
    events = Events([event for event in scenario.events if event.link == name], scenario.step_s)
    layers: list[Layer] = []
    wifi = None
    if link.trace is not None:
        random = random_for(seed, name, "trace")
        layers.append(TracePlayback(link.trace.samples, link.trace.settings, random))
    if link.between_runs:
        layers.append(BetweenRuns(link.between_runs, quantile_for(seed, name, "between runs")))
    if link.on_off is not None:
        layers.append(OnOff(link.on_off, random_for(seed, name, "on off")))
    if link.wifi is not None:
        wifi = Wifi(link.wifi, random_for(seed, name, "wifi"), step_s=scenario.step_s)
        layers.append(wifi)
    if link.carriers is not None:
        random = random_for(seed, name, "carriers")
        layers.append(Carriers(link.carriers, random, scenario.step_s))
    if link.rrc is not None:
        layers.append(Rrc(link.rrc, scenario.step_s))
    return ScenarioLink(base_state(link), layers, events, wifi)
