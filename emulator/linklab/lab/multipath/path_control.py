"""Changes which links Multipath TCP uses during a download: eMPTCP and Single-Path mode.

`energy/path_usage.py` makes eMPTCP's decisions. This module reads the subflows' counters from the
kernel and applies the decisions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import takewhile
from typing import Final, Protocol

from linklab.core.frames import FRAME_BYTES, goodput_ratio
from linklab.core.link_kinds import LTE, WIFI
from linklab.energy.model import EnergyModel
from linklab.energy.path_schedule import RateChain, Use, by_the_second, schedule
from linklab.energy.path_usage import MARGIN, PHI, Observation, PathUsage
from linklab.lab.multipath.multipath import Multipath
from linklab.lab.multipath.path_use import link_of_kind
from linklab.lab.multipath.sock_diag import Subflow
from linklab.lab.network.lab import Lab
from linklab.lab.player.player import Player
from linklab.links import full_load
from linklab.models.model import Happening
from linklab.scenario import Scenario

WAITING_PERIOD_S: Final = 0.01
"""The interval in which a connection is looked for. Once there is one, the interval is its round
trip."""

CARRIER_PERIOD_S: Final = 0.1
"""The interval in which Single-Path mode checks the interfaces' carriers."""


_LEAST_BYTES: Final = round(FRAME_BYTES / MARGIN)
"""A rate needs at least this many bytes to be as exact as the margin it is compared with. Smaller
samples are extended, up to PHI round trips."""


class Control(Protocol):
    """Decides from time to time how links are used."""

    def look(self, due_s: float) -> float:
        """Decides at a time of the scenario. Returns when to decide again."""


def follow(control: Control, player: Player) -> None:
    """Makes the player call a control until the download ends."""

    def again(due_s: float) -> None:
        player.at(control.look(due_s), again)

    player.at(0.0, again)


class EnergyControl:
    """Controls links as eMPTCP: Wi-Fi first, LTE opened late, then suspended and resumed
    (MP_PRIO).

    It decides once per round trip of a link's handshake, and records its decisions as events. Rates
    are those of the interfaces. A subflow's own counters wait for missing data, so that a loss
    would look like an outage.
    """

    def __init__(
        self,
        lab: Lab,
        multipath: Multipath,
        player: Player,
        model: EnergyModel,
        *,
        wifi: str,
        lte: str,
        forecasts_lte: bool,
    ) -> None:
        """Takes links by name, and how LTE's rate is estimated (`PathUsage`). From now on connections
        use Wi-Fi alone."""
        self._lab, self._multipath, self._player = lab, multipath, player
        self._wifi, self._lte = wifi, lte
        self._usage = PathUsage(model, forecasts_lte=forecasts_lte)
        self._looked: dict[str, tuple[float, int]] = {}
        self._periods_s: dict[str, float] = {}
        self._opened_s = 0.0
        self._is_lte_known = False
        multipath.use(wifi)

    def look(self, due_s: float) -> float:
        subflows = [
            (self._multipath.link_of(one.tcp.address), one)
            for one in self._multipath.subflows()
            if one.tcp.min_rtt_s > 0
        ]
        if not subflows:
            self._rest()
            return due_s + WAITING_PERIOD_S
        if not self._periods_s:
            self._opened_s = due_s
        for link, one in subflows:
            if link not in self._periods_s:
                self._periods_s[link] = one.tcp.min_rtt_s
                self._looked[link] = (due_s, self._received_bytes(link))
        used = self._usage.uses_lte
        if self._usage.look(self._seen(subflows, due_s)) != used:
            self._switch(due_s)
        return due_s + self._periods_s.get(self._wifi, WAITING_PERIOD_S)

    def _rest(self) -> None:
        """Resets the state when no connection is open."""
        if self._periods_s:
            if self._is_lte_known:
                self._multipath.leave(self._lte)
                self._is_lte_known = False
            self._usage.ended()
            self._periods_s.clear()

    def _received_bytes(self, link: str) -> int:
        return self._lab.client.received_bytes(self._lab.links[link].path.device)

    def _rate_bps(self, link: str, due_s: float) -> float | None:
        """Returns the link's rate since its last sample, None before a sample is due."""
        if link not in self._periods_s:
            return None
        since_s, count = self._looked[link]
        passed_s, received_bytes = due_s - since_s, self._received_bytes(link) - count
        periods = passed_s / self._periods_s[link]
        if periods < 0.999 or (received_bytes < _LEAST_BYTES and periods < PHI):
            return None
        self._looked[link] = (due_s, count + received_bytes)
        ratio = goodput_ratio(self._lab.links[link].path.families)
        return received_bytes * 8 / passed_s * ratio

    def _seen(self, subflows: Iterable[tuple[str, Subflow]], due_s: float) -> Observation:
        over_wifi = [one for link, one in subflows if link == self._wifi]
        received: Counter[int] = Counter()
        for one in over_wifi:
            received[one.token] += one.tcp.received_bytes
        now_s = max((max(one.tcp.receive_rtt_s, one.tcp.rtt_s) for one in over_wifi), default=0.0)
        is_idle = all(one.tcp.quiet_s > now_s for one in over_wifi)
        wifi = self._lab.links[self._wifi]
        return Observation(
            wifi_bps=self._rate_bps(self._wifi, due_s),
            lte_bps=self._rate_bps(self._lte, due_s),
            most_bytes=max(received.values(), default=0),
            open_s=due_s - self._opened_s,
            rtt_s=self._periods_s.get(self._wifi, 0.0),
            is_idle=is_idle,
            has_wifi=not is_idle or self._lab.client.is_up(wifi.path.device),
        )

    def _switch(self, due_s: float) -> None:
        if not self._usage.uses_lte:
            what = "suspended"
            self._multipath.set_backup(self._lte, backup=True)
        elif self._is_lte_known:  # Its subflow may not exist yet.
            what = "resumed"
            self._multipath.set_backup(self._lte, backup=False)
        else:
            what = "opened"
            self._multipath.use(self._lte)
            self._is_lte_known = True
        rates = (self._usage.wifi.known_bps / 1e6, self._usage.lte.known_bps / 1e6)
        detail = "{}, expecting {:.2f} Mbit/s of Wi-Fi, {:.2f} of LTE".format(what, *rates)
        self._player.write_event(due_s, self._lte, Happening("subflow", detail))


class ScheduleControl:
    """Follows a schedule of least energy, with one decision per second. It learns how links' rates
    change from the scenario's models with another seed. A resting link is assumed to be as fast as
    it was last."""

    def __init__(
        self, lab: Lab, multipath: Multipath, player: Player, model: EnergyModel, scenario: Scenario
    ) -> None:
        """Makes connections use Wi-Fi, and LTE from when the schedule first wants it: its subflow's
        handshake wakes the radio. The schedule then decides which of them carries data."""
        self._lab, self._multipath, self._player = lab, multipath, player
        self._links = {kind.name: link_of_kind(scenario.links, kind) for kind in (WIFI, LTE)}
        learnt = _rates_of_another_run(scenario)
        self._chains = {kind: RateChain(learnt[link]) for kind, link in self._links.items()}
        self._schedule = schedule(model, self._chains[WIFI.name], self._chains[LTE.name])
        self._levels = {kind: chain.usual for kind, chain in self._chains.items()}
        self._counts = self._received_bytes()
        self._used = self._wanted(is_awake=False)
        self._opened = {WIFI.name, *self._used.value}
        for kind in sorted(self._opened):
            multipath.use(self._links[kind], backup=kind not in self._used.value)

    def _received_bytes(self) -> dict[str, int]:
        return {
            kind: self._lab.client.received_bytes(self._lab.links[link].path.device)
            for kind, link in self._links.items()
        }

    def _wanted(self, *, is_awake: bool) -> Use:
        return self._schedule[self._levels[WIFI.name], self._levels[LTE.name], is_awake]

    def look(self, due_s: float) -> float:
        before, self._counts = self._counts, self._received_bytes()
        if due_s > 0:
            for kind in self._used.value:
                ratio = goodput_ratio(self._lab.links[self._links[kind]].path.families)
                rate_bps = (self._counts[kind] - before[kind]) * 8 * ratio
                self._levels[kind] = self._chains[kind].known(rate_bps)
        wanted = self._wanted(is_awake=LTE.name in self._used.value)
        for kind in wanted.value ^ self._used.value:
            link, rests = self._links[kind], kind not in wanted.value
            if kind in self._opened:
                self._multipath.set_backup(link, backup=rests)
                what = "suspended" if rests else "resumed"
            else:
                self._opened.add(kind)
                self._multipath.use(link)
                what = "opened"
            self._player.write_event(due_s, link, Happening("subflow", what))
        self._used = wanted
        return due_s + 1.0


_LEARNT_S: Final = 600
_ANOTHER_SEED: Final = 1_000_003


def _rates_of_another_run(scenario: Scenario) -> dict[str, list[float]]:
    """Returns each link's rate in each of the first seconds, with a seed that no run uses."""
    rates_over_time = [
        (span.start_s, span.end_s, span.payload_bytes_per_s)
        for span in takewhile(
            lambda span: span.start_s < _LEARNT_S,
            full_load.spans(scenario, _ANOTHER_SEED, scenario.links),
        )
    ]
    return {
        link: by_the_second(
            ((start_s, end_s, rates[link] * 8) for start_s, end_s, rates in rates_over_time),
            _LEARNT_S,
        )
        for link in scenario.links
    }


class SinglePath:
    """Uses one link at a time (eMPTCP 2.1, after Paasch et al.). It changes to another link when
    the interface in use goes down, and returns when the interface is up again. It closes the old
    subflow once the peer has confirmed the new one, because a connection without subflows would
    end."""

    def __init__(self, lab: Lab, multipath: Multipath, player: Player, *, first: str) -> None:
        """Makes connections use the link `first` alone."""
        self._lab, self._multipath, self._player = lab, multipath, player
        self._order = sorted(lab.links, key=lambda link: link != first)
        self._used, self._left = first, ""
        multipath.use(first)

    def look(self, due_s: float) -> float:
        if self._left and self._is_established(self._used):
            self._multipath.leave(self._left)
            self._left = ""
        up = (
            link
            for link in self._order
            if self._lab.client.is_up(self._lab.links[link].path.device)
        )
        wanted = next(up, self._used)
        if self._left and wanted == self._left:
            self._left, self._used = self._used, wanted
        elif not self._left and wanted != self._used:
            self._left, self._used = self._used, wanted
            self._multipath.use(wanted)
            self._player.write_event(due_s, wanted, Happening("subflow", "opened"))
        return due_s + CARRIER_PERIOD_S

    def _is_established(self, link: str) -> bool:
        return any(
            one.is_established and self._multipath.link_of(one.tcp.address) == link
            for one in self._multipath.subflows()
        )
