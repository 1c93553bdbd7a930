"""*Compare algorithms*: figures of runs side by side."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.builders import common, table
from grafana_foundation_sdk.models import common as commons
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard, DynamicConfigValue
from linklab.metrics import results
from linklab.metrics.metric import RUN_LABELS, Metric

from boards.frame import framed, with_rows
from boards.looks import NAMES, asking, bars, columns, described, link_colours, listed, merged
from boards.query import REFS, at_end, by, ever

FIGURES = (
    (results.DOWNLOAD, "time", units.Seconds),
    (results.EFFICIENCY, "efficiency", units.PercentUnit),
    (results.LINK_DELTA, "link Δ", units.Seconds),
)
"""What the table of runs shows of a run besides its links: the metric, the column, its unit."""

RECEIVED = {
    **{name: ever(results.RECEIVED, link=link) for link, name in NAMES.items()},
    "other links": ever(results.RECEIVED, f'link!~"{"|".join(NAMES)}"'),
}
"""What came over each link that most scenarios have, and over all others together."""


def _median(metric: Metric[Any]) -> str:
    """The median over runs, for each algorithm."""
    return f"quantile by (algorithm) (0.5, {ever(metric)})"


def _download_time() -> Any:
    return bars(
        "Download time",
        units.Seconds,
        "Median over the chosen runs. Lower is better.",
        at_end(_median(results.DOWNLOAD)),
    )


def _efficiency() -> Any:
    panel = bars(
        "Efficiency",
        units.PercentUnit,
        "Least possible time / time taken, median over the chosen runs. 100 % cannot be beaten.",
        at_end(_median(results.EFFICIENCY)),
    )
    return panel.max(1).decimals(1)


def _link_delta() -> Any:
    return bars(
        "Link Δ",
        units.Seconds,
        "From the first link's end to the last one's, median. Long means badly balanced.",
        at_end(_median(results.LINK_DELTA)),
    )


def _bytes_per_link() -> Any:
    panel = bars(
        "Bytes per link",
        units.BytesSI,
        "Payload that came over each link, mean over runs.",
        *(
            at_end(by("sum", "algorithm", by("avg", "algorithm, link", one)))
            for one in RECEIVED.values()
        ),
    )
    shown = {f"Value #{ref}": name for ref, name in zip(REFS, RECEIVED, strict=False)}
    named = columns({"Time": None, "algorithm": "algorithm", **shown})
    panel.transformations([merged(), named]).stacking(commons.StackingMode.NORMAL).decimals(1)
    return link_colours(listed(panel.show_value(commons.VisibilityMode.NEVER)))


def _runs() -> Any:
    panel = described(
        table.Panel(),
        "Runs",
        "Every run in the time shown. Efficiency is the least time in which the links could have "
        "delivered the file / the time taken; link Δ is from the first link's end to the last one's.",
        units.Short,
    )
    shown = [
        *((ever(metric), column, unit) for metric, column, unit in FIGURES),
        *(
            (by("sum", ", ".join(RUN_LABELS), one), f"{name} bytes", units.BytesSI)
            for name, one in RECEIVED.items()
        ),
    ]
    named: dict[str, str | None] = {"Time": None}
    named |= {label: label for label in ("scenario", "algorithm", "seed")}
    asking(panel, *(at_end(by("max", ", ".join(RUN_LABELS), one)) for one, _, _ in shown))
    for ref, (_, column, unit) in zip(REFS, shown, strict=False):
        panel.override_by_name(column, [DynamicConfigValue(id_val="unit", value=unit)])
        named[f"Value #{ref}"] = column
    panel.transformations([merged(), columns({**named, "run": "run"})])
    return panel.sort_by([common.TableSortByFieldState().display_name("time").desc(False)])


def compare_algorithms() -> Dashboard:
    """The dashboard; each panel with its width, in rows of a height."""
    rows = (
        (7, ((12, _download_time()), (12, _efficiency()))),
        (7, ((12, _link_delta()), (12, _bytes_per_link()))),
        (8, ((24, _runs()),)),
    )
    made = framed(
        "Compare algorithms",
        "linklab-compare",
        "Runs side by side: those that a live lab has made, and those that were published "
        "(`linklab publish`), which stand more than 3 h in the past.",
        results.DOWNLOAD,
    )
    return with_rows(made.time("now-24h", "now").refresh(""), rows)
