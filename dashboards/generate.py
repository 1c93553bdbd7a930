"""Makes the Grafana dashboards beside this file from what is said here.

usage: generate.py    (after a change, in linklab's Python environment)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import (
    barchart,
    bargauge,
    common,
    dashboard,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as commons
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DashboardCursorSync,
    DashboardLinkType,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    GridPos,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
    VariableOption,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

DIRECTORY = Path(__file__).parent / "grafana"

DATASOURCE = DataSourceRef(type_val="prometheus", uid="linklab-prometheus")
"""As provisioned in grafana/provisioning/datasources."""

COLOURS = {"wifi": "#5794F2", "lte": "#FF9830"}
"""A link has one colour everywhere; blue and orange, which every eye tells apart."""

NAMES = {"wifi": "Wi-Fi", "lte": "LTE"}
GREEN, RED, GREY, VIOLET = "#73BF69", "#F2495C", "#8e8e8e", "#B877D9"

RUNS = 'scenario=~"$scenario", algorithm=~"$algorithm", run=~"$run"'
"""What the variables of a dashboard choose."""

WINDOW = "$__rate_interval"

STEP_S = 0.02
"""An emulator that comes later than one step of the link models is late."""

BUSY_RATIO = 0.97
"""A core that is busier has no time left."""


def series(name: str, more: str = "") -> str:
    """A metric's series that the variables choose, and fewer of them with `more` matchers."""
    return f"{name}{{{RUNS}{', ' if more else ''}{more}}}"


# --- Queries.


def query(
    expression: str, legend: str = "", *, ref: str = "A", instant: bool = False
) -> prometheus.Dataquery:
    """A query over the dashboard's time, or of its end as a table."""
    made = prometheus.Dataquery().expr(expression).ref_id(ref).datasource(DATASOURCE)
    if instant:
        return made.instant().format(PromQueryFormat.TABLE)
    return made.range().legend_format(legend)


def at_end(expression: str, ref: str = "A") -> prometheus.Dataquery:
    """A table of what there was in the dashboard's time."""
    return query(expression, ref=ref, instant=True)


# --- Looks.


def link_colours(panel: Any) -> Any:
    """Every series that names a link gets the link's colour."""
    for link, colour in COLOURS.items():
        panel.override_by_regexp(f"/^({link}|{NAMES[link]})\\b/", [fixed_colour(colour)])
    return panel


def fixed_colour(colour: str) -> DynamicConfigValue:
    """A property of a field: its colour."""
    return DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": colour})


def dashed() -> list[DynamicConfigValue]:
    """Properties of a limit: a dashed step line, nothing below it."""
    return [
        DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [6, 4]}),
        DynamicConfigValue(id_val="custom.fillOpacity", value=0),
        DynamicConfigValue(id_val="custom.lineInterpolation", value="stepAfter"),
    ]


def thresholds(*steps: tuple[float | None, str]) -> dashboard.ThresholdsConfig:
    """Colours from values on; the first has no value."""
    return (
        dashboard.ThresholdsConfig()
        .mode(ThresholdsMode.ABSOLUTE)
        .steps([Threshold(value=value, color=colour) for value, colour in steps])
    )


def one_colour(colour: str) -> dashboard.FieldColor:
    """The same colour for everything in a panel."""
    return dashboard.FieldColor().mode(FieldColorModeId.FIXED).fixed_color(colour)


def described(panel: Any, title: str, description: str, unit: str) -> Any:
    """What every panel has."""
    return panel.title(title).description(description).unit(unit).datasource(DATASOURCE)


def lines(title: str, unit: str, description: str, *queries: prometheus.Dataquery) -> Any:
    """Lines over time, a colour per link."""
    panel = described(timeseries.Panel(), title, description, unit)
    for one in queries:
        panel.with_target(one)
    panel.min(0).line_width(1).fill_opacity(12).show_points(commons.VisibilityMode.NEVER)
    panel.legend(
        common.VizLegendOptions()
        .display_mode(commons.LegendDisplayMode.LIST)
        .placement(commons.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs([])
    )
    panel.tooltip(
        common.VizTooltipOptions()
        .mode(commons.TooltipDisplayMode.MULTI)
        .sort(commons.SortOrder.NONE)
    )
    return link_colours(panel)


def limited(panel: Any, limit: float) -> Any:
    """A panel of lines in grey with a red line that they are not to cross."""
    return (
        panel.thresholds(thresholds((None, GREEN), (limit, RED)))
        .thresholds_style(
            common.GraphThresholdsStyleConfig().mode(commons.GraphThresholdsStyleMode.LINE)
        )
        .color_scheme(one_colour(GREY))
    )


def figure(title: str, unit: str, description: str, one: prometheus.Dataquery) -> Any:
    """One figure, the newest."""
    panel = described(stat.Panel(), title, description, unit).with_target(one)
    return (
        panel.graph_mode(commons.BigValueGraphMode.NONE)
        .color_mode(commons.BigValueColorMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("–")
    )


def bars(title: str, unit: str, description: str, *queries: prometheus.Dataquery) -> Any:
    """A bar per algorithm."""
    panel = described(barchart.Panel(), title, description, unit)
    for one in queries:
        panel.with_target(one)
    panel.min(0).x_field("algorithm").show_value(commons.VisibilityMode.ALWAYS).decimals(2)
    panel.bar_width(0.7).fill_opacity(80).x_tick_label_spacing(0)
    panel.legend(
        common.VizLegendOptions()
        .display_mode(commons.LegendDisplayMode.HIDDEN)
        .placement(commons.LegendPlacement.BOTTOM)
        .show_legend(False)
        .calcs([])
    )
    panel.with_transformation(columns({"Time": None}))
    return panel.color_scheme(one_colour(VIOLET))


def columns(names: dict[str, str | None]) -> DataTransformerConfig:
    """Renames columns of a table; None leaves one out."""
    return DataTransformerConfig(
        id_val="organize",
        options={
            "excludeByName": {name: True for name, shown in names.items() if shown is None},
            "indexByName": {name: n for n, name in enumerate(names)},
            "renameByName": {name: shown for name, shown in names.items() if shown is not None},
        },
    )


def merged() -> DataTransformerConfig:
    """One table of several, by the columns that they share."""
    return DataTransformerConfig(id_val="merge", options={})


# --- Frames.


def variable(name: str, label: str, query_text: str, *, description: str) -> Any:
    """A choice of any number of label values, all of them at first."""
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .description(description)
        .datasource(DATASOURCE)
        .query({"query": query_text, "refId": f"variable-{name}", "qryType": 1})
        .definition(query_text)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(VariableOption(selected=True, text="All", value="$__all"))
    )


def variables(metric: str) -> list[Any]:
    """Scenario, algorithm and run, each among what those before it leave, of runs with `metric`."""
    scenario, algorithm = 'scenario=~"$scenario"', 'algorithm=~"$algorithm"'
    return [
        variable("scenario", "Scenario", f"label_values({metric}, scenario)",
                 description="A file in profiles/."),
        variable("algorithm", "Algorithm", f"label_values({metric}{{{scenario}}}, algorithm)",
                 description="How the client splits the work, or another program's name."),
        variable("run", "Run", f"label_values({metric}{{{scenario}, {algorithm}}}, run)",
                 description="One download: when it was started, and its directory."),
    ]  # fmt: skip


def annotation(name: str, kinds: str, colour: str, *, shown: bool) -> Any:
    """Events of some kinds as marks in every panel, by the steps of their counters."""
    expression = f"sum by (link, kind) (increase({series('linklab_events_total', kinds)}[2s])) > 0"
    return (
        dashboard.AnnotationQuery()
        .name(name)
        .datasource(DATASOURCE)
        .enable(shown)
        .icon_color(colour)
        .expr(expression)
        .step("1s")
        .title_format("{{link}} {{kind}}")
        .text_format("{{link}} {{kind}}")
        .tag_keys("link,kind")
        .target(prometheus.Dataquery().expr(expression).interval("1s").ref_id("Events").range())
    )


OFTEN = "rrc|carriers|associated|outage-end|rate|delay|loss"
"""Kinds of events that would cover everything in a busy scenario."""

HEIGHT_AT_FIRST_GLANCE = 15
"""Grid rows of 38 pixels that a browser on 1366 x 768 shows below Grafana's own bars."""


def framed(title: str, uid: str, description: str, metric: str) -> dashboard.Dashboard:
    """A dashboard without panels."""
    made = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["linklab"])
        .readonly()
        .annotations([])
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(
            dashboard.DashboardLink("linklab")
            .type(DashboardLinkType.DASHBOARDS)
            .tags(["linklab"])
            .as_dropdown(False)
            .keep_time(False)
        )
    )
    for one in variables(metric):
        made.with_variable(one)
    return made


def with_rows(
    made: dashboard.Dashboard, rows: Sequence[tuple[int, Sequence[tuple[int, Any]]]]
) -> Dashboard:
    """Lays panels out: rows of a height, panels of a width; 24 columns."""
    y, number = 0, 0
    for height, panels in rows:
        x = 0
        for width, panel in panels:
            number += 1
            made.with_panel(panel.id(number).grid_pos(GridPos(x=x, y=y, w=width, h=height)))
            x += width
        y += height
    return made.build()


# --- Live lab.


def capacity_and_use(link: str) -> Any:
    """What a link could carry and what it does."""
    down = f'link="{link}", direction="down"'
    rate = series("linklab_link_rate_bytes_per_second", down)
    sent = series("linklab_link_sent_bytes_total", down)
    panel = lines(
        f"{NAMES[link]}: capacity and use", units.BitsPerSecondSI,
        "Downlink as emulated (dashed) and what leaves its queue, headers included. A gap between "
        "them is capacity that the client left unused.",
        query(f"8 * max by (link) ({rate})", f"{NAMES[link]} capacity", ref="A"),
        query(f"8 * sum by (link) (rate({sent}[{WINDOW}]))", f"{NAMES[link]} use", ref="B"),
    )  # fmt: skip
    return panel.override_by_regexp("/capacity$/", dashed()).fill_opacity(25)


def live_lab() -> Dashboard:
    """*Live lab*: two links and a client."""
    by_link = "{{link}}"
    dropped = series("linklab_link_dropped_packets_total", 'direction="down"')
    lost = series("linklab_link_lost_packets_total", 'direction="down"')
    sizes = series("multilink_request_size_bytes_bucket")
    up = figure(
        "Carrier", units.NoUnit,
        "Whether the client sees the link. An outage that it is not told of shows below.",
        query(f"min by (link) ({series('linklab_link_up')})", by_link),
    )  # fmt: skip
    up.mappings([
        ValueMap({
            "1": ValueMappingResult(text="up", color=GREEN),
            "0": ValueMappingResult(text="down", color=RED),
        })
    ]).text_mode(commons.BigValueTextMode.VALUE_AND_NAME)  # fmt: skip
    lateness = figure(
        "Emulator late by", units.Seconds,
        "The worst of the last 5 s. Red from one 20 ms step on: this machine cannot keep up, and "
        "the links are not what the scenario says.",
        query(f"max({series('linklab_lateness_seconds')})"),
    ).thresholds(thresholds((None, GREEN), (STEP_S, RED)))  # fmt: skip
    busy = figure(
        "Core busy", units.PercentUnit,
        "Share of the emulator's core that is taken. At 100 % links carry less than they could. "
        "In virtual time this does not matter and is 0.",
        query(f"max({series('linklab_busy_ratio')})"),
    ).decimals(0).thresholds(thresholds((None, GREEN), (BUSY_RATIO, RED)))  # fmt: skip
    running = figure(
        "Running", units.NoUnit, "Scenario and algorithm of the download that is going on.",
        query(f"max by (scenario, algorithm) ({series('linklab_run_info')})",
              "{{scenario}}, {{algorithm}}"),
    ).text_mode(commons.BigValueTextMode.NAME).color_scheme(one_colour(GREY))  # fmt: skip
    progress = (
        described(
            bargauge.Panel(), "Download", "Part of the file that has arrived.", units.PercentUnit
        )
        .with_target(query(f"max({series('multilink_download_progress_ratio')})", "done"))
        .min(0).max(1).orientation(commons.VizOrientation.HORIZONTAL)
        .display_mode(commons.BarGaugeDisplayMode.BASIC).color_scheme(one_colour(GREEN))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )  # fmt: skip
    goodput = figure(
        "Goodput", units.BitsPerSecondSI, "Payload over both links.",
        query(f"8 * sum(rate({series('multilink_received_bytes_total')}[{WINDOW}]))"),
    ).color_scheme(one_colour(GREEN)).graph_mode(commons.BigValueGraphMode.AREA)  # fmt: skip
    happened = described(
        table.Panel(), "Events", "What happened to the links in the time shown, most often first.",
        units.Short,
    ).with_target(
        at_end(
            f"sort_desc(sum by (link, kind) "
            f"(increase({series('linklab_events_total')}[$__range])) > 0)"
        )
    ).with_transformation(
        columns({"Time": None, "link": "link", "kind": "kind", "Value": "times"})
    ).decimals(0).no_value("none yet")  # fmt: skip
    rows = (
        (3, (
            (5, running), (4, progress), (3, goodput), (6, up), (3, lateness), (3, busy),
        )),
        (6, ((12, capacity_and_use("wifi")), (12, capacity_and_use("lte")))),
        (6, (
            (8, lines(
                "Round trip time", units.Seconds,
                "As the client's TCP sees it, queues included (dashed: the emulated delay alone).",
                query(f"max by (link) ({series('multilink_rtt_seconds')})", by_link, ref="A"),
                query(f"2 * max by (link) ({series('linklab_link_delay_seconds')})",
                      "{{link}} emulated", ref="B"),
            ).override_by_regexp("/emulated$/", dashed())),
            (8, lines(
                "Queue", units.BytesSI, "Bytes that wait for the downlink.",
                query("max by (link) ("
                      + series("linklab_link_queue_bytes", 'direction="down"') + ")", by_link),
            )),
            (8, lines(
                "Requests in flight", units.Short, "Range requests sent and not ended.",
                query(f"max by (link) ({series('multilink_requests_in_flight')})", by_link),
            ).decimals(0).line_interpolation(commons.LineInterpolation.STEP_AFTER)),
        )),
        (6, (
            (8, lines(
                "Packets not delivered", units.PacketsPerSecond,
                "Downlink packets that found the queue full, or (dashed) were lost on the way.",
                query(f"sum by (link) (rate({dropped}[{WINDOW}]))", "{{link}} queue full", ref="A"),
                query(f"sum by (link) (rate({lost}[{WINDOW}]))", "{{link}} lost", ref="B"),
            ).override_by_regexp("/lost$/", dashed())),
            (8, lines(
                "Outage", units.PercentUnit,
                "Part of the time in which nothing could pass. Counted, so that a handover of "
                "50 ms between two scrapes is not missed.",
                query("sum by (link) (rate("
                      + series("linklab_link_outage_seconds_total") + f"[{WINDOW}]))", by_link),
            ).max(1)),
            (8, happened),
        )),
        (6, (
            (8, lines(
                "Carriers and handovers", units.Short,
                "Aggregated LTE carriers, and (dashed) access points left so far.",
                query("max by (link) ("
                      + series("linklab_link_carriers", 'link="lte"') + ")",
                      "{{link}} carriers", ref="A"),
                query(f"max by (link) ({series('linklab_link_handovers_total')})",
                      "{{link}} handovers", ref="B"),
            ).override_by_regexp("/handovers$/", dashed()).decimals(0)
             .line_interpolation(commons.LineInterpolation.STEP_AFTER)),
            (8, lines(
                "Request size", units.BytesSI,
                "Median of the range requests of the last 30 s, within a factor of four.",
                query(f"histogram_quantile(0.5, sum by (le, link) (rate({sizes}[30s])))", by_link),
            )),
            (8, lines(
                "Received in vain", units.BytesSI,
                "Bytes that came to no use, and (dashed) times that a link lost its work to others.",
                query(f"max by (link) ({series('multilink_wasted_bytes_total')})",
                      "{{link}} wasted", ref="A"),
                query(f"max by (link) ({series('multilink_failovers_total')})",
                      "{{link}} failovers", ref="B"),
            ).override_by_regexp("/failovers$/", [
                *dashed(), DynamicConfigValue(id_val="unit", value=units.Short),
            ])),
        )),
        (6, (
            (8, lines(
                "Progress", units.PercentUnit, "Part of the file that has arrived.",
                query(f"max by (algorithm) ({series('multilink_download_progress_ratio')})",
                      "{{algorithm}}"),
            ).max(1)),
            (8, limited(lines(
                "Emulator late by", units.Seconds,
                "The worst of 5 s. Above the red line the links are not what the scenario says.",
                query(f"max({series('linklab_lateness_seconds')})", "late by"),
            ), STEP_S)),
            (8, limited(lines(
                "Core busy", units.PercentUnit,
                "Share of the emulator's core that is taken. Above the red line for seconds on end, "
                "links carry less than they could.",
                query(f"max({series('linklab_busy_ratio')})", "busy"),
            ).max(1), BUSY_RATIO)),
        )),
    )  # fmt: skip
    made = framed(
        "Live lab", "linklab-live",
        "Two emulated links and a client that downloads over them.", "linklab_run_info",
    )  # fmt: skip
    made.time("now-2m", "now").refresh("1s").timepicker(
        dashboard.TimePicker().refresh_intervals(["1s", "5s", "30s"])
    )
    made.annotation(annotation("Link events", f'kind!~"{OFTEN}"', RED, shown=True))
    made.annotation(annotation("Radio and rates", f'kind=~"{OFTEN}"', VIOLET, shown=False))
    return with_rows(made, rows)


# --- Compare algorithms.


def ever(name: str, more: str = "") -> str:
    """The newest value of each series in the time shown."""
    return f"last_over_time({series(name, more)}[$__range])"


def median(name: str) -> str:
    """The median over runs, for each algorithm."""
    return f"quantile by (algorithm) (0.5, {ever(name)})"


def compare_algorithms() -> Dashboard:
    """*Compare algorithms*: figures of runs side by side."""
    by_run = "max by (run, scenario, algorithm, seed)"

    def bytes_of(link: str) -> str:
        return ever("linklab_run_link_received_bytes", f'link="{link}"')

    split = bars(
        "Bytes per link", units.BytesSI, "Payload that came over each link, mean over runs.",
        *(at_end(f"avg by (algorithm) ({bytes_of(link)})", ref)
          for ref, link in (("A", "wifi"), ("B", "lte"))),
    )  # fmt: skip
    split.transformations([merged(), columns({
        "Time": None, "algorithm": "algorithm", "Value #A": "Wi-Fi", "Value #B": "LTE",
    })]).stacking(commons.StackingMode.NORMAL).decimals(1).show_value(
        commons.VisibilityMode.NEVER
    ).legend(
        common.VizLegendOptions()
        .display_mode(commons.LegendDisplayMode.LIST)
        .placement(commons.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs([])
    )  # fmt: skip
    figures = (
        ("linklab_run_download_seconds", "time", units.Seconds),
        ("linklab_run_efficiency_ratio", "efficiency", units.PercentUnit),
        ("linklab_run_link_delta_seconds", "link Δ", units.Seconds),
    )
    everything = described(
        table.Panel(), "Runs",
        "Every run in the time shown. Efficiency is the least time in which the links could have "
        "delivered the file / the time taken; link Δ is by how much one link finished later.",
        units.Short,
    )  # fmt: skip
    refs = "ABCDE"
    for ref, (name, _, _) in zip(refs, figures, strict=False):
        everything.with_target(at_end(f"{by_run} ({ever(name)})", ref))
    for ref, link in zip(refs[3:], NAMES, strict=True):
        everything.with_target(at_end(f"{by_run} ({bytes_of(link)})", ref))
    everything.transformations([merged(), columns({
        "Time": None, "scenario": "scenario", "algorithm": "algorithm", "seed": "seed",
        **{f"Value #{ref}": shown for ref, (_, shown, _) in zip(refs, figures, strict=False)},
        **{f"Value #{ref}": f"{shown} bytes"
           for ref, shown in zip(refs[3:], NAMES.values(), strict=True)},
        "run": "run",
    })])  # fmt: skip
    for _, shown, unit in figures:
        everything.override_by_name(shown, [DynamicConfigValue(id_val="unit", value=unit)])
    for shown in NAMES.values():
        everything.override_by_name(
            f"{shown} bytes", [DynamicConfigValue(id_val="unit", value=units.BytesSI)]
        )
    everything.sort_by([common.TableSortByFieldState().display_name("time").desc(False)])
    rows = (
        (7, (
            (12, bars(
                "Download time", units.Seconds, "Median over the chosen runs. Lower is better.",
                at_end(median("linklab_run_download_seconds")),
            )),
            (12, bars(
                "Efficiency", units.PercentUnit,
                "Least possible time / time taken, median over the chosen runs. 100 % cannot be beaten.",
                at_end(median("linklab_run_efficiency_ratio")),
            ).max(1).decimals(1)),
        )),
        (7, (
            (12, bars(
                "Link Δ", units.Seconds,
                "By how much one link finished after the other, median. Long means badly balanced.",
                at_end(median("linklab_run_link_delta_seconds")),
            )),
            (12, link_colours(split)),
        )),
        (8, ((24, everything),)),
    )  # fmt: skip
    made = framed(
        "Compare algorithms", "linklab-compare",
        "Runs side by side: those that a live lab has made, and those that were published "
        "(`linklab publish`), which stand more than 3 h in the past.",
        "linklab_run_download_seconds",
    )  # fmt: skip
    return with_rows(made.time("now-24h", "now").refresh(""), rows)


# --- Regression history.


def regression_history() -> Dashboard:
    """*Regression history*: the same figures over the weeks."""
    which = "{{scenario}}, {{algorithm}}, seed {{seed}}"

    def over_time(name: str) -> str:
        return f"max by (scenario, algorithm, seed) (max_over_time({series(name)}[$__interval]))"

    def points(title: str, unit: str, description: str, *queries: prometheus.Dataquery) -> Any:
        panel = lines(title, unit, description, *queries)
        panel.show_points(commons.VisibilityMode.ALWAYS).point_size(6).fill_opacity(0)
        panel.span_nulls(True)
        return panel.legend(
            common.VizLegendOptions()
            .display_mode(commons.LegendDisplayMode.TABLE)
            .placement(commons.LegendPlacement.RIGHT)
            .show_legend(True)
            .calcs(["lastNotNull", "min", "max"])
        )

    time = "linklab_run_download_seconds"
    usual = f"quantile by (scenario, algorithm, seed) (0.5, {ever(time)})"
    failed = figure(
        "Failed", units.Short, "Runs without figures in the time shown.",
        at_end(f"sum({ever('linklab_run_failed')})"),
    ).thresholds(thresholds((None, GREEN), (1, RED)))  # fmt: skip
    counted = figure(
        "Runs", units.Short, "Runs in the time shown.", at_end(f"count({ever('linklab_run_failed')})")
    ).color_scheme(one_colour(GREY))  # fmt: skip
    revisions = described(
        table.Panel(), "Revisions", "Which revisions of linklab the runs are of.", units.Short
    ).with_target(
        at_end(f"count by (revision, place, clock) ({ever('linklab_run_info')})")
    ).with_transformation(columns({
        "Time": None, "revision": "revision", "place": "place", "clock": "clock", "Value": "runs",
    })).decimals(0)  # fmt: skip
    rows = (
        (8, (
            (20, points(
                "Download time", units.Seconds,
                "Each point is a run. In virtual time the same code and seed give the same figure, "
                "so every step is a change.",
                query(over_time(time), which),
            )),
            (4, failed),
        )),
        (7, (
            (20, points(
                "Against the usual", units.PercentUnit,
                "Download time against the median of the time shown. Beyond ±5 % is worth a look.",
                query(f"{over_time(time)} / on (scenario, algorithm, seed) {usual} - 1", which),
            ).min(-0.2).max(0.2)
             .thresholds(thresholds((None, RED), (-0.05, "transparent"), (0.05, RED)))
             .thresholds_style(common.GraphThresholdsStyleConfig()
                               .mode(commons.GraphThresholdsStyleMode.AREA))),
            (4, counted),
        )),
        (7, (
            (16, points(
                "Efficiency", units.PercentUnit, "Least possible time / time taken.",
                query(over_time("linklab_run_efficiency_ratio"), which),
            ).max(1)),
            (8, revisions),
        )),
        (7, (
            (12, points(
                "Stalls", units.Seconds,
                "How long no link brought anything though bytes were missing.",
                query(over_time("linklab_run_stalled_seconds"), which),
            )),
            (12, points(
                "Wasted", units.BytesSI, "What all links received in vain.",
                query(over_time("linklab_run_wasted_bytes"), which),
            )),
        )),
    )  # fmt: skip
    made = framed(
        "Regression history", "linklab-regression",
        "Published runs over the weeks (`linklab regress`, then `linklab publish`), in the order in "
        "which they were published.", "linklab_run_download_seconds",
    )  # fmt: skip
    return with_rows(made.time("now-7d", "now").refresh(""), rows)


DASHBOARDS = {
    "live-lab.json": live_lab,
    "compare-algorithms.json": compare_algorithms,
    "regression-history.json": regression_history,
}


def generated() -> dict[str, str]:
    """Each dashboard's file name and content."""
    encoder = JSONEncoder(sort_keys=True, indent=2, ensure_ascii=False)
    return {name: encoder.encode(make()) + "\n" for name, make in DASHBOARDS.items()}


def main() -> None:
    """Writes the files."""
    for name, content in generated().items():
        (DIRECTORY / name).write_text(content)


if __name__ == "__main__":
    main()
