"""How panels look: the same kind of panel, colour and column everywhere."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.builders import (
    barchart,
    common,
    dashboard,
    prometheus,
    stat,
    timeseries,
)
from grafana_foundation_sdk.models import common as commons
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
)
from linklab.core.link_kinds import KINDS

from boards.query import DATASOURCE, REFS

NAMES = {name: kind.title for name, kind in KINDS.items()}
"""The links that are shown, and how."""

COLOURS = {name: kind.colours[0] for name, kind in KINDS.items()}
"""A link has one colour everywhere; blue and orange, which every eye tells apart."""

GREEN, RED, GREY, VIOLET, YELLOW = "#73BF69", "#F2495C", "#8e8e8e", "#B877D9", "#FADE2A"
LIGHT_VIOLET = "#DEB6F2"


SECONDS = "suffix:s"
"""Of what is compared: Grafana's own unit would call one time minutes and another milliseconds."""


def link_colours(panel: Any) -> Any:
    """Every series that names a link gets the link's colour."""
    for link, colour in COLOURS.items():
        panel.override_by_regexp(f"/^({link}|{NAMES[link]})\\b/", [fixed_colour(colour)])
    return panel


def fixed_colour(colour: str) -> DynamicConfigValue:
    """A property of a field: its colour."""
    return DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": colour})


def unit_of(unit: str) -> list[DynamicConfigValue]:
    """Properties of a column: its unit, and of what is compared as many digits in all rows."""
    made = [DynamicConfigValue(id_val="unit", value=unit)]
    if digits := {SECONDS: 2, units.PercentUnit: 1}.get(unit):
        made.append(DynamicConfigValue(id_val="decimals", value=digits))
    return made


def width_of(width_px: int) -> DynamicConfigValue:
    """A property of a column: its width."""
    return DynamicConfigValue(id_val="custom.width", value=width_px)


def dashed() -> list[DynamicConfigValue]:
    """Properties of a limit: a dashed line, nothing below it."""
    return [
        DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [6, 4]}),
        DynamicConfigValue(id_val="custom.fillOpacity", value=0),
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


def asking(panel: Any, *queries: prometheus.Dataquery) -> Any:
    """A panel with its queries, which Grafana calls by letters in their order."""
    for ref, one in zip(REFS, queries, strict=False):
        panel.with_target(one.ref_id(ref))
    return panel


def listed(panel: Any) -> Any:
    """A panel with its series in a line below it."""
    return panel.legend(
        common.VizLegendOptions()
        .display_mode(commons.LegendDisplayMode.LIST)
        .placement(commons.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs([])
    )


def lines(title: str, unit: str, description: str, *queries: prometheus.Dataquery) -> Any:
    """Lines over time, a colour per link."""
    panel = asking(described(timeseries.Panel(), title, description, unit), *queries)
    panel.min(0).line_width(1).fill_opacity(12).show_points(commons.VisibilityMode.NEVER)
    listed(panel)
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


def figure(title: str, unit: str, description: str, *queries: prometheus.Dataquery) -> Any:
    """One figure, the newest."""
    panel = asking(described(stat.Panel(), title, description, unit), *queries)
    return (
        panel.graph_mode(commons.BigValueGraphMode.NONE)
        .color_mode(commons.BigValueColorMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("–")
    )


def by_names(panel: Any, colour: str, size_px: int = 14) -> Any:
    """A figure's names in place of its values, below each other, in colour where there is one."""
    panel.text(common.VizTextDisplayOptions().value_size(size_px))
    panel.orientation(commons.VizOrientation.HORIZONTAL)
    panel.text_mode(commons.BigValueTextMode.NAME)
    return panel.thresholds(thresholds((None, GREY), (1, colour)))


def bars(title: str, unit: str, description: str, *queries: prometheus.Dataquery) -> Any:
    """A bar per algorithm."""
    panel = asking(described(barchart.Panel(), title, description, unit), *queries)
    panel.x_field("algorithm").show_value(commons.VisibilityMode.ALWAYS).decimals(2)
    panel.bar_width(0.7).fill_opacity(80).x_tick_label_spacing(0)
    panel.text(common.VizTextDisplayOptions().value_size(12))
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


def sorted_by(column: str) -> DataTransformerConfig:
    """The rows of a table in the order of a column."""
    return DataTransformerConfig(
        id_val="sortBy", options={"fields": {}, "sort": [{"field": column, "desc": False}]}
    )


def merged() -> DataTransformerConfig:
    """One table of several, by the columns that they share."""
    return DataTransformerConfig(id_val="merge", options={})
