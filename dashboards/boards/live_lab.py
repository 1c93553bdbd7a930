"""*Live lab*: the emulated links and a client, watched."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.builders import bargauge, common, dashboard, table
from grafana_foundation_sdk.models import common as commons
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DynamicConfigValue,
    ValueMap,
    ValueMappingResult,
)
from linklab.core.limits import MAX_LATE_S
from linklab.metrics import about, client, lab, links

from boards.frame import annotation, framed, variable, with_rows
from boards.looks import (
    GREEN,
    GREY,
    RED,
    VIOLET,
    asking,
    columns,
    dashed,
    described,
    figure,
    limited,
    lines,
    one_colour,
    thresholds,
)
from boards.query import at_end, buckets, by, increase, query, rate, series

OFTEN = "rrc|carriers|associated|outage-end|rate|delay|loss"
"""Kinds of events that would cover everything in a busy scenario."""

BY_LINK = "{{link}}"


def _running() -> Any:
    panel = figure(
        "Running",
        units.NoUnit,
        "Scenario and algorithm of the download that is going on.",
        query(by("max", "scenario, algorithm", series(about.INFO)), "{{scenario}}, {{algorithm}}"),
    )
    return panel.text_mode(commons.BigValueTextMode.NAME).color_scheme(one_colour(GREY))


def _download() -> Any:
    panel = described(
        bargauge.Panel(), "Download", "Part of the file that has arrived.", units.PercentUnit
    )
    asking(panel, query(f"max({series(client.PROGRESS)})", "done")).min(0).max(1)
    panel.orientation(commons.VizOrientation.HORIZONTAL).color_scheme(one_colour(GREEN))
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    return panel.display_mode(commons.BarGaugeDisplayMode.BASIC)


def _goodput() -> Any:
    panel = figure(
        "Goodput",
        units.BitsPerSecondSI,
        "Payload over all links.",
        query(f"8 * sum({rate(client.RECEIVED)})"),
    )
    return panel.color_scheme(one_colour(GREEN)).graph_mode(commons.BigValueGraphMode.AREA)


def _carrier() -> Any:
    panel = figure(
        "Carrier",
        units.NoUnit,
        "Whether the client sees the link. An outage that it is not told of shows below.",
        query(by("min", "link", series(links.UP)), BY_LINK),
    )
    up = ValueMappingResult(text="up", color=GREEN)
    down = ValueMappingResult(text="down", color=RED)
    panel.mappings([ValueMap({"1": up, "0": down})])
    return panel.text_mode(commons.BigValueTextMode.VALUE_AND_NAME)


def _late_now() -> Any:
    panel = figure(
        "Emulator late by",
        units.Seconds,
        "The worst of the last 5 s. Red from where a figure suffers: this machine cannot keep up, and "
        "the links are not what the scenario says.",
        query(f"max({series(lab.LATENESS)})"),
    )
    return panel.thresholds(thresholds((None, GREEN), (MAX_LATE_S, RED)))


def _busy_now() -> Any:
    panel = figure(
        "Core busy",
        units.PercentUnit,
        "Share of the emulator's core that is taken. At 100 % links carry less than they could. "
        "In virtual time this does not matter and is 0.",
        query(f"max({series(lab.BUSY)})"),
    )
    return panel.decimals(0).thresholds(thresholds((None, GREEN), (lab.BUSY_RATIO, RED)))


def _capacity_and_use() -> Any:
    """A panel for each link."""
    chosen = 'link=~"$link"'
    capacity = series(links.RATE, chosen, direction="down")
    used = rate(links.SENT, chosen, direction="down")
    panel = lines(
        "$link: capacity and use",
        units.BitsPerSecondSI,
        "Downlink as emulated (dashed) and what leaves its queue, headers included. A gap between "
        "them is capacity that the client left unused.",
        query("8 * " + by("max", "link", capacity), "{{link}} capacity"),
        query("8 * " + by("sum", "link", used), "{{link}} use"),
    )
    panel.repeat("link").repeat_direction("h").max_per_row(4)
    return panel.override_by_regexp("/capacity$/", dashed()).fill_opacity(25)


def _round_trip_time() -> Any:
    return lines(
        "Round trip time",
        units.Seconds,
        "As the client's TCP sees it, queues included (dashed: the emulated delay alone).",
        query(by("max", "link", series(client.RTT)), BY_LINK),
        query("2 * " + by("max", "link", series(links.DELAY)), "{{link}} emulated"),
    ).override_by_regexp("/emulated$/", dashed())


def _queue() -> Any:
    return lines(
        "Queue",
        units.BytesSI,
        "Bytes that wait for the downlink.",
        query(by("max", "link", series(links.QUEUE, direction="down")), BY_LINK),
    )


def _requests_in_flight() -> Any:
    panel = lines(
        "Requests in flight",
        units.Short,
        "Range requests sent and not ended.",
        query(by("max", "link", series(client.IN_FLIGHT)), BY_LINK),
    )
    return panel.decimals(0).line_interpolation(commons.LineInterpolation.STEP_AFTER)


def _packets_not_delivered() -> Any:
    dropped, lost = (rate(metric, direction="down") for metric in (links.DROPPED, links.LOST))
    return lines(
        "Packets not delivered",
        units.PacketsPerSecond,
        "Downlink packets that found the queue full, or (dashed) were lost on the way.",
        query(by("sum", "link", dropped), "{{link}} queue full"),
        query(by("sum", "link", lost), "{{link}} lost"),
    ).override_by_regexp("/lost$/", dashed())


def _outage() -> Any:
    return lines(
        "Outage",
        units.PercentUnit,
        "Part of the time in which nothing could pass. Counted, so that a handover of "
        "50 ms between two scrapes is not missed.",
        query(by("sum", "link", rate(links.OUTAGE)), BY_LINK),
    ).max(1)


def _events() -> Any:
    times = by("sum", "link, kind", increase(lab.EVENTS, "$__range"))
    panel = described(
        table.Panel(),
        "Events",
        "What happened to the links in the time shown, most often first.",
        units.Short,
    )
    asking(panel, at_end(f"sort_desc({times} > 0)"))
    named = {"Time": None, "link": "link", "kind": "kind", "Value": "times"}
    return panel.with_transformation(columns(named)).decimals(0).no_value("none yet")


def _carriers_and_handovers() -> Any:
    panel = lines(
        "Carriers and handovers",
        units.Short,
        "Aggregated carriers of LTE, and (dashed) access points left so far.",
        query(by("max", "link", series(links.CARRIERS)), "{{link}} carriers"),
        query(by("max", "link", series(links.HANDOVERS)), "{{link}} handovers"),
    )
    panel.override_by_regexp("/handovers$/", dashed()).decimals(0)
    return panel.line_interpolation(commons.LineInterpolation.STEP_AFTER)


def _request_size() -> Any:
    sizes = by("sum", "le, link", f"rate({buckets(client.REQUEST_SIZE)}[30s])")
    return lines(
        "Request size",
        units.BytesSI,
        "Median of the range requests of the last 30 s, within a factor of four.",
        query(f"histogram_quantile(0.5, {sizes})", BY_LINK),
    )


def _wasted() -> Any:
    panel = lines(
        "Wasted",
        units.BytesSI,
        "Bytes that came to no use, and (dashed) times that a link lost its work to others.",
        query(by("max", "link", series(client.WASTED)), "{{link}} wasted"),
        query(by("max", "link", series(client.FAILOVERS)), "{{link}} failovers"),
    )
    counted = DynamicConfigValue(id_val="unit", value=units.Short)
    return panel.override_by_regexp("/failovers$/", [*dashed(), counted])


def _progress() -> Any:
    return lines(
        "Progress",
        units.PercentUnit,
        "Part of the file that has arrived.",
        query(by("max", "algorithm", series(client.PROGRESS)), "{{algorithm}}"),
    ).max(1)


def _lateness() -> Any:
    panel = lines(
        "Emulator late by",
        units.Seconds,
        "The worst of 5 s. Above the red line the links are not what the scenario says.",
        query(f"max({series(lab.LATENESS)})", "late by"),
    )
    return limited(panel, MAX_LATE_S)


def _busy() -> Any:
    panel = lines(
        "Core busy",
        units.PercentUnit,
        "Share of the emulator's core that is taken. Above the red line for seconds on end, "
        "links carry less than they could.",
        query(f"max({series(lab.BUSY)})", "busy"),
    )
    return limited(panel.max(1), lab.BUSY_RATIO)


def live_lab() -> Dashboard:
    """The dashboard; each panel with its width, in rows of a height."""
    rows = (
        (
            3,
            (
                (5, _running()),
                (4, _download()),
                (3, _goodput()),
                (6, _carrier()),
                (3, _late_now()),
                (3, _busy_now()),
            ),
        ),
        (6, ((24, _capacity_and_use()),)),
        (6, ((8, _round_trip_time()), (8, _queue()), (8, _requests_in_flight()))),
        (6, ((8, _packets_not_delivered()), (8, _outage()), (8, _events()))),
        (6, ((8, _carriers_and_handovers()), (8, _request_size()), (8, _wasted()))),
        (6, ((8, _progress()), (8, _lateness()), (8, _busy()))),
    )
    made = framed(
        "Live lab",
        "linklab-live",
        "Emulated links and a client that downloads over them.",
        about.INFO,
    )
    made.time("now-2m", "now").refresh("1s").timepicker(
        dashboard.TimePicker().refresh_intervals(["1s", "5s", "30s"])
    )
    made.with_variable(
        variable(
            "link",
            "Link",
            f"label_values({series(links.UP)}, link)",
            description="By its name in the scenario.",
        )
    )
    made.annotation(annotation("Link events", f'kind!~"{OFTEN}"', RED, shown=True))
    made.annotation(annotation("Radio and rates", f'kind=~"{OFTEN}"', VIOLET, shown=False))
    return with_rows(made, rows)
