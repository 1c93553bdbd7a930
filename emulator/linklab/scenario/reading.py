"""From a scenario's YAML to its settings. Pure."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final, TypeVar

from linklab.core import units
from linklab.core.frames import FRAME_BYTES
from linklab.core.link_kinds import KINDS, MAX_LINKS, LinkKind, devices, in_order, link_name
from linklab.models import phy
from linklab.models.between_runs import MAX_RELATIVE_SD
from linklab.models.carriers import CarrierSettings
from linklab.models.events import MIN_RATE_BPS, Event
from linklab.models.layer import STEP_S
from linklab.models.loss import gemodel
from linklab.models.on_off import OnOffSettings
from linklab.models.roaming import AccessPoint, RoamingSettings, Waypoint
from linklab.models.rrc import RrcSettings
from linklab.models.stations import StationSettings
from linklab.models.trace import TracePlayback, TraceSettings
from linklab.models.wifi import WifiSettings
from linklab.scenario import models
from linklab.scenario.settings import (
    MAX_QUEUE_BYTES,
    SAMPLE_S,
    ClientSettings,
    Finding,
    LinkSettings,
    Payload,
    Published,
    Scenario,
    TcpSettings,
    Trace,
    default_bandwidth_bps,
    default_queue_bytes,
)
from linklab.schema import document
from linklab.schema.mapping import Keys, Mapping, boolean, guess, integer, one_of, within
from linklab.schema.quantities import Row, keys, read
from linklab.traces import library, plain
from linklab.traces.trace import Sample

CONGESTION_CONTROLS: Final = ("reno", "cubic", "bbr", "dctcp", "vegas", "westwood")

MAX_RATE_BPS: Final = 10_000_000_000
MAX_PAYLOAD_BYTES: Final = 10_000_000_000
MAX_RTT_S: Final = 10.0
MIN_LENGTH_S: Final = 1e-3
MAX_TIME_S: Final = 86_400.0

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")

T = TypeVar("T")

_LINK_CHANGES = ("down", "up", "rtt", "jitter", "loss")
NODES: Final = (
    "client", "server", "air", *(node for kind in KINDS.values() for node in (kind.access, kind.core))
)  # fmt: skip
"""The lab's nodes: no access point may be called so."""

_SCENARIO_KEYS = Keys(
    ("name", "payload", "links"),
    (
        "title",
        "description",
        "source",
        "events",
        "step",
        "sample",
        "tcp",
        "client",
        "published",
        "findings",
    ),
)
_PAYLOAD_KEYS = Keys(("size",), ("seed", "sha256"))
_LINKS_KEYS = Keys((), named=link_name)
_LINK_KEYS = {
    name: Keys(
        ("down", "up", "rtt"),
        (
            "kind", "jitter", "loss", "loss_burst", "queue", "queue_down", "queue_up", "bandwidth",
            "between_runs", "trace", "on_off", *own,
        ),
    )
    for name, own in (("wifi", ("radio", "stations")), ("lte", ("carriers", "rrc")))
}  # fmt: skip
_ANY_LINK_KEYS = Keys(
    (), tuple(dict.fromkeys(key for keys_ in _LINK_KEYS.values() for key in keys_.all))
)
_EVENT_CHANGES = ("carrier", *_LINK_CHANGES, "fade", "cap", "cross", "outage", "handover")
_EVENT_KEYS = Keys(("link",), ("at", "after", "for", *_EVENT_CHANGES))
_TCP_KEYS = Keys((), ("congestion_control", "rmem_max", "wmem_max", "metrics_save", "mptcp"))
_CLIENT_KEYS = Keys((), ("upper_limit", "padding", "overlap", "window", "first_request"))
_PUBLISHED_KEYS = Keys(("algorithm", "download"), ("link_delta", "spread", "source"))
_FINDING_KEYS = Keys(("what", "value"), ("source",))


def parse(
    text: str, shown: str = "<text>", *, path: Path | None = None, stem: str | None = None
) -> Scenario:
    """The scenario in YAML text. `shown` names the file in errors, `stem` must be its name.

    Raises ScenarioError.
    """
    root = document.compose(text, shown, "name, payload, links")
    return _scenario(Mapping(shown, root, "", _SCENARIO_KEYS), path, stem)


# --- Converters of scalars.


def _rate(text: str) -> int:
    rate = units.parse_rate(text)
    if rate < MIN_RATE_BPS:
        raise ValueError(
            f"{text!r} is too little to be a rate; allowed: at least "
            f"{units.format_rate(MIN_RATE_BPS)} (for an outage write 'carrier: down' in an event)"
        )
    if rate > MAX_RATE_BPS:
        raise ValueError(
            f"{text!r} is more than can be shaped; allowed: at most "
            f"{units.format_rate(MAX_RATE_BPS)}"
        )
    return rate


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} is no name; allowed: up to 64 of a-z, 0-9 and '-', such as 'static-80-50'"
        )
    return text


def _sha256(text: str) -> str:
    if not _SHA256.fullmatch(text):
        raise ValueError(f"{text!r} is no SHA-256; allowed: 64 digits of 0-9 and a-f")
    return text


_size = within(
    units.parse_size, 1, MAX_PAYLOAD_BYTES, f"1 B to {units.format_size(MAX_PAYLOAD_BYTES)}"
)
_queue = within(
    units.parse_size,
    FRAME_BYTES,
    MAX_QUEUE_BYTES,
    f"{FRAME_BYTES} B (one packet) to {units.format_size(MAX_QUEUE_BYTES)}",
)
_buffer = within(units.parse_size, 4096, (1 << 31) - 1, "4096 B to 2 GiB less 1 B")
_time = within(units.parse_duration, 0.0, MAX_TIME_S, f"0 s to {MAX_TIME_S:.0f} s")
_round_trip = within(units.parse_duration, 0.0, MAX_RTT_S, f"0 s to {MAX_RTT_S:.0f} s")
_length = within(units.parse_duration, MIN_LENGTH_S, MAX_TIME_S, f"1 ms to {MAX_TIME_S:.0f} s")
_step = within(units.parse_duration, 1e-3, 10.0, "1 ms to 10 s")
_between_runs = within(
    units.parse_ratio, 0.0, MAX_RELATIVE_SD, f"0 % to {units.format_ratio(MAX_RELATIVE_SD)}"
)
_burst = within(units.parse_number, 1.0, 1000.0, "1 to 1000 packets")
_window = within(units.parse_duration, 1e-3, 3600.0, "1 ms to 3600 s")
_share = within(units.parse_ratio, 0.0, 1.0, "0 % to 100 %, such as '0.3 %'")
_carrier = one_of("up", "down")
_kind = one_of(*KINDS)
_congestion_control = one_of(*CONGESTION_CONTROLS)


# --- Building the scenario.


def _scenario(top: Mapping, path: Path | None, stem: str | None) -> Scenario:
    name = top.get("name", _name)
    if stem is not None and name != stem:
        top.fail("name", f"{name!r} differs from the file's name; allowed: {stem!r}")
    payload = top.sub("payload", _PAYLOAD_KEYS)
    links = _links(top.sub("links", _LINKS_KEYS), None if path is None else path.parent)
    return Scenario(
        name=name,
        title=top.get_or("title", str.strip, ""),
        description=top.get_or("description", str.strip, ""),
        source=top.get_or("source", str.strip, ""),
        payload=Payload(
            size_bytes=payload.get("size", _size),
            seed=payload.get_or("seed", within(integer, 0, (1 << 63) - 1, "below 2^63"), 1),
            sha256=payload.get("sha256", _sha256) if payload.has("sha256") else None,
        ),
        links=links,
        events=_events(top.items("events", _EVENT_KEYS), links),
        step_s=top.get_or("step", _step, STEP_S),
        sample_s=top.get_or("sample", _step, SAMPLE_S),
        tcp=_tcp(top.sub("tcp", _TCP_KEYS)) if top.has("tcp") else TcpSettings(),
        client=_client(top.sub("client", _CLIENT_KEYS)) if top.has("client") else ClientSettings(),
        published=_published(top.items("published", _PUBLISHED_KEYS)),
        findings=tuple(_finding(item) for item in top.items("findings", _FINDING_KEYS)),
        path=path,
    )


def _links(maps: Mapping, base: Path | None) -> dict[str, LinkSettings]:
    if not 1 <= len(maps.values) <= MAX_LINKS:
        maps.fail(None, f"{len(maps.values)} links; allowed: 1 to {MAX_LINKS}")
    kinds = {name: _kind_of(maps, name) for name in maps.values}
    names = in_order(kinds)
    access_points: set[str] = set()
    return {
        name: _settings(
            maps.sub(name, _LINK_KEYS[kinds[name].name]), kinds[name], device, base, access_points
        )
        for name, device in zip(names, devices(kinds[name] for name in names), strict=True)
    }


def _kind_of(maps: Mapping, name: str) -> LinkKind:
    """What a link says it is, or is called."""
    link = maps.sub(name, _LINK_KEYS[name] if name in KINDS else _ANY_LINK_KEYS)
    allowed = ", ".join(KINDS)
    if not link.has("kind"):
        if name not in KINDS:
            link.fail(None, f"{name!r}{guess(name, KINDS)} has no kind; needed: kind, of {allowed}")
        return KINDS[name]
    kind = link.get("kind", _kind)
    if name in KINDS and kind != name:
        link.fail("kind", f"{kind!r} for a link called {name}; allowed: {name}, or another name")
    return KINDS[kind]


def _settings(
    link: Mapping, kind: LinkKind, device: str, base: Path | None, access_points: set[str]
) -> LinkSettings:
    down = link.get("down", _rate)
    up = link.get("up", _rate)
    rtt = link.get("rtt", _round_trip)
    jitter = link.get_or("jitter", _round_trip, 0.0)
    _check_jitter(link, jitter, rtt)
    queue = link.get("queue", _queue) if link.has("queue") else None
    loss = link.get_or("loss", _share, 0.0)
    loss_burst = link.get_or("loss_burst", _burst, 1.0)
    _check_bursts(link, "loss", loss, loss_burst)
    return LinkSettings(
        kind=kind,
        device=device,
        down_rate_bps=down,
        up_rate_bps=up,
        rtt_s=rtt,
        jitter_s=jitter,
        loss_ratio=loss,
        loss_burst_packets=loss_burst,
        queue_down_bytes=link.get_or("queue_down", _queue, queue or default_queue_bytes(down)),
        queue_up_bytes=link.get_or("queue_up", _queue, queue or default_queue_bytes(up)),
        bandwidth_bps=link.get_or("bandwidth", _bandwidth, default_bandwidth_bps(down)),
        between_runs=link.get_or("between_runs", _between_runs, 0.0),
        trace=_trace(link, base, down, up),
        on_off=_model(link, "on_off", OnOffSettings, models.ON_OFF, ("rate",)),
        carriers=_model(link, "carriers", CarrierSettings, models.CARRIERS, ("count",)),
        rrc=_model(link, "rrc", RrcSettings, models.RRC),
        wifi=_wifi(link, access_points),
    )


def _model(
    link: Mapping, key: str, settings: Callable[..., T], rows: Sequence[Row],
    needed: Sequence[str] = (),
) -> T | None:  # fmt: skip
    if not link.has(key):
        return None
    return read(link.sub(key, keys(rows, needed)), settings, rows)


def _trace(link: Mapping, base: Path | None, down: int, up: int) -> Trace | None:
    if not link.has("trace"):
        return None
    mapping = link.sub("trace", keys(models.TRACE, ("file",), ("rate",)))
    rate = mapping.get_or("rate", models.TRACE_RATE.parse, "scaled")
    means = {} if rate == "recorded" else {"down_mean_bps": down, "up_mean_bps": up}
    settings = read(mapping, TraceSettings, models.TRACE, **means)
    try:
        file = library.find(mapping.get("file", str.strip), base)
        samples = _samples(file, file.stat().st_mtime_ns)
        TracePlayback(samples, settings, Random(0))
    except ValueError as error:
        mapping.fail("file", str(error))
    return Trace(file, samples, settings)


@functools.lru_cache(maxsize=8)
def _samples(file: Path, _changed_ns: int) -> tuple[Sample, ...]:
    """A trace is read once for all the scenarios that play it."""
    return plain.load(file)


def _wifi(link: Mapping, taken: set[str]) -> WifiSettings | None:
    if not link.has("radio"):
        if link.has("stations"):
            link.fail("stations", "need a channel to share; needed: radio")
        return None
    radio = link.sub(
        "radio",
        keys(
            (*models.RADIO, *models.ROAMING),
            ("standard", "access_points"), ("path",),
        ),
    )  # fmt: skip
    standard = radio.get("standard", models.RADIO[0].quantity.parse)
    points = radio.items("access_points", keys(models.ACCESS_POINT, ("name",)))
    path = radio.items("path", keys(models.WAYPOINT, ("at",)))
    more = {"path": tuple(_waypoints(path))} if path else {}
    roaming = read(
        radio, RoamingSettings, models.ROAMING,
        access_points=tuple(_access_points(radio, points, taken)), **more,
    )  # fmt: skip
    stations = StationSettings(0)
    if link.has("stations"):
        stations = read(
            link.sub("stations", keys(models.STATIONS, ("count",))),
            StationSettings, models.STATIONS,
        )  # fmt: skip
    wifi = read(radio, WifiSettings, models.RADIO, roaming=roaming, stations=stations)
    try:
        phy.phy_rates(standard, wifi.width_mhz, wifi.streams)
    except ValueError as error:
        radio.fail("streams" if radio.has("streams") else "width", str(error))
    if wifi.access is not None and standard != "g":
        radio.fail("cell", "only 802.11g shares a cell with 802.11b; allowed: pure")
    for key, loss in (("loss", wifi.loss_ratio), ("edge_loss", wifi.edge_loss_ratio)):
        _check_bursts(radio, key, loss, wifi.loss_burst_packets)
    return wifi


def _access_points(radio: Mapping, items: list[Mapping], taken: set[str]) -> Iterator[AccessPoint]:
    """Each is a node of the lab; `taken` are the names of those before, on other links too."""
    if not items:
        radio.fail("access_points", "is empty; needed: at least one access point")
    for item in items:
        point = read(item, AccessPoint, models.ACCESS_POINT)
        if point.name in taken or point.name in NODES:
            item.fail("name", f"{point.name!r} is taken; allowed: any other name")
        taken.add(point.name)
        yield point


def _waypoints(items: list[Mapping]) -> Iterator[Waypoint]:
    last_s = -1.0
    for item in items:
        point = read(item, Waypoint, models.WAYPOINT)
        if point.t_s <= last_s:
            item.fail("at", f"is not after {units.format_duration(last_s)}, the waypoint before it")
        last_s = point.t_s
        yield point


def _check_bursts(where: Mapping, key: str, loss_ratio: float, burst_packets: float) -> None:
    if burst_packets > 1:
        try:
            gemodel(loss_ratio, burst_packets)
        except ValueError as error:
            where.fail(key if where.has(key) else None, str(error))


def _bandwidth(text: str) -> int:
    """B_x is only what algorithms believe, so it may exceed what can be shaped."""
    limit = 2 * MAX_RATE_BPS
    allowed = f"{units.format_rate(MIN_RATE_BPS)} to {units.format_rate(limit)}"
    return within(units.parse_rate, MIN_RATE_BPS, limit, allowed)(text)


def _check_jitter(where: Mapping, jitter_s: float, rtt_s: float) -> None:
    """A one-way delay of rtt/2 cannot stray below zero."""
    if jitter_s > rtt_s / 2:
        where.fail(
            "jitter" if where.has("jitter") else "rtt",
            f"a jitter of {units.format_duration(jitter_s)} does not fit an rtt of "
            f"{units.format_duration(rtt_s)}; allowed: a jitter of at most half the rtt, "
            f"{units.format_duration(rtt_s / 2)}",
        )


def _events(maps: list[Mapping], links: dict[str, LinkSettings]) -> tuple[Event, ...]:
    events = []
    last: dict[str, float] = {}
    rtts = {name: link.rtt_s for name, link in links.items()}
    jitters = {name: link.jitter_s for name, link in links.items()}
    for item in maps:
        event = _event(item, one_of(*links))
        link = event.link
        if event.at_s is not None:
            if link in last and event.at_s <= last[link]:
                item.fail(
                    "at",
                    f"{units.format_duration(event.at_s)} is not after the event of {link} before "
                    f"it; allowed: more than {units.format_duration(last[link])}",
                )
            last[link] = event.at_s
        rtt = rtts[link] if event.rtt_s is None else event.rtt_s
        jitter = jitters[link] if event.jitter_s is None else event.jitter_s
        _check_jitter(item, jitter, rtt)
        if math.isinf(event.duration_s):
            rtts[link], jitters[link] = rtt, jitter
        _check_handover(item, event, links[link])
        events.append(event)
    return tuple(events)


def _check_handover(item: Mapping, event: Event, link: LinkSettings) -> None:
    if event.handover is None:
        return
    points = link.access_points
    if len(points) < 2:
        item.fail("handover", "needs several access points; needed: radio with access_points")
    if event.handover not in ("next", *points):
        allowed = ", ".join(("next", *points))
        item.fail("handover", f"no access point is {event.handover!r}; allowed: {allowed}")


def _event(item: Mapping, link: Callable[[str], str]) -> Event:
    if item.has("at") == item.has("after"):
        item.fail(None, "needs a moment; allowed: one of at (a time) and after (bytes received)")
    if not any(item.has(key) for key in _EVENT_CHANGES):
        item.fail(None, f"changes nothing; allowed: any of {', '.join(_EVENT_CHANGES)}")

    def maybe(key: str, convert: Callable[[str], T]) -> T | None:
        return item.get(key, convert) if item.has(key) else None

    return Event(
        link=item.get("link", link),
        at_s=maybe("at", _time),
        after_bytes=maybe("after", _size),
        duration_s=item.get_or("for", _length, math.inf),
        carrier=maybe("carrier", _carrier),
        down_rate_bps=maybe("down", _rate),
        up_rate_bps=maybe("up", _rate),
        rtt_s=maybe("rtt", _round_trip),
        jitter_s=maybe("jitter", _round_trip),
        loss_ratio=maybe("loss", _share),
        fade_ratio=maybe("fade", _share),
        cap_bps=maybe("cap", _rate),
        cross_bps=maybe("cross", _rate),
        outage=item.get_or("outage", boolean, False),
        handover=maybe("handover", models.NODE_NAME.parse),
    )


def _tcp(tcp: Mapping) -> TcpSettings:
    default = TcpSettings()
    return TcpSettings(
        congestion_control=tcp.get_or(
            "congestion_control", _congestion_control, default.congestion_control
        ),
        rmem_max_bytes=tcp.get_or("rmem_max", _buffer, default.rmem_max_bytes),
        wmem_max_bytes=tcp.get_or("wmem_max", _buffer, default.wmem_max_bytes),
        metrics_save=tcp.get_or("metrics_save", boolean, default.metrics_save),
        mptcp=tcp.get_or("mptcp", boolean, default.mptcp),
    )


def _client(client: Mapping) -> ClientSettings:
    default = ClientSettings()
    return ClientSettings(
        upper_limit_bytes=client.get_or("upper_limit", _size, default.upper_limit_bytes),
        padding=client.get_or("padding", _share, default.padding),
        overlap=client.get_or("overlap", _share, default.overlap),
        window_s=client.get_or("window", _window, default.window_s),
        first_request_bytes=client.get_or("first_request", _size, default.first_request_bytes),
    )


def _published(maps: list[Mapping]) -> tuple[Published, ...]:
    published: list[Published] = []
    for item in maps:
        row = Published(
            algorithm=item.get("algorithm", _name),
            download_s=item.get("download", _time),
            source=item.get_or("source", str.strip, ""),
            link_delta_s=item.get("link_delta", _time) if item.has("link_delta") else None,
            spread=item.get("spread", _share) if item.has("spread") else None,
        )
        if row.download_s == 0:
            item.fail("download", "'0 s' is no download; allowed: a duration such as '16.55 s'")
        if any(row.algorithm == other.algorithm for other in published):
            item.fail("algorithm", f"{row.algorithm!r} is listed twice")
        published.append(row)
    return tuple(published)


def _finding(item: Mapping) -> Finding:
    return Finding(
        what=item.get("what", _words),
        value=item.get("value", _words),
        source=item.get_or("source", str.strip, ""),
    )


def _words(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; needed: a few words")
    return text.strip()
