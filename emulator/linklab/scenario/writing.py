"""A scenario's canonical form: every value written out, defaults too. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import yaml

from linklab.core import units
from linklab.models.events import Event
from linklab.models.wifi import WifiSettings
from linklab.scenario import models
from linklab.scenario.settings import LinkSettings, Scenario, Trace
from linklab.schema.quantities import Row, write

T = TypeVar("T")


class _Flow(dict[str, object]):
    """A mapping that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Block style at the top, _Flow mappings on one line, lists indented."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(
    _Flow,
    lambda dumper, data: dumper.represent_mapping(
        "tag:yaml.org,2002:map", data.items(), flow_style=True
    ),
)


def to_yaml(scenario: Scenario) -> str:
    """The canonical form: every value written out, defaults too; loads to the same scenario."""
    document: dict[str, object] = {"name": scenario.name}
    for key in ("title", "description", "source"):
        if value := getattr(scenario, key):
            document[key] = value
    document["payload"] = _without_none(
        size=units.format_size(scenario.payload.size_bytes),
        seed=scenario.payload.seed,
        sha256=scenario.payload.sha256,
    )
    document["links"] = {name: _link_yaml(name, link) for name, link in scenario.links.items()}
    if scenario.events:
        document["events"] = [_event_yaml(event) for event in scenario.events]
    document["step"] = units.format_duration(scenario.step_s)
    document["sample"] = units.format_duration(scenario.sample_s)
    tcp, client = scenario.tcp, scenario.client
    document["tcp"] = _Flow(
        congestion_control=tcp.congestion_control,
        rmem_max=units.format_size(tcp.rmem_max_bytes),
        wmem_max=units.format_size(tcp.wmem_max_bytes),
        metrics_save=tcp.metrics_save,
        mptcp=tcp.mptcp,
    )
    document["client"] = _Flow(
        upper_limit=units.format_size(client.upper_limit_bytes),
        padding=units.format_ratio(client.padding),
        overlap=units.format_ratio(client.overlap),
        window=units.format_duration(client.window_s),
        first_request=units.format_size(client.first_request_bytes),
    )
    if scenario.published:
        document["published"] = [
            _without_none(
                algorithm=row.algorithm,
                download=units.format_duration(row.download_s),
                link_delta=_formatted(units.format_duration, row.link_delta_s),
                spread=_formatted(units.format_ratio, row.spread),
                source=row.source or None,
            )
            for row in scenario.published
        ]
    if scenario.findings:
        document["findings"] = [
            _without_none(what=row.what, value=row.value, source=row.source or None)
            for row in scenario.findings
        ]
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)


def _without_none(**values: object) -> _Flow:
    return _Flow({key: value for key, value in values.items() if value is not None})


def _formatted(form: Callable[[T], str], value: T | None) -> str | None:
    return None if value is None else form(value)


def _link_yaml(name: str, link: LinkSettings) -> _Flow:
    same = link.queue_down_bytes == link.queue_up_bytes
    down, up = units.format_size(link.queue_down_bytes), units.format_size(link.queue_up_bytes)
    return _without_none(
        kind=None if name == link.kind.name else link.kind.name,
        down=units.format_rate(link.down_rate_bps),
        up=units.format_rate(link.up_rate_bps),
        rtt=units.format_duration(link.rtt_s),
        jitter=units.format_duration(link.jitter_s),
        loss=units.format_ratio(link.loss_ratio),
        loss_burst=units.format_number(link.loss_burst_packets),
        queue=down if same else None,
        queue_down=None if same else down,
        queue_up=None if same else up,
        bandwidth=units.format_rate(link.bandwidth_bps),
        between_runs=units.format_ratio(link.between_runs),
        trace=None if link.trace is None else _trace(link.trace),
        on_off=_model(link.on_off, models.ON_OFF),
        carriers=_model(link.carriers, models.CARRIERS),
        rrc=_model(link.rrc, models.RRC),
        radio=None if link.wifi is None else _radio(link.wifi),
        stations=None if link.wifi is None else _model(link.wifi.stations, models.STATIONS),
    )


def _trace(trace: Trace) -> _Flow:
    scaled = trace.settings.down_mean_bps is not None
    return _Flow(
        file=str(trace.file),
        rate="scaled" if scaled else "recorded",
        **write(trace.settings, models.TRACE),
    )


def _radio(wifi: WifiSettings) -> _Flow:
    roaming = wifi.roaming
    return _Flow(
        **write(wifi, models.RADIO),
        **write(roaming, models.ROAMING),
        access_points=[
            _without_none(**write(point, models.ACCESS_POINT)) for point in roaming.access_points
        ],
        path=[_Flow(write(point, models.WAYPOINT)) for point in roaming.path],
    )


def _model(settings: object, rows: Sequence[Row]) -> _Flow | None:
    return None if settings is None else _Flow(write(settings, rows))


def _event_yaml(event: Event) -> _Flow:
    return _without_none(
        at=_formatted(units.format_duration, event.at_s),
        after=_formatted(units.format_size, event.after_bytes),
        link=event.link,
        **{"for": _formatted(units.format_duration, _finite(event.duration_s))},
        carrier=event.carrier,
        down=_formatted(units.format_rate, event.down_rate_bps),
        up=_formatted(units.format_rate, event.up_rate_bps),
        rtt=_formatted(units.format_duration, event.rtt_s),
        jitter=_formatted(units.format_duration, event.jitter_s),
        loss=_formatted(units.format_ratio, event.loss_ratio),
        fade=_formatted(units.format_ratio, event.fade_ratio),
        cap=_formatted(units.format_rate, event.cap_bps),
        cross=_formatted(units.format_rate, event.cross_bps),
        outage=True if event.outage else None,
        handover=event.handover,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
