"""*Regression history*: the same figures over the weeks."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.builders import common, prometheus, table
from grafana_foundation_sdk.models import common as commons
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard
from linklab.metrics import about, results
from linklab.metrics.metric import Metric

from boards.frame import framed, variables, with_rows
from boards.looks import (
    GREEN,
    GREY,
    RED,
    asking,
    columns,
    described,
    figure,
    lines,
    one_colour,
    thresholds,
)
from boards.query import at_end, by, ever, query, series

WHAT = "scenario, algorithm, seed"
"""Labels of what is run again and again."""

WHICH = "{{scenario}}, {{algorithm}}, seed {{seed}}"


def _over_time(metric: Metric[Any]) -> str:
    return by("max", WHAT, f"max_over_time({series(metric)}[$__interval])")


def _points(title: str, unit: str, description: str, *queries: prometheus.Dataquery) -> Any:
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


def _download_time() -> Any:
    return _points(
        "Download time",
        units.Seconds,
        "Each point is a run. In virtual time the same code and seed give the same figure, "
        "so every step is a change.",
        query(_over_time(results.DOWNLOAD), WHICH),
    )


def _failed() -> Any:
    panel = figure(
        "Failed",
        units.Short,
        "Runs without figures in the time shown.",
        at_end(f"sum({ever(results.FAILED)})"),
    )
    return panel.thresholds(thresholds((None, GREEN), (1, RED)))


def _against_the_usual() -> Any:
    usual = f"quantile by ({WHAT}) (0.5, {ever(results.DOWNLOAD)})"
    panel = _points(
        "Against the usual",
        units.PercentUnit,
        "Download time against the median of the time shown. Beyond ±5 % is worth a look.",
        query(f"{_over_time(results.DOWNLOAD)} / on ({WHAT}) {usual} - 1", WHICH),
    )
    panel.min(-0.2).max(0.2)
    panel.thresholds(thresholds((None, RED), (-0.05, "transparent"), (0.05, RED)))
    area = commons.GraphThresholdsStyleMode.AREA
    return panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(area))


def _runs() -> Any:
    panel = figure(
        "Runs",
        units.Short,
        "Runs in the time shown.",
        at_end(f"count({ever(results.FAILED)})"),
    )
    return panel.color_scheme(one_colour(GREY))


def _efficiency() -> Any:
    return _points(
        "Efficiency",
        units.PercentUnit,
        "Least possible time / time taken.",
        query(_over_time(results.EFFICIENCY), WHICH),
    ).max(1)


def _revisions() -> Any:
    labels = ("revision", "place")
    panel = described(
        table.Panel(), "Revisions", "Which revisions of linklab the runs are of.", units.Short
    )
    asking(panel, at_end(by("count", ", ".join(labels), ever(about.INFO))))
    named = {"Time": None, **{label: label for label in labels}, "Value": "runs"}
    return panel.with_transformation(columns(named)).decimals(0)


def _stalls() -> Any:
    return _points(
        "Stalls",
        units.Seconds,
        "How long no link brought anything though bytes were missing.",
        query(_over_time(results.STALLED), WHICH),
    )


def _wasted() -> Any:
    return _points(
        "Wasted",
        units.BytesSI,
        "Bytes that links received and nobody could use.",
        query(_over_time(results.WASTED), WHICH),
    )


def regression_history() -> Dashboard:
    """The dashboard; each panel with its width, in rows of a height."""
    rows = (
        (8, ((20, _download_time()), (4, _failed()))),
        (7, ((20, _against_the_usual()), (4, _runs()))),
        (7, ((16, _efficiency()), (8, _revisions()))),
        (7, ((12, _stalls()), (12, _wasted()))),
    )
    made = framed(
        "Regression history",
        "linklab-regression",
        "Published runs over the weeks (`linklab regress`, then `linklab publish`), in the order in "
        "which they were published.",
        variables(results.DOWNLOAD),
    )
    return with_rows(made.time("now-7d", "now").refresh(""), rows)
