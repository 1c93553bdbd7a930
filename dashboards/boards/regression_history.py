"""*Regression history*: the downloads of a suite beside its baseline, the worst first."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.builders import common, dashboard, statetimeline, table
from grafana_foundation_sdk.models import common as commons
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DynamicConfigValue,
    FieldColorModeId,
    VariableHide,
    VariableSort,
)
from linklab.metrics import about, regression, results

from boards.frame import annotation, choice, framed, variable, with_rows
from boards.looks import (
    GREEN,
    GREY,
    RED,
    SECONDS,
    VIOLET,
    asking,
    by_names,
    columns,
    described,
    figure,
    merged,
    thresholds,
    unit_of,
    width_of,
)
from boards.query import REFS, STEP, WHICH, at_end, by, ever, in_words, now, query, series

CELL = "scenario, size, algorithm, seed"
"""Labels of what is downloaded again and again."""

SUITE = 'suite="$suite"'

MOST = 100
"""What is shown of a movement beyond any bound, which is infinite."""

BY_BOUND = thresholds((None, GREEN), (-1, GREY), (1.000001, RED))
"""Colours of a movement by its bound."""


IN_SUITE = f"on (run) {ever(regression.MOVED, SUITE)}"
"""Of the suite's runs, not of others that download the same."""


def _newest(expression: str) -> str:
    """Of the suite's newest run of each download alone."""
    newest = f"topk by ({CELL}) (1, {ever(about.ENDED)} and {IN_SUITE})"
    return f"({expression} and on (run) {newest})"


MOVED = by("max", CELL, _newest(ever(regression.MOVED, SUITE)))
"""The worst figure of each download's newest run."""


def _count(title: str, description: str, expression: str, colour: str) -> Any:
    panel = figure(title, units.Short, description, at_end(f"count({expression}) or vector(0)"))
    return panel.thresholds(thresholds((None, GREY), (1, colour))).decimals(0)


def _worse() -> Any:
    return _count(
        "Worse",
        "Downloads of which a figure is further from the baseline than the suite allows, or that "
        "fail.",
        f"{MOVED} > 1",
        RED,
    )


def _better() -> Any:
    best = by("min", CELL, _newest(ever(regression.MOVED, SUITE)))
    return _count(
        "Better",
        "Downloads of which a figure is better than the bound, and none is worse.",
        f"{best} < -1 unless on ({CELL}) {MOVED} > 1",
        GREEN,
    )


def _downloads() -> Any:
    return _count("Downloads", "Downloads of the suite in the time shown.", MOVED, GREY)


def _which() -> Any:
    panel = figure(
        "Which are worse",
        units.NoUnit,
        "The five worst downloads; all of them stand below.",
        now(in_words(f"topk(5, {MOVED} > 1)", ", ", *CELL.split(", "), otherwise="none"), WHICH),
    )
    return by_names(panel, RED)


def _table() -> Any:
    all_of_them = _newest(ever(regression.MOVED, SUITE))
    moved = (
        f"(topk by ({CELL}) (1, {all_of_them} > 1) "
        f"or on ({CELL}) bottomk by ({CELL}) (1, {all_of_them} < -1) "
        f"or on ({CELL}) topk by ({CELL}) (1, {all_of_them}))"
    )
    changed = by("max", f"{CELL}, figure", _newest(ever(regression.CHANGED, SUITE)))
    time = by("max", CELL, _newest(ever(results.DOWNLOAD)))
    efficiency = by("max", CELL, _newest(ever(results.EFFICIENCY)))
    named: dict[str, str | None] = {
        "scenario": "scenario",
        "size": "file",
        "algorithm": "algorithm",
        "seed": "seed",
        "figure": "worst figure",
    }
    shown = {
        "by its bound": (
            f"clamp_max({by('max', f'{CELL}, figure, run', moved)}, {MOST})",
            units.Short,
        ),
        "change": (
            f"{changed} and on ({CELL}, figure) {moved}",
            units.PercentUnit,
        ),
        "time": (time, SECONDS),
        "efficiency": (efficiency, units.PercentUnit),
        "revision": (f"{_newest(ever(about.INFO))} and on (run) {moved}", units.Short),
    }
    panel = described(
        table.Panel(),
        "Downloads beside the baseline",
        "The newest run of each download, the worst first: of its figures the one that is worst, or "
        "where none is worse best, by the bound that the suite has for it (above 1 is worse, below "
        f"-1 better, {MOST} beyond any: the download fails, or tells what it did not tell), and its "
        "change.",
        units.Short,
    )
    asking(panel, *(at_end(one) for one, _ in shown.values()))
    for ref, (column, (_, unit)) in zip(REFS, shown.items(), strict=False):
        panel.override_by_name(column, unit_of(unit))
        named[f"Value #{ref}"] = column
    named["Value #E"] = None
    named["revision"] = "revision"
    left = dict.fromkeys(("Time", "clock", "place", "run", "__name__"), None)
    panel.override_by_name(
        "by its bound",
        [
            DynamicConfigValue(id_val="thresholds", value=BY_BOUND.build()),
            DynamicConfigValue(id_val="color", value={"mode": "thresholds"}),
            DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-background"}),
            DynamicConfigValue(id_val="decimals", value=2),
        ],
    )
    for column, width_px in (("seed", 60), ("worst figure", 130)):
        panel.override_by_name(column, [width_of(width_px)])
    panel.min_width(60).transformations([merged(), columns({**named, **left})])
    return panel.sort_by([common.TableSortByFieldState().display_name("by its bound").desc(True)])


def _through_time() -> Any:
    moved = series(regression.MOVED, SUITE)
    beyond = " or ".join(
        f"{by(aggregate, CELL, ever(regression.MOVED, SUITE))} {bound}"
        for aggregate, bound in (("max", "> 1"), ("min", "< -1"))
    )
    then = f"last_over_time({moved}[6h])"
    worst, best = by("max", CELL, then), by("min", CELL, then)
    shown = f"({worst} > 1 or {best} < -1 or {worst})"
    panel = described(
        statetimeline.Panel(),
        "Downloads that left their bounds",
        "A row for each download that was worse or better in the time shown, and where it stood when: "
        "red is worse, green better, grey within its bounds.",
        units.Short,
    )
    asking(
        panel,
        query(
            f"{shown} and on ({CELL}) ({beyond})", "{{scenario}} {{size}}, {{algorithm}}, {{seed}}"
        ),
    )
    panel.color_scheme(dashboard.FieldColor().mode(FieldColorModeId.THRESHOLDS))
    panel.thresholds(BY_BOUND).merge_values(True).show_value(commons.VisibilityMode.NEVER)
    return panel.row_height(0.8).no_value("none")


def _failed() -> Any:
    panel = figure(
        "Failed",
        units.Short,
        "Runs of the suite without figures in the time shown.",
        at_end(f"sum({ever(results.FAILED)} and {IN_SUITE})"),
    )
    return panel.thresholds(thresholds((None, GREEN), (1, RED)))


def _revisions() -> Any:
    labels = ("revision", "place")
    panel = described(
        table.Panel(),
        "Revisions",
        "Which revisions of linklab the suite's runs are of.",
        units.Short,
    )
    asking(panel, at_end(by("count", ", ".join(labels), f"{ever(about.INFO)} and {IN_SUITE}")))
    named = {"Time": None, **{label: label for label in labels}, "Value": "runs"}
    return panel.min_width(60).with_transformation(columns(named)).decimals(0)


def _variables() -> list[Any]:
    """A suite, and what of it."""
    metric = regression.MOVED.name
    return [
        choice(
            "suite", "Suite", f"label_values({metric}, suite)", description="`linklab regress`'s."
        ),
        variable(
            "scenario",
            "Scenario",
            f"label_values({metric}{{{SUITE}}}, scenario)",
            description="A name of `linklab scenarios`.",
        ),
        variable(
            "algorithm",
            "Algorithm",
            f'label_values({metric}{{{SUITE}, scenario=~"$scenario"}}, algorithm)',
            description="How the client splits the work, or another program's name.",
        ),
        variable(
            "run",
            "Run",
            f"label_values({metric}{{{SUITE}}}, run)",
            description="One download.",
            sort=VariableSort.ALPHABETICAL_DESC,
        ).hide(VariableHide.HIDE_VARIABLE),
    ]


def regression_history() -> Dashboard:
    """The dashboard; each panel with its width, in rows of a height."""
    rows = (
        (
            4,
            (
                (3, _worse()),
                (3, _better()),
                (3, _downloads()),
                (3, _failed()),
                (12, _which()),
            ),
        ),
        (13, ((24, _table()),)),
        (9, ((18, _through_time()), (6, _revisions()))),
    )
    made = framed(
        "Regression history",
        "linklab-regression",
        "The downloads of a regression suite (`linklab regress`, then `linklab publish`) beside their "
        "baseline, and through the revisions in the order in which they were published.",
        _variables(),
    )
    of_revision = f"count by (revision) (last_over_time({series(about.INFO)}[1h]{{}}))"
    begins = (
        of_revision.replace("{}", "") + " unless " + of_revision.replace("{}", f" offset {STEP}")
    )
    made.annotation(annotation("New revision", begins, "{{revision}}", VIOLET, step="60s"))
    return with_rows(made.time("now-7d", "now").refresh(""), rows)
