"""Shows publications' statements beside measured values, as tables of 80 columns and JSON. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from linklab.core.statistics import LEAST_VALUES
from linklab.report import reproduction
from linklab.report.publication import Publication
from linklab.report.reproduction import CheckedStatement
from linklab.report.skill import Skill
from linklab.report.statement import KINDS, RunGroup
from linklab.scenario.workload_file import JOINED

_WIDTH = 80

_NAME = 30
"""The widest name in characters that a table always has room for."""

_STYLES = {"holds": "green", "fails": "red"}


def show(checked: Sequence[CheckedStatement], skill: Skill | None, console: Console) -> None:
    """Prints the checked statements in tables, then a summary, then what could not be checked and
    why."""
    width = min(console.width, _WIDTH)
    for rows in tables(checked):
        title, source, kind = _heading(rows[0])
        whose = f": {rows[0].statement.compared_clients}" if _of_the_same(rows) else ""
        about = f", {kind}" if kind != "outcome" else ""
        console.print(Text(f"{title}{whose} ({source}{about})", style="bold"), width=width)
        console.print(_table(rows), width=width)
        for reason in reasons(rows):
            console.print(Text(reason, style="dim"), width=width)
        console.print()
    for line in summary(checked, skill):
        tell(line, console)


def tell(line: str, console: Console) -> None:
    """Prints a line unchanged, wrapped to the width of the tables."""
    width = min(console.width, _WIDTH)
    console.print(line, markup=False, highlight=False, width=width)


def tables(checked: Sequence[CheckedStatement]) -> list[list[CheckedStatement]]:
    """Groups checked statements that have the same heading, in the order of their first ones."""
    found: dict[tuple[str, str, str], list[CheckedStatement]] = {}
    for one in checked:
        if one.verdict in ("holds", "fails"):
            found.setdefault(_heading(one), []).append(one)
    return list(found.values())


def reasons(rows: Sequence[CheckedStatement]) -> list[str]:
    """Lists for the statements of a table why they fail, what was fitted to them, or what else
    they accept, each reason once. A reason names its statements unless it holds for all. Of
    statements that are known not to follow, the reason is also given if they hold."""
    failing = [
        (one, one.statement.why)
        for one in rows
        if one.verdict == "fails" or one.statement.kind == "does not follow"
    ]
    fitted = [(one, ", ".join(one.statement.fitted_by)) for one in rows]
    built = [(one, one.statement.constructed) for one in rows]
    others = [(one, ", ".join(one.statement.also_accepts)) for one in rows]
    kind = rows[0].statement.kind
    return [
        *_each_once("why", failing, rows),
        *(
            _each_once("fitted to these, or can move them", fitted, rows)
            if kind == "calibration"
            else ()
        ),
        *(_each_once("by construction", built, rows) if kind == "by construction" else ()),
        *(_each_once("also accepted", others, rows) if kind == "cannot discriminate" else ()),
    ]


def _each_once(
    title: str, said: Sequence[tuple[CheckedStatement, str]], rows: Sequence[CheckedStatement]
) -> list[str]:
    found: dict[str, dict[str, None]] = {}
    for one, words in said:
        found.setdefault(words, {})[_label(one, rows)] = None
    if len(found) == 1:
        return [f"{title}: {words}" for words in found if words]
    return [f"{title} ({'; '.join(whose)}): {words}" for words, whose in found.items() if words]


def _heading(one: CheckedStatement) -> tuple[str, str, str]:
    return one.statement.title, one.statement.source, one.statement.kind


def _of_the_same(rows: Sequence[CheckedStatement]) -> bool:
    """Tells whether all rows compare the same clients. The heading then names them."""
    return len({one.statement.compared_clients for one in rows}) == 1


def _label(one: CheckedStatement, rows: Sequence[CheckedStatement]) -> str:
    return one.statement.where if _of_the_same(rows) else one.statement.words


def _in_lines(label: str) -> str:
    """Breaks a long name before its workload."""
    return label.replace(JOINED, f"\n{JOINED}") if len(label) > _NAME else label


def _table(rows: Sequence[CheckedStatement]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("", overflow="fold")
    for header in ("published", "measured", "95 % interval"):
        table.add_column(header, justify="right", header_style="dim", max_width=20)
    table.add_column("", no_wrap=True)
    for one in rows:
        table.add_row(
            _in_lines(_label(one, rows)),
            one.statement.expected.text,
            measured_text(one),
            interval(one),
            Text(verdict(one), style=_STYLES.get(one.verdict, "")),
        )
    return table


def measured_text(one: CheckedStatement) -> str:
    """Returns the measured value as text, a dash if there is none."""
    return "-" if one.measured is None else one.statement.say(one.measured)


def interval(one: CheckedStatement) -> str:
    """Returns the interval as text with one unit, a dash if there is none."""
    if one.interval is None:
        return "-"
    low, high = (one.statement.say(end) for end in (one.interval.low, one.interval.high))
    return f"{low.partition(' ')[0]} to {high}"


def verdict(one: CheckedStatement) -> str:
    """Returns the verdict as a word, with a question mark if it is not clear."""
    doubt = "?" if one.verdict in ("holds", "fails") and not one.clear else ""
    return one.verdict + doubt


def summary(checked: Sequence[CheckedStatement], skill: Skill | None) -> Iterator[str]:
    for kind in KINDS:
        of_kind = [one for one in checked if one.statement.kind == kind]
        counted = reproduction.count(of_kind)
        if counted.all:
            said = (
                f"{kind}: {counted.holds} of {counted.all} hold; {counted.clear} verdicts are clear"
            )
            if counted.fails == 1:
                said += f"; the miss is {'' if counted.explained else 'not '}explained"
            elif counted.fails:
                said += f"; {counted.explained} of the {counted.fails} misses are explained"
            yield said
            yield from _by_metric(of_kind)
        if kind == "outcome" and skill is not None:
            yield from _beside_nothing(skill)
    idle = sum(one.verdict == "no runs" for one in checked)
    if idle:
        yield f"without runs or figures: {idle}"
    virtual = sum(one.verdict == "not applicable" for one in checked)
    if virtual:
        yield (
            f"not applicable in virtual time: {virtual}, of processor and memory; runs on the real "
            "clock tell (--from)"
        )
    if any(verdict(one).endswith("?") for one in checked):
        yield (
            f"a question mark: fewer than {LEAST_VALUES} runs, or the interval reaches over the "
            "limit; other seeds may say otherwise"
        )


def _beside_nothing(skill: Skill) -> Iterator[str]:
    """Yields what rules that measure nothing hit of the outcomes, and what remains for the lab."""
    yield "  beside rules that measure nothing:"
    yield f"    the lab {skill.lab} of {skill.of}"
    forms = (f"{one.form} {one.answer} ({one.hits} of {one.of})" for one in skill.constants)
    yield f"    the best constants {skill.constant}: {'; '.join(forms)}"
    yield f"    arithmetic on the links' rates {skill.arithmetic}"
    low, high = skill.interval.low, skill.interval.high
    yield (
        f"  skill, the lab beyond the better rule: {skill.skill:+} of {skill.of} "
        f"({low:+.0f} to {high:+.0f})"
    )
    if low > 0:
        said = "this is the evidence for the lab"
    elif high < 0:
        said = "no evidence for the lab: the better rule needs no lab, and hits more"
    else:
        said = "no evidence for the lab: as many could hold by chance"
    yield (
        f"  {said}. {skill.only_lab} hold in the lab alone, {skill.only_rule} by the better rule alone"
    )


def _by_metric(checked: Sequence[CheckedStatement]) -> Iterator[str]:
    """Yields for each measure how many values hold, their errors, and how many comparisons hold."""
    for metric, of_metric in _grouped(checked).items():
        values = [one for one in of_metric if one.statement.form == "value"]
        others = reproduction.count(one for one in of_metric if one.statement.form != "value")
        said = []
        if values:
            counted = reproduction.count(values)
            said.append(f"{counted.holds} of {counted.all} values{_error(values)}")
        if others.all:
            said.append(f"{others.holds} of {others.all} comparisons")
        yield f"  {metric}: {'; '.join(said)}"


def _error(values: Sequence[CheckedStatement]) -> str:
    """Returns the errors as text, "" if only ranges are published."""
    measure = values[0].statement.measure
    relative = not measure.near_zero
    median = reproduction.median_error(values, relative=relative)
    rms = reproduction.rms_error(values, relative=relative)
    if median is None or rms is None:
        return ""
    said = [f"{one * 100:.1f} %" if relative else measure.say(one) for one in (median, rms)]
    return f", median error {said[0]}{'' if len(values) == 1 else f', rms {said[1]}'}"


def _grouped(checked: Sequence[CheckedStatement]) -> dict[str, list[CheckedStatement]]:
    """Groups the checked statements by measure."""
    found: dict[str, list[CheckedStatement]] = {}
    for one in checked:
        if one.verdict in ("holds", "fails"):
            found.setdefault(one.statement.metric, []).append(one)
    return found


def to_json(
    publication: Publication, checked: Sequence[CheckedStatement], skill: Skill | None
) -> dict[str, Any]:
    """Returns the verdicts as plain data, for json.dump. Keys are stable. Values are in base units:
    s, bit/s, bytes, J, W, ratios.

    counts{kind}: holds, fails, clear, explained (of those that fail), metrics{metric}: holds, fails,
      and of them values: holds, fails, median_error, median_error_ratio, rms_error, rms_error_ratio
    skill (null without outcomes): of, lab, constant, arithmetic (hits of the outcomes), skill (the lab's beyond
      the better rule), interval [low, high], only_lab, only_rule, constants[]: form, answer, hits, of
    statements[]: line, metric, link, form, with, of[], to[] (scenario/client), sums (of to[]), source, kind,
      fitted_by[], constructed, also_accepts[], why, published, low, high (limits, null where there is none), verdict, clear,
      measured, interval [low, high] (null where there are too few runs), runs, error_ratio
    """
    return {
        "publication": publication.name,
        "counts": {
            kind: _counts([one for one in checked if one.statement.kind == kind]) for kind in KINDS
        },
        "skill": None if skill is None else _skill(skill),
        "statements": [_statement(one) for one in checked],
    }


def _skill(skill: Skill) -> dict[str, Any]:
    return {
        **asdict(skill),
        "skill": skill.skill,
        "interval": [skill.interval.low, skill.interval.high],
    }


def _counts(checked: Sequence[CheckedStatement]) -> dict[str, Any]:
    counted = reproduction.count(checked)
    metrics = {}
    for metric, of_metric in _grouped(checked).items():
        values = [one for one in of_metric if one.statement.form == "value"]
        metrics[metric] = {
            **_count(of_metric),
            "values": {
                **_count(values),
                "median_error": reproduction.median_error(values, relative=False),
                "median_error_ratio": reproduction.median_error(values, relative=True),
                "rms_error": reproduction.rms_error(values, relative=False),
                "rms_error_ratio": reproduction.rms_error(values, relative=True),
            },
        }
    return {
        **_count(checked),
        "clear": counted.clear,
        "explained": counted.explained,
        "metrics": metrics,
    }


def _count(checked: Sequence[CheckedStatement]) -> dict[str, int]:
    counted = reproduction.count(checked)
    return {"holds": counted.holds, "fails": counted.fails}


def _statement(one: CheckedStatement) -> dict[str, Any]:
    said = one.statement
    return {
        "line": said.line,
        "metric": said.metric,
        "link": said.link or None,
        "form": said.form,
        "with": said.other or None,
        "of": _cells(said.of),
        "to": _cells(said.to),
        "sums": said.sums,
        "source": said.source,
        "kind": said.kind,
        "fitted_by": list(said.fitted_by),
        "constructed": said.constructed or None,
        "also_accepts": list(said.also_accepts),
        "why": said.why or None,
        "published": said.expected.text,
        "low": _finite(said.expected.low),
        "high": _finite(said.expected.high),
        "verdict": one.verdict,
        "clear": one.clear,
        "measured": one.measured,
        "interval": None if one.interval is None else [one.interval.low, one.interval.high],
        "runs": one.runs,
        "error_ratio": one.error_ratio,
    }


def _cells(cells: Sequence[RunGroup]) -> list[str]:
    return [f"{one.scenario}/{one.client}" for one in cells]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
