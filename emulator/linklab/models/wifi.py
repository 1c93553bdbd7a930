"""A Wi-Fi link: where the client is attached, what the channel carries there, who shares it. Pure.

path → signal → PHY rate → air time ← other stations, own uplink
                              ↓
          rates, never above those of the wired access below
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random

from linklab.core.link_state import LinkState
from linklab.models import phy
from linklab.models.air import ACCESS, Access, Air
from linklab.models.layer import STEP_S, Load
from linklab.models.loss import Losses, combined
from linklab.models.roaming import Roaming, RoamingSettings
from linklab.models.stations import ALONE, Stations, StationSettings

EDGE_DB = 5.0
"""How far below the slowest rate's threshold an access point is still heard: an assumption, at
which `phy.delivered_share` leaves a few hundred kbit/s."""


@dataclass(frozen=True, slots=True)
class WifiSettings:
    """A Wi-Fi network and the client's radio.

    `standard` is "g", "n" or "ac"; `width_mhz` and `streams` are what `phy.phy_rates` allows.
    `access` is what a packet costs besides its bytes, by default the standard's. Packets are
    lost with `loss_ratio`, or with `edge_loss_ratio` where the signal is below `edge_snr_db`
    over the noise of the channel (-5 to 40), in bursts of `loss_burst_packets` (1 to 1000; both
    ratios 0 to 1, together as `loss.gemodel` allows). The defaults are FACTS 4's assumptions;
    that the edge is where only BPSK and 1/2-rate QPSK work is one of ours.
    """

    standard: phy.Standard
    roaming: RoamingSettings
    width_mhz: int = 20
    streams: int = 1
    stations: StationSettings = ALONE
    access: Access | None = None
    loss_ratio: float = 0.001
    edge_loss_ratio: float = 0.01
    edge_snr_db: float = 9.0
    loss_burst_packets: float = 2.0


class Wifi:
    """Caps the rates below at what the air carries, adds its losses and its handovers.

    `forced` has handovers at stated times as `Roaming` takes them; `force` brings in another
    one while the link is running. The constructor raises ValueError as `phy.phy_rates` and
    `Roaming` do.
    """

    wants_load = True
    wants_connections = False

    def __init__(
        self,
        settings: WifiSettings,
        random: Random,
        forced: Iterable[tuple[float, str | None]] = (),
        step_s: float = STEP_S,
    ) -> None:
        self._settings = settings
        rates = phy.phy_rates(settings.standard, settings.width_mhz, settings.streams)
        self._slowest_bps = rates[0][1]
        join_dbm = phy.NOISE_DBM + phy.lowest_snr_db(settings.width_mhz)
        self._roaming = Roaming(settings.roaming, join_dbm, join_dbm - EDGE_DB, forced)
        self._stations = Stations(settings.stations, random)
        self._air = Air(settings.access or ACCESS[settings.standard], step_s)
        self._phy_bps = 0.0

    def force(self, t_s: float, target: str | None = None) -> None:
        """A handover as `Roaming.force` makes it."""
        self._roaming.force(t_s, target)

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        """The state as the Wi-Fi passes it on."""
        attached = self._roaming.at(t_s)
        available = 1 / (1 + self._stations.busy(t_s))
        self._air.observe(t_s, load, self._phy_bps)
        if attached.signal_dbm is None:
            return replace(
                state,
                up=state.up and attached.carrier,
                blackout=state.blackout or attached.carrier,
                access_point="",
                signal_dbm=None,
                lease=attached.lease,
            )
        snr_db = phy.snr_db(attached.signal_dbm)
        self._phy_bps = self._rate_bps(snr_db)
        down_bps, up_bps = self._air.rates_bps(self._phy_bps, available)
        losses = combined(Losses(state.loss_ratio, state.loss_burst_packets), self._losses(snr_db))
        return replace(
            state,
            down_rate_bps=max(1, min(state.down_rate_bps, round(down_bps))),
            up_rate_bps=max(1, min(state.up_rate_bps, round(up_bps))),
            loss_ratio=losses.ratio,
            loss_burst_packets=losses.burst_packets,
            access_point=attached.access_point,
            signal_dbm=float(round(attached.signal_dbm)),
            lease=attached.lease,
        )

    def next_s(self) -> float:
        """The next handover, station, beacon while walking, or step of the air."""
        return min(self._roaming.next_s(), self._stations.next_s(), self._air.next_s())

    def _rate_bps(self, snr_db: float) -> float:
        settings = self._settings
        rate = phy.phy_rate_bps(settings.standard, settings.width_mhz, settings.streams, snr_db)
        return rate or self._slowest_bps * phy.delivered_share(snr_db, settings.width_mhz)

    def _losses(self, snr_db: float) -> Losses:
        settings = self._settings
        in_channel_db = snr_db - phy.wider_db(settings.width_mhz)
        at_edge = in_channel_db < settings.edge_snr_db
        ratio = settings.edge_loss_ratio if at_edge else settings.loss_ratio
        return Losses(ratio, settings.loss_burst_packets)
