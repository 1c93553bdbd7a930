"""Shows a comparison as a table for people and as JSON for machines. Pure.

The table fits 80 columns for two links. If more links make it too wide, it first moves their end
times, then their megabytes into lines below it. Text carries all information. Colour only repeats
it. Consoles without block characters get ASCII.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import fields

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from linklab.core import units
from linklab.core.link_kinds import link_title
from linklab.core.printable import printable
from linklab.runs import figures, workload_figures
from linklab.runs.comparison import Comparison, ComparisonRow, EnergyRow, LinkRow, Spread
from linklab.runs.figures import (
    DOWNLOAD,
    EFFICIENCY,
    GOODPUT,
    ORACLE,
    PHONE,
    RUN_FIGURES,
    TAIL,
    WASTED,
)
from linklab.scenario.workload import WHOLE_FILE

_UNITS = {"done": "end s", "MB": "MB"}
"""The columns of each link: end time and megabytes."""
_COLUMNS = figures.figures_in(lambda one: one.table)
"""The first column stands before the links' columns, the others behind. A workload's own figures
replace the others."""
_ENERGY = [(one, one.table) for one in figures.ENERGY_FIGURES if one.table]
_NOTHING = "-"
_MIN_BAR = 5
_MAX_BAR = 30
_PUBLISHED_WELL = 0.05
_PUBLISHED_FAIRLY = 0.15


class EfficiencyBar:
    """Draws a bar as wide as its cell, filled in eighths of a character to the ratio of efficiency."""

    def __init__(self, ratio: float) -> None:
        self.ratio = min(max(ratio, 0.0), 1.0)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(_MIN_BAR, min(options.max_width, _MAX_BAR))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, _MAX_BAR)
        if options.ascii_only:
            full = round(self.ratio * width)
            yield Segment("#" * full + "." * (width - full))
            return
        eighths = round(self.ratio * width * 8)
        bar = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
        yield Segment(bar, Style(color="green"))
        yield Segment(" " * (width - len(bar)))


def _renderable(comparison: Comparison, width: int, ascii_only: bool) -> RenderableType:
    """Returns the comparison for a console of `width` columns."""
    size = f"{comparison.size_bytes / 1e6:g} MB"
    if comparison.workload != WHOLE_FILE:
        size = f"{comparison.workload} of {size}"
    facts = [size, f"oracle {_number(comparison.oracle_s)} s"]
    runs = {row.runs for row in comparison.rows if row.runs}
    if runs and runs != {1}:
        count = str(runs.pop()) if len(runs) == 1 else f"{min(runs)} to {max(runs)}"
        facts.append(f"medians of {count} runs")
    head = Text(comparison.scenario, style="bold")
    if comparison.title:
        head.append(f"  {comparison.title}", style="not bold")
    parts: list[RenderableType] = [head, Text(", ".join(facts), style="dim")]
    shown = _link_columns(comparison)
    table = _table(comparison, width, ascii_only, shown)
    while table is None:
        shown.pop(0)
        table = _table(comparison, width, ascii_only, shown)
    parts.append(table)
    parts += _link_notes(comparison, shown)
    parts += _notes(comparison)
    return Group(*parts)


def _link_columns(comparison: Comparison) -> list[str]:
    """Lists the link columns that apply. A workload of many requests has no end time per link."""
    return ["done", "MB"] if comparison.workload == WHOLE_FILE else ["MB"]


def render(comparison: Comparison, *, width: int = 80) -> str:
    """Returns the comparison as text, without escape sequences."""
    stream = io.StringIO()
    show(comparison, Console(file=stream, width=width, force_terminal=False))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def show(comparison: Comparison, console: Console) -> None:
    console.print(_renderable(comparison, console.width, console.options.ascii_only))


def _table(
    comparison: Comparison, width: int, ascii_only: bool, shown: Sequence[str]
) -> Table | None:
    """Returns the table with the link columns in `shown`, None if it is too wide with them."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")

    def right(header: str) -> None:
        table.add_column(header, justify="right", no_wrap=True)

    table.add_column("algorithm", no_wrap=True, vertical="bottom")
    (_, time), *others = _COLUMNS
    right(time.heading)
    for what in shown:
        for link in comparison.links:
            right(f"{link_title(link)}\n{_UNITS[what]}")
    own = workload_figures.of_workload(comparison.workload)
    for figure in own.values():
        right(figure.column)
    if not own:
        for _, column in others:
            right((ascii_only and column.ascii_heading) or column.heading)
    if comparison.has_energy:
        for _, column in _ENERGY:
            right(column.heading)
    if comparison.has_published:
        right("publ.\ns")
        right("error\n%")
    cells = [_cells(row, comparison, shown) for row in comparison.rows]
    if shown and _width(table, cells) > width:
        return None
    with_bar = not own and _width(table, cells) + 1 + _MIN_BAR <= width
    if with_bar:
        table.add_column("", min_width=_MIN_BAR, max_width=_MAX_BAR)
    for row, texts in zip(comparison.rows, cells, strict=True):
        efficiency = row.of(EFFICIENCY)
        bar = [EfficiencyBar(efficiency.median) if efficiency else ""] if with_bar else []
        table.add_row(*texts, *bar)
    return table


def _width(table: Table, rows: list[list[Text]]) -> int:
    """Returns the width of the columns so far, with one space between them."""
    total = len(table.columns) - 1
    for index, column in enumerate(table.columns):
        header = max(len(line) for line in str(column.header).splitlines())
        total += max([header, *(row[index].cell_len for row in rows)])
    return total


def _cells(row: ComparisonRow, comparison: Comparison, shown: Sequence[str]) -> list[Text]:
    time, *others = (
        _median(row.of(figure), base=figure.unit.base, digits=column.digits)
        for figure, column in _COLUMNS
    )
    cells = [Text(row.algorithm), Text(time, style="bold")]
    for what in shown:
        cells += [Text(_of_link(row.links.get(name), what)) for name in comparison.links]
    own = workload_figures.of_workload(comparison.workload)
    for key, figure in own.items():
        cells.append(Text(_median(row.workload.get(key), digits=3 if figure.unit else 0)))
    if not own:
        cells += map(Text, others)
    if comparison.has_energy:
        for energy, column in _ENERGY:
            joules = row.energy.of(energy) if row.energy else None
            cells.append(Text(_median(joules, digits=column.digits)))
    if comparison.has_published:
        cells.append(Text(_number(row.published_s)))
        cells.append(_error(row.error_ratio))
    return cells


def _number(value: float | None, digits: int = 2) -> str:
    if value is None:
        return _NOTHING
    return f"{value:.{digits}f}" if math.isfinite(value) else "never"


def _median(value: Spread | None, *, base: float = 1.0, digits: int = 2) -> str:
    return _NOTHING if value is None else _number(value.median / base, digits)


def _of_link(link: LinkRow | None, what: str) -> str:
    if link is None:
        return _NOTHING
    return _median(link.finish_s) if what == "done" else f"{link.bytes.median / 1e6:.1f}"


def _link_notes(comparison: Comparison, shown: Sequence[str]) -> list[RenderableType]:
    """Returns the link columns that the table had no room for, one line per row."""
    notes: list[RenderableType] = []
    wanted = {what: unit for what, unit in _UNITS.items() if what in _link_columns(comparison)}
    for what, unit in wanted.items():
        if what not in shown:
            for row in comparison.rows:
                links = ", ".join(
                    f"{link_title(n)} {_of_link(one, what)}" for n, one in row.links.items()
                )
                notes.append(Text(f"{row.algorithm}, {unit}: {links}", style="dim"))
    return notes


def _error(ratio: float | None) -> Text:
    if ratio is None:
        return Text(_NOTHING)
    style = "red"
    if abs(ratio) <= _PUBLISHED_FAIRLY:
        style = "green" if abs(ratio) <= _PUBLISHED_WELL else "yellow"
    percent = round(ratio * 100, 1)
    return Text(f"{percent:+.1f}" if percent else "0.0", style=style)


def _notes(comparison: Comparison) -> list[RenderableType]:
    """Returns the notes below the table: spread over runs, wasted bytes, failures."""
    notes = []
    spreads = [
        f"{row.algorithm} {time.min:.2f}-{time.max:.2f} (sd {time.sd:.2f})"
        for row in comparison.rows
        if (time := row.of(DOWNLOAD)) and time.count > 1
    ]
    if spreads:
        notes.append(Text("time from-to in s: " + ", ".join(spreads), style="dim"))
    models = dict.fromkeys(row.energy.model for row in comparison.rows if row.energy)
    if models:
        tails = ", ".join(
            f"{row.algorithm} {row.energy.of(TAIL).median:.1f}"
            for row in comparison.rows
            if row.energy
        )
        notes.append(
            Text(
                f"energy by {', '.join(models)}; of it after the download, J: {tails}", style="dim"
            )
        )
        phones_j = [row.energy.of(PHONE).median for row in comparison.rows if row.energy]
        if max(phones_j):
            said = f"of it the phone itself, for the same time in all rows, J: {max(phones_j):.1f}"
            notes.append(Text(said, style="dim"))
    for row in comparison.rows:
        notes += [Text(f"{row.algorithm}, {words}", style="dim") for words in _shared(row)]
    wasted = [
        f"{row.algorithm} {one.median / 1e6:.1f}"
        for row in comparison.rows
        if (one := row.of(WASTED)) and one.median >= 0.05e6
    ]
    if wasted:
        notes.append(Text("received and not used, MB: " + ", ".join(wasted), style="dim"))
    notes += [Text(note, style="dim") for note in comparison.notes]
    for row in comparison.rows:
        for reason in dict.fromkeys(row.failures):
            count = row.failures.count(reason)
            times = f" ({count} runs)" if count > 1 else ""
            why = printable(reason, keep="")
            notes.append(Text(f"{row.algorithm} failed{times}: {why}", style="red"))
    return list(notes)


def _shared(row: ComparisonRow) -> list[str]:
    """Describes the flows of others, the time of each of several clients, and how all share each
    link."""
    lines = []
    for unit, base, name in (
        ("Mbit/s", 1e6, GOODPUT.key),
        ("95 % of delays, ms", 1e-3, "delay_p95_s"),
    ):
        flows = [
            f"{title} {one[name].median / base:.2f}"
            for title, one in row.traffic.items()
            if name in one
        ]
        if flows:
            lines.append(f"{unit}: {', '.join(flows)}")
    if row.clients:
        times = (f"{who} {_median(one.get(DOWNLOAD.key))}" for who, one in row.clients.items())
        lines.append(f"s: {', '.join(times)}")
    for link, parts in row.shares.items():
        shown = ", ".join(f"{who} {units.percent(one.median, '.1')}" for who, one in parts.items())
        lines.append(f"shares of {link}: {shown}; Jain's index {row.jain[link].median:.3f}")
    return lines


def to_json(comparison: Comparison) -> dict[str, object]:
    """Returns the comparison as plain data, for json.dump. Keys are stable. Units are in the keys.

    scenario, title, workload   strings
    size_bytes               payload
    oracle_s                 null where the links never deliver the payload
    rows[]                   in the order asked for:
      algorithm
      runs, failures[]       runs with figures; reasons of those without
      download_s, goodput_bps, efficiency, link_delta_s     medians, null where unknown: the
                             figures of runs/figures.py with `in_json`
      published_s, published_link_delta_s, error_ratio      null where nothing is published
      energy                 null where no energy model is named, else model, medians of joules
                             (main_j of the download and tail_j after it; phone_j of both, for the
                             same time in all rows), joules_per_byte, mean_w, p90_w and peak_w of
                             the download, links_j{name}, and spread
      workload{figure}       medians of the workload's own figures, none of a file's download
      queues{link}{direction}  medians of the figures of runs/queue_figures.py that are known
      traffic{flow}          medians of the figures of runs/traffic_figures.py that are known
      clients{client}        of each of several: download_s, goodput_bps
      shares{link}{who}      part of the sum of the rates on the link, or on "all links"
      jain{link}             Jain's index of these rates
      links{name}            bytes, share, finish_s, rtt_min_s, wasted_bytes, requests
      spread{metric}         min, max, sd of each metric above that has a median, the workload's
                             too; a link's metrics lie in links{name}.spread
    notes[]                  what has to be known of the clients
    """
    return {
        "scenario": comparison.scenario,
        "title": comparison.title,
        "workload": comparison.workload,
        "size_bytes": comparison.size_bytes,
        ORACLE.key: comparison.oracle_s if math.isfinite(comparison.oracle_s) else None,
        "rows": [_row_json(row) for row in comparison.rows],
        "notes": list(comparison.notes),
    }


def _row_json(row: ComparisonRow) -> dict[str, object]:
    metrics = {one.key: row.of(one) for one in RUN_FIGURES if one.in_json}
    return {
        "algorithm": row.algorithm,
        "runs": row.runs,
        "failures": list(row.failures),
        **_medians(metrics),
        "published_s": row.published_s,
        "published_link_delta_s": row.published_link_delta_s,
        "error_ratio": row.error_ratio,
        "energy": None if row.energy is None else _energy_json(row.energy),
        "workload": {name: one.median for name, one in row.workload.items()},
        "queues": {link: _medians_by_title(queues) for link, queues in row.queues.items()},
        "traffic": _medians_by_title(row.traffic),
        "clients": _medians_by_title(row.clients),
        "shares": _medians_by_title(row.shares),
        "jain": {link: one.median for link, one in row.jain.items()},
        "links": {name: _link_json(link) for name, link in row.links.items()},
        "spread": _spreads({**metrics, **row.workload}),
    }


def _medians_by_title(rows: dict[str, dict[str, Spread]]) -> dict[str, dict[str, float]]:
    return {
        title: {name: one.median for name, one in found.items()} for title, found in rows.items()
    }


def _energy_json(energy: EnergyRow) -> dict[str, object]:
    metrics: dict[str, Spread | None] = {**energy.figures}
    return {
        "model": energy.model,
        **_medians(metrics),
        "links_j": {name: one.median for name, one in energy.links_j.items()},
        "spread": _spreads(metrics),
    }


def _link_json(link: LinkRow) -> dict[str, object]:
    metrics = {one.name: getattr(link, one.name) for one in fields(link)}
    return {**_medians(metrics), "spread": _spreads(metrics)}


def _medians(metrics: dict[str, Spread | None]) -> dict[str, float | None]:
    return {name: value.median if value else None for name, value in metrics.items()}


def _spreads(metrics: dict[str, Spread | None]) -> dict[str, dict[str, float]]:
    return {
        name: {"min": value.min, "max": value.max, "sd": value.sd}
        for name, value in metrics.items()
        if value
    }
