"""Models a Wi-Fi link: access points, the channel's rate, other stations. Pure.

path → signal → PHY rate → air time ← other stations, own uplink
                              ↓
          rates, never above those of the wired access below
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from linklab.core.link_kinds import WIFI
from linklab.core.link_state import LinkState
from linklab.models import phy, roaming, stations
from linklab.models.air import ACCESS, ACCESS_BG, Air, AirCost
from linklab.models.layer import STEP_S, Layer, Load
from linklab.models.loss import Losses, check_bursts, combined
from linklab.models.model import Around, Happening, Model, Stage
from linklab.models.roaming import Roaming, RoamingSettings
from linklab.models.stations import ALONE, Stations, StationSettings
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import choice, count, measure, number, one_named, ratio
from linklab.schema.rows import Inner, Mappings, Row, Table

EDGE_DB = 5.0
"""An access point is lost at this distance below the slowest rate's threshold, an assumption. There
`phy.delivered_share` leaves a few hundred kbit/s."""


@dataclass(frozen=True, slots=True)
class WifiSettings:
    """A Wi-Fi network and the client's radio. The loss defaults are assumption 4.

    Attributes:
        standard: "g", "n" or "ac".
        width_mhz, streams: as `phy.phy_rates` allows.
        access: air time of a packet besides its bytes; None for the standard's.
        loss_ratio: share of packets lost (0 to 1).
        edge_loss_ratio: the same if the signal-to-noise ratio is below `edge_snr_db`.
        edge_snr_db: -5 to 40. Below the default only BPSK and 1/2-rate QPSK work, which is our
            assumption for the edge.
        loss_burst_packets: 1 to 1000, as `loss.gemodel` allows.
    """

    standard: phy.Standard
    roaming: RoamingSettings
    width_mhz: int = 20
    streams: int = 1
    stations: StationSettings = ALONE
    access: AirCost | None = None
    loss_ratio: float = 0.001
    edge_loss_ratio: float = 0.01
    edge_snr_db: float = 9.0
    loss_burst_packets: float = 2.0


class Wifi(Layer):
    """Limits the rates of the layers below to the channel's, and adds losses and handovers.

    `forced` has handovers at given times, as for `Roaming`. `force` adds one while the link is
    running. Raises ValueError as `phy.phy_rates` and `Roaming` do.
    """

    wants_load = True

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
        self._access = settings.access or ACCESS[settings.standard]
        self._air = Air(self._access, step_s)
        self._phy_bps = 0.0

    def force(self, t_s: float, target: str | None = None) -> None:
        self._roaming.force(t_s, target)

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        attached = self._roaming.at(t_s)
        busy = self._stations.busy(t_s)
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
        down_bps, up_bps = self._air.rates_bps(self._phy_bps, self._available(busy))
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
        """Returns the time of the next change: handover, station, beacon while walking, or step."""
        return min(self._roaming.next_s(), self._stations.next_s(), self._air.next_s())

    def _available(self, busy: int) -> float:
        """Returns the share of the time that `busy` other stations leave.

        All stations access the channel equally often, so slow stations use more air time (Heusse,
        section II).
        """
        others_bps = self._settings.stations.rate_bps
        if others_bps is None:
            return 1 / (1 + busy)
        own_s = self._access.turn_s(max(self._phy_bps, self._slowest_bps))
        return own_s / (own_s + busy * self._access.turn_s(others_bps))

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


def _check(radio: Mapping, settings: WifiSettings) -> None:
    try:
        phy.phy_rates(settings.standard, settings.width_mhz, settings.streams)
    except ValueError as error:
        radio.fail("streams" if radio.has("streams") else "width", str(error))
    if settings.access is not None and settings.standard != "g":
        radio.fail("cell", "only 802.11g shares a cell with 802.11b; allowed: pure")
    check_bursts(radio, "loss", settings.loss_ratio, settings.loss_burst_packets)
    check_bursts(radio, "edge_loss", settings.edge_loss_ratio, settings.loss_burst_packets)


RADIO: Final = Table(
    WifiSettings,
    (
        Row(
            "standard",
            "standard",
            choice("g", "n", "ac"),
            "802.11g, 802.11n or 802.11ac",
            needed=True,
        ),
        Row(
            "width",
            "width_mhz",
            one_named({20: "20 MHz", 40: "40 MHz", 80: "80 MHz"}),
            "width of the channel: n has 20 and 40 MHz, ac all",
        ),
        Row("streams", "streams", count(1, 8), "spatial streams: n has up to 4, ac up to 8"),
        Row(
            "cell",
            "access",
            one_named({None: "pure", ACCESS_BG: "mixed"}),
            "mixed: 802.11b devices share the channel of 802.11g",
        ),
        Row("loss", "loss_ratio", ratio(), "downlink packets lost, added to the link's loss"),
        Row("edge_loss", "edge_loss_ratio", ratio(), "the same where the signal is weak"),
        Row(
            "edge_snr",
            "edge_snr_db",
            measure("dB", -5.0, 40.0),
            "the signal is weak below this ratio to the noise",
        ),
        Row("loss_burst", "loss_burst_packets", number(1.0, 1000.0), "mean packets lost in a row"),
        Inner("roaming", roaming.TABLE),
    ),
    _check,
    about="The access points, the channel, and other stations.",
)

_ROW: Final = Row(
    "radio", "radio", RADIO, "access points and channel; the link's rates become upper limits"
)

_STATIONS: Final = Row(
    "stations", "stations", stations.TABLE, "other stations on the channel; needs `radio`"
)


def _read(link: Mapping, around: Around) -> WifiSettings | None:
    if not link.has(_ROW.key):
        if link.has(_STATIONS.key):
            link.fail(_STATIONS.key, "need a channel to share; needed: radio")
        return None
    radio = link.sub(_ROW.key, RADIO.keys)
    settings = RADIO.of(radio)
    roaming.check_names(radio, settings.roaming, around.nodes)
    if not link.has(_STATIONS.key):
        return settings
    return replace(settings, stations=stations.TABLE.read(link, _STATIONS.key))


def _write(settings: WifiSettings | None) -> Mappings:
    if settings is None:
        return {}
    return {
        _ROW.key: RADIO.write(settings),
        _STATIONS.key: stations.TABLE.write(settings.stations),
    }


def _summary(settings: WifiSettings) -> list[tuple[str, str]]:
    points = len(settings.roaming.access_points)
    places = f"{points} access point{'s' if points > 1 else ''}"
    found = [(_ROW.key, f"802.11{settings.standard}, {places}")]
    if others := settings.stations.count:
        found.append((_STATIONS.key, f"{others} other station{'s' if others > 1 else ''}"))
    return found


def _transitions(before: LinkState, after: LinkState) -> list[Happening]:
    found = []
    if after.access_point != before.access_point:
        if after.access_point:
            found.append(Happening("associated", after.access_point))
        else:
            found.append(Happening("handover", before.access_point))
    if before.lease != after.lease:
        found.append(Happening("address", str(after.lease)))
    return found


MODEL: Final = Model(
    WifiSettings,
    (_ROW, _STATIONS),
    layer=lambda settings, made: Wifi(settings, made.random("wifi"), step_s=made.step_s),
    place=Stage.RADIO,
    summary=_summary,
    kinds=(WIFI,),
    reader=_read,
    writer=_write,
    transitions=_transitions,
    happenings=("handover", "associated", "address"),
    access_points=lambda settings: tuple(point.name for point in settings.roaming.access_points),
)
