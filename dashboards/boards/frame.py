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
    VariableModel,
    VariableOption,
    VariableRefresh,
    VariableSort,
)
from linklab.metrics.metric import Metric

from boards.query import DATASOURCE


def variable(name: str, label: str, query_text: str, **more: Any) -> Any:
    """A choice of any number of label values, all of them at first; what else is said is said to
    `choice`."""
    return (
        choice(name, label, query_text, **more)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(VariableOption(selected=True, text="All", value="$__all"))
    )


def choice(
    name: str,
    label: str,
    query_text: str,
    *,
    description: str,
    pattern: str = "",
    sort: VariableSort = VariableSort.ALPHABETICAL_ASC,
) -> Any:
    """A choice of one label value, the first at first; a `pattern` makes values and texts of what a
    query yields."""
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .description(description)
        .datasource(DATASOURCE)
        .query({"query": query_text, "refId": f"variable-{name}", "qryType": _kind(query_text)})
        .definition(query_text)
        .regex(pattern)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(sort)
    )


class Said(dashboard.TextBoxVariable):
    """A variable that people type, with what it is at first. Grafana before 12 takes that from what
    is current alone, which the SDK leaves out."""

    def build(self) -> VariableModel:
        """With it as the current value, too."""
        made = super().build()
        made.current = VariableOption(selected=True, text=str(made.query), value=str(made.query))
        made.options = [made.current]
        return made


def _kind(query_text: str) -> int:
    """What Grafana's editor of variables calls a query: its numbers for both."""
    return {"label_values": 1, "query_result": 3}[query_text.partition("(")[0]]


def variables(metric: Metric[Any]) -> list[Any]:
    """Scenario, algorithm and run, each among what those before it leave, of runs with `metric`."""
    scenario, algorithm = 'scenario=~"$scenario"', 'algorithm=~"$algorithm"'
    return [
        variable(
            "scenario",
            "Scenario",
            f"label_values({metric.name}, scenario)",
            description="A name of `linklab scenarios`.",
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
            description="One download: when it was started, scenario, algorithm, seed; the newest "
            "first.",
            sort=VariableSort.ALPHABETICAL_DESC,
        ),
    ]


def annotation(
    name: str, expression: str, words: str, colour: str, *, shown: bool = True, step: str = "1s"
) -> Any:
    """Marks in every panel, a region where an expression yields something step after step.
    `words` is of its labels, such as "{{link}} down". Grafana leaves out what is not above 0."""
    return (
        dashboard.AnnotationQuery()
        .name(name)
        .datasource(DATASOURCE)
        .enable(shown)
        .icon_color(colour)
        .expr(expression)
        .step(step)
        .title_format(words)
        .target(prometheus.Dataquery().expr(expression).interval(step).ref_id("Marks").range())
    )


def framed(title: str, uid: str, description: str, chosen: Sequence[Any]) -> dashboard.Dashboard:
    """A dashboard without panels, with variables."""
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
    for one in chosen:
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
