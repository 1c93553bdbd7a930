"""Shows a regression report as a table, as Markdown for pull requests, and as JSON. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from linklab.core.printable import printable
from linklab.regression.figures import Values
from linklab.regression.verdict import CheckedCell, Status, SuiteReport
from linklab.runs.figures import DOWNLOAD, RunFigure, figures_in

_STYLES = {Status.WORSE: "red", Status.ERROR: "red", Status.BETTER: "green", Status.SAME: ""}
_MARKS = {Status.WORSE: "!", Status.ERROR: "?", Status.BETTER: "+", Status.SAME: ""}
_LISTED = {Status.WORSE: "worse", Status.ERROR: "no verdict", Status.BETTER: "better"}


def table(report: SuiteReport, width: int) -> RenderableType:
    """Returns a table of the download times' changes in percent, scenarios by algorithms.

    The console has `width` columns. Deviations are listed below the table. Of several seeds the
    table has the worst.
    """
    algorithms = list(dict.fromkeys(one.cell.algorithm for one in report.checked))
    scenarios = list(dict.fromkeys(one.cell.scenario for one in report.checked))
    parts: list[RenderableType] = [
        Text("change of the download time in %; ! worse, + better, ? no verdict", "dim")
    ]
    name_width = max(map(len, [*scenarios, "scenario"]), default=8)
    for some in _fitting(algorithms, width - name_width):
        made = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
        made.add_column("scenario", no_wrap=True, vertical="bottom")
        for name in some:
            made.add_column(name.replace("-", "-\n", 1), justify="right", no_wrap=True)
        for scenario in scenarios:
            entries = [_entry(report.checked, scenario, name) for name in some]
            if any(entry.plain for entry in entries):
                made.add_row(scenario, *entries)
        parts.append(made)
    for status, title in _LISTED.items():
        cells = report.of(status)
        if cells:
            parts.append(Text(f"{title}:", f"bold {_STYLES[status]}"))
            parts += [Text(f"  {one.cell}: {one.in_words()}") for one in cells]
    parts += [Text(f"linklab: {problem}", "red") for problem in report.problems]
    return Group(*parts)


_COLUMN = 8
"""The width of `-12.3 !` and the gap between columns."""


def _fitting(algorithms: Sequence[str], room: int) -> list[Sequence[str]]:
    """Divides the algorithms into groups that fit next to each other."""
    groups: list[list[str]] = [[]]
    used = 0
    for name in algorithms:
        needed = max(_COLUMN, *(len(part) + 2 for part in name.replace("-", "-\n", 1).split("\n")))
        if used + needed > room and groups[-1]:
            groups.append([])
            used = 0
        groups[-1].append(name)
        used += needed
    return [*groups]


def _entry(checked: Sequence[CheckedCell], scenario: str, algorithm: str) -> Text:
    cells = [one for one in checked if one.cell[:2] == (scenario, algorithm)]
    if not cells:
        return Text("")
    ranks = (Status.SAME, Status.BETTER, Status.ERROR, Status.WORSE)
    worst = max(cells, key=lambda one: (ranks.index(one.status), change(one) or 0.0))
    return Text(f"{_percent(worst)}{_MARKS[worst.status] or ' '}", _STYLES[worst.status])


def change(one: CheckedCell) -> float | None:
    """Returns the change of the download time as a share of the baseline's."""
    then = one.baseline[DOWNLOAD.key] if one.baseline else None
    now = one.now[DOWNLOAD.key] if one.now else None
    return None if not then or now is None else (now - then) / then


def _percent(one: CheckedCell) -> str:
    ratio = change(one)
    if ratio is None:
        return "-"
    rounded = round(ratio * 100, 1)
    return f"{rounded:+.1f}" if rounded else "0"


def markdown(report: SuiteReport) -> str:
    """Returns a summary for a pull request: verdict, deviations, and all figures folded.

    Names are of a-z, 0-9 and '-'. What programs said is untrusted.
    """
    title = {0: "no regression", 1: "regression", 2: "no verdict"}[report.exit_code]
    lines = [f"### linklab: {title}", "", report.in_one_line + ".", ""]
    lines += [f"- {code(problem)}" for problem in report.problems]
    for status, heading in _LISTED.items():
        cells = report.of(status)
        if cells:
            lines += ["", f"**{heading.capitalize()}**", "", row("download", "what"), "|---|---|"]
            lines += [
                row(code(one.cell), code(one.reason) if one.reason else one.in_words())
                for one in cells
            ]
    others = [
        (figure, how)
        for figure, how in figures_in(lambda one: one.bounds)
        if figure is not DOWNLOAD
    ]
    headings = ["download", "baseline s", "now s", "change", *(how.heading for _, how in others)]
    lines += [
        "",
        f"<details><summary>All {len(report.checked)} downloads</summary>",
        "",
        row(*headings),
        "|---" + "|--:" * (len(headings) - 1) + "|",
    ]
    for one in report.checked:
        texts = [
            code(one.cell),
            _number(DOWNLOAD, one.baseline),
            _number(DOWNLOAD, one.now),
            _percent(one) + (" %" if change(one) is not None else ""),
            *(_number(figure, one.now) for figure, _ in others),
        ]
        lines.append(row(*texts))
    return "\n".join([*lines, "", "</details>", ""])


def row(*texts: str) -> str:
    """Returns a row of a Markdown table."""
    return "".join(f"| {text.replace('|', chr(92) + '|')} " for text in texts) + "|"


def code(what: object) -> str:
    """Formats untrusted text as code in Markdown, in which it is neither markup, link nor mention."""
    text = printable(" ".join(str(what).split()), keep="")
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if "`" in text else ""
    return f"{fence}{space}{text}{space}{fence}"


def _number(figure: RunFigure, values: Values | None) -> str:
    value = (values or {}).get(figure.key)
    # Product and quotient round some values differently. Older summaries have the product.
    return "" if value is None else f"{value * (1 / figure.unit.base):.3f}"


def to_json(report: SuiteReport) -> dict[str, object]:
    """Returns the report as plain data, for json.dump. Keys are stable; units are in the keys.

    cells[]: scenario, algorithm, seed, status (same, better, worse, error), baseline{} and now{}
    (figures by key, null where unknown), deviations[] (figure, baseline, now, allowed, worse),
    reason of a failure, wall_s, run_dir.
    """
    return {
        "suite": report.suite,
        "baseline": report.baseline,
        "exit_code": report.exit_code,
        "counts": {one.value: len(report.of(one)) for one in Status},
        "problems": list(report.problems),
        "verified": report.verified,
        "wall_s": report.wall_s,
        "virtual_s": report.virtual_s,
        "run_dir": report.run_dir,
        "cells": [
            {
                **one.cell._asdict(),
                "status": one.status.value,
                "baseline": one.baseline,
                "now": one.now,
                "deviations": [
                    {
                        **{key: value for key, value in asdict(each).items() if key != "figure"},
                        "figure": each.figure.key,
                    }
                    for each in one.deviations
                ],
                "reason": one.reason,
                "wall_s": one.wall_s,
                "run_dir": one.run_dir,
            }
            for one in report.checked
        ],
    }
