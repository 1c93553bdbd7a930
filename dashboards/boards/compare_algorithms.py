"""*Compare algorithms*: figures of runs of the same download, side by side."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.builders import common, dashboard, table
from grafana_foundation_sdk.models import common as commons
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DataTransformerConfig,
    DynamicConfigValue,
    ValueMap,
    ValueMappingResult,
    VariableSort,
)
from linklab.metrics import about, lab, results
from linklab.metrics.metric import RUN_LABELS, Metric

from boards.frame import Said, choice, framed, variable, with_rows
from boards.looks import (
    LIGHT_VIOLET,
    NAMES,
    SECONDS,
    VIOLET,
    asking,
    bars,
    columns,
    described,
    fixed_colour,
    link_colours,
    listed,
    merged,
    one_colour,
    sorted_by,
    unit_of,
    width_of,
)
from boards.query import REFS, at_end, by, ever

SAME = ('size="$size"', 'clock="$clock"')
"""Runs of one scenario that can be compared: of the same file, on the same clock."""

RUN = ", ".join(RUN_LABELS)

TOLD_AFTER_S = 1
"""A live lab tells what a run came to with the scrape after its end."""

RECEIVED = {
    **{name: ever(results.RECEIVED, *SAME, link=link) for link, name in NAMES.items()},
    "other links": ever(results.RECEIVED, *SAME, f'link!~"{"|".join(NAMES)}"'),
}
"""What came over each link that most scenarios have, and over all others together."""

FLAWED = f"max by (run) ({ever(about.FLAWED, *SAME)}) == 1"
"""Runs whose figures are not the scenario's."""


def _sound(expression: str) -> str:
    """Without the runs whose figures are not the scenario's."""
    return f"({expression} unless on (run) {FLAWED})"


def _of_all(quantile: float, metric: Metric[Any]) -> str:
    """A quantile over runs, for each algorithm."""
    return f"quantile by (algorithm) ({quantile}, {_sound(ever(metric, *SAME))})"


ORDER = by("min", "algorithm", _sound(ever(about.ORDER, *SAME)))
"""The algorithms' places in lists of all."""


def _figure(title: str, unit: str, description: str, metric: Metric[Any]) -> Any:
    """A bar for each algorithm, in the order of all lists."""
    median = _of_all(0.5, metric)
    order = f"{ORDER} and on (algorithm) {median}"
    panel = bars(title, unit, description, at_end(median), at_end(order))
    panel.transformations(
        [
            merged(),
            sorted_by("Value #B"),
            columns({"Time": None, "Value #B": None, "algorithm": "algorithm", "Value #A": title}),
        ]
    )
    return panel


def _download_time() -> Any:
    return _figure(
        "Download time",
        SECONDS,
        "Median over the chosen runs. Lower is better.",
        results.DOWNLOAD,
    )


def _efficiency() -> Any:
    panel = _figure(
        "Efficiency",
        units.PercentUnit,
        "Least possible time / time taken, median over the chosen runs. 100 % cannot be beaten.",
        results.EFFICIENCY,
    )
    return panel.decimals(1)


def _link_delta() -> Any:
    return _figure(
        "Link Δ",
        SECONDS,
        "From the first link's end to the last one's, median. Long means badly balanced.",
        results.LINK_DELTA,
    )


def _spread() -> Any:
    """What a box plot shows, of the bars that Grafana has: quarters, stacked up and down from 0."""
    least, low, median, high, most = (
        _of_all(quantile, results.DOWNLOAD) for quantile in (0, 0.25, 0.5, 0.75, 1)
    )
    quarters = {
        "second quarter": (f"({low} - {median})", VIOLET),
        "fastest quarter": (f"({least} - {low})", LIGHT_VIOLET),
        "third quarter": (f"({high} - {median})", VIOLET),
        "slowest quarter": (f"({most} - {high})", LIGHT_VIOLET),
    }
    panel = bars(
        "Spread of download time",
        units.PercentUnit,
        "How far runs are from their algorithm's median, which is at 0: half of them within the "
        "dark part, all within both. What differs by less than that may be chance.",
        *(at_end(f"{part} / {median}") for part, _ in quarters.values()),
        at_end(f"{ORDER} and on (algorithm) {median}"),
    )
    shown = {f"Value #{ref}": name for ref, name in zip(REFS, quarters, strict=False)}
    order = f"Value #{REFS[len(quarters)]}"
    named = columns({"Time": None, order: None, "algorithm": "algorithm", **shown})
    panel.transformations([merged(), sorted_by(order), named])
    for name, (_, colour) in quarters.items():
        panel.override_by_name(name, [fixed_colour(colour)])
    panel.stacking(commons.StackingMode.NORMAL).decimals(1)
    return listed(panel.show_value(commons.VisibilityMode.NEVER))


def _every_run() -> Any:
    """Runs of one algorithm beside each other, as the seeds go."""
    one, order = (
        by("max", "algorithm, seed", _sound(ever(metric, *SAME)))
        for metric in (results.DOWNLOAD, about.ORDER)
    )
    panel = bars(
        "Download time of every run",
        SECONDS,
        "A bar for each run, by seed. How far they stray says what a difference of medians is worth.",
        at_end(one),
        at_end(order),
    )
    matrix = DataTransformerConfig(
        id_val="groupingToMatrix",
        options={
            "columnField": "seed",
            "rowField": "algorithm",
            "valueField": "Value #A",
            "emptyValue": "null",
        },
    )
    named = columns({"algorithm\\seed": "algorithm"})
    panel.transformations([merged(), sorted_by("Value #B"), matrix, named])
    return panel.show_value(commons.VisibilityMode.NEVER).color_scheme(one_colour(VIOLET))


def _bytes_per_link() -> Any:
    panel = bars(
        "Bytes per link",
        units.BytesSI,
        "Payload that came over each link, mean over runs.",
        *(
            at_end(by("sum", "algorithm", by("avg", "algorithm, link", _sound(one))))
            for one in RECEIVED.values()
        ),
        at_end(ORDER),
    )
    shown = {f"Value #{ref}": name for ref, name in zip(REFS, RECEIVED, strict=False)}
    order = f"Value #{REFS[len(RECEIVED)]}"
    named = columns({"Time": None, order: None, "algorithm": "algorithm", **shown})
    panel.transformations([merged(), sorted_by(order), named])
    panel.stacking(commons.StackingMode.NORMAL).decimals(1)
    return link_colours(listed(panel.show_value(commons.VisibilityMode.NEVER)))


def _table(
    title: str, description: str, shown: dict[str, tuple[str, str]], *labels: str
) -> tuple[Any, dict[str, str | None]]:
    """A table of expressions, each a column with a unit, that share labels; and what its columns
    are called."""
    panel = described(table.Panel(), title, description, units.Short)
    asking(panel, *(at_end(one) for one, _ in shown.values()))
    named: dict[str, str | None] = {"Time": None, **{label: label for label in labels}}
    for ref, (column, (_, unit)) in zip(REFS, shown.items(), strict=False):
        panel.override_by_name(column, unit_of(unit))
        named[f"Value #{ref}"] = column
    return panel.min_width(60), named


def _algorithms() -> Any:
    time, efficiency = results.DOWNLOAD, results.EFFICIENCY
    sound, counted = _sound(ever(time, *SAME)), ever(results.FAILED, *SAME)
    shown = {
        "runs": (by("count", "algorithm", sound), units.Short),
        "time": (_of_all(0.5, time), SECONDS),
        "half from": (_of_all(0.25, time), SECONDS),
        "to": (_of_all(0.75, time), SECONDS),
        "least": (_of_all(0, time), SECONDS),
        "most": (_of_all(1, time), SECONDS),
        "efficiency": (_of_all(0.5, efficiency), units.PercentUnit),
        "left out": (by("count", "algorithm", f"{counted} and on (run) {FLAWED}"), units.Short),
        "failed": (by("sum", "algorithm", counted), units.Short),
        "order": (by("min", "algorithm", ever(about.ORDER, *SAME)), units.Short),
    }
    panel, named = _table(
        "Algorithms",
        "Medians over the chosen runs, with the middle half of the runs and all of them. Left out: "
        "runs whose links somebody changed, or whose emulator came late or had no time left.",
        shown,
        "algorithm",
    )
    order = next(column for column, name in named.items() if name == "order")
    return panel.transformations([merged(), sorted_by(order), columns({**named, order: None})])


def _runs() -> Any:
    flaws = " + ".join(
        f"{2**n} * {by('sum', RUN, ever(about.FLAWED, *SAME, why=why))}"
        for n, why in enumerate(lab.FLAWS)
    )
    shown = {
        "began": (f"1000 * {by('max', RUN, ever(about.BEGAN, *SAME))}", "dateTimeAsIso"),
        "until": (
            f"1000 * ({by('max', RUN, ever(about.ENDED, *SAME))} + {TOLD_AFTER_S})",
            "dateTimeAsIso",
        ),
        "time": (by("max", RUN, ever(results.DOWNLOAD, *SAME)), SECONDS),
        "efficiency": (by("max", RUN, ever(results.EFFICIENCY, *SAME)), units.PercentUnit),
        "link Δ": (by("max", RUN, ever(results.LINK_DELTA, *SAME)), SECONDS),
        **{name: (by("sum", RUN, one), units.BytesSI) for name, one in RECEIVED.items()},
        "flaw": (flaws, units.Short),
    }
    panel, named = _table(
        "Runs",
        "Every run in the time shown, also those left out above, with their flaw. Efficiency is the least "
        "time in which the links could have delivered the file / the time taken; link Δ is from the "
        "first link's end to the last one's. A run's name leads to it in *Live lab*, and to its "
        "report where a web server has what `linklab publish --reports` wrote.",
        shown,
        "run",
        "algorithm",
        "seed",
    )
    reasons = {
        str(sum(2**n for n, why in enumerate(lab.FLAWS) if why in chosen)): ValueMappingResult(
            text=", ".join(chosen)
        )
        for chosen in _subsets(lab.FLAWS)
    }
    panel.override_by_name(
        "flaw",
        [DynamicConfigValue(id_val="mappings", value=[ValueMap(reasons)])],
    )
    hidden = DynamicConfigValue(id_val="custom.hidden", value=True)
    for column in ("began", "until"):
        panel.override_by_name(column, [hidden])
    panel.override_by_name(
        "run",
        [
            width_of(300),
            DynamicConfigValue(
                id_val="links",
                value=[
                    {
                        "title": "the run in Live lab",
                        "url": "/d/linklab-live?var-run=${__data.fields.run:percentencode}"
                        "&from=${__data.fields.began.numeric}&to=${__data.fields.until.numeric}",
                    },
                    {
                        "title": "its report",
                        "url": "${reports:raw}/${__data.fields.run:percentencode}.html",
                        "targetBlank": True,
                    },
                ],
            ),
        ],
    )
    left = dict.fromkeys(("scenario", "size", "clock"), None)
    panel.transformations([merged(), columns({**named, **left})])
    return panel.sort_by([common.TableSortByFieldState().display_name("time").desc(False)])


def _subsets(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """All choices of words, the empty one first."""
    chosen: list[tuple[str, ...]] = [()]
    for word in words:
        chosen += [(*one, word) for one in chosen]
    return chosen


def _variables() -> list[Any]:
    """What is compared: one scenario, one size of its file, one clock; then who, and which runs."""
    metric, scenario = results.DOWNLOAD.name, 'scenario="$scenario"'
    same = ", ".join((scenario, *SAME))
    return [
        choice(
            "scenario",
            "Scenario",
            f"label_values({metric}, scenario)",
            description="A name of `linklab scenarios`. Times of different scenarios cannot be compared.",
        ),
        choice(
            "size",
            "File",
            f"label_values({metric}{{{scenario}}}, size)",
            description="The size of the file that was downloaded.",
        ),
        choice(
            "clock",
            "Clock",
            f"label_values({metric}{{{scenario}, {SAME[0]}}}, clock)",
            description="Virtual: figures repeat exactly. Real: the machine has a part in them.",
            sort=VariableSort.ALPHABETICAL_DESC,
        ),
        variable(
            "algorithm",
            "Algorithm",
            f"label_values({metric}{{{same}}}, algorithm)",
            description="How the client splits the work, or another program's name.",
        ),
        variable(
            "run",
            "Run",
            f'label_values({metric}{{{same}, algorithm=~"$algorithm"}}, run)',
            description="One download: when it was started, scenario, algorithm, seed; the newest "
            "first.",
            sort=VariableSort.ALPHABETICAL_DESC,
        ),
        Said("reports")
        .label("Reports at")
        .description(
            "Address of a web server with the pages that `linklab publish --reports` wrote."
        )
        .default_value("http://127.0.0.1:8000"),
    ]


def compare_algorithms() -> Dashboard:
    """The dashboard; each panel with its width, in rows of a height."""
    rows = (
        (7, ((12, _download_time()), (12, _spread()))),
        (7, ((12, _every_run()), (12, _efficiency()))),
        (7, ((12, _link_delta()), (12, _bytes_per_link()))),
        (10, ((24, _algorithms()),)),
        (10, ((24, _runs()),)),
    )
    made: dashboard.Dashboard = framed(
        "Compare algorithms",
        "linklab-compare",
        "Runs of one scenario side by side, with the same file and clock: those that a live lab has "
        "made, and those that were published (`linklab publish`), which stand some days in the past.",
        _variables(),
    )
    return with_rows(made.time("now-7d", "now").refresh(""), rows)
