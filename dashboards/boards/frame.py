"""What every dashboard has around its panels: variables, marks of events, a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import dashboard, prometheus
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DashboardCursorSync,
    DashboardLinkType,
    GridPos,
    VariableOption,
    VariableRefresh,
    VariableSort,
)
from linklab.metrics import lab
from linklab.metrics.metric import Metric

from boards.query import DATASOURCE, by, increase


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


def variables(metric: Metric[Any]) -> list[Any]:
    """Scenario, algorithm and run, each among what those before it leave, of runs with `metric`."""
    scenario, algorithm = 'scenario=~"$scenario"', 'algorithm=~"$algorithm"'
    return [
        variable(
            "scenario",
            "Scenario",
            f"label_values({metric.name}, scenario)",
            description="A file in profiles/.",
        ),
        variable(
            "algorithm",
            "Algorithm",
            f"label_values({metric.name}{{{scenario}}}, algorithm)",
            description="How the client splits the work, or another program's name.",
        ),
        variable(
            "run",
            "Run",
            f"label_values({metric.name}{{{scenario}, {algorithm}}}, run)",
            description="One download: when it was started, and its directory.",
        ),
    ]


def annotation(name: str, kinds: str, colour: str, *, shown: bool) -> Any:
    """Events of some kinds as marks in every panel, by the steps of their counters."""
    expression = by("sum", "link, kind", increase(lab.EVENTS, "2s", kinds)) + " > 0"
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


def framed(title: str, uid: str, description: str, metric: Metric[Any]) -> dashboard.Dashboard:
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
