"""Shows the programs' costs as a table, as Markdown for pull requests, and as JSON. Pure."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from linklab.regression.cost import CostReport, Gate
from linklab.regression.showing import code, row

_TITLES = (
    *("CPU ms\nper MB", "peak\nMiB", "CPU,\ncurl = 1", "at\nmost"),
    *("memory,\ncurl = 1", "at\nmost"),
)


def table(report: CostReport) -> RenderableType:
    """Returns a table with a row for each program; text below it names exceeded limits."""
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    made.add_column("program", no_wrap=True)
    for title in _TITLES:
        made.add_column(title, justify="right", no_wrap=True)
    for one in report.gates:
        made.add_row(one.name, *_figures(one))
    worse = [Text(f"worse: {words}", "red") for words in report.broken]
    return Group(made, Text(_in_one_line(report)), *worse)


def markdown(report: CostReport) -> str:
    """Returns a summary for a pull request."""
    title = "costs more than it may" if report.broken else "costs no more than it may"
    titles = [one.replace("\n", " ") for one in _TITLES]
    lines = [f"### linklab: {title}", "", _in_one_line(report) + ".", ""]
    lines += [f"- {code(words)}" for words in report.broken]
    lines += ["", row("program", *titles), "|---|" + "--:|" * len(titles)]
    lines += [row(code(one.name), *_figures(one)) for one in report.gates]
    return "\n".join([*lines, ""])


def to_json(report: CostReport) -> dict[str, object]:
    """Returns the report as plain data, for json.dump. Keys are stable; units are in the keys.

    curl[]: cpu_s, wall_s, peak_bytes of each round; programs[]: name, cpu_s_per_mb, peak_bytes,
    cpu_ratio and memory_ratio (curl's are 1), cpu_limit, memory_limit, broken[] (in words).
    """
    return {
        "suite": report.suite,
        "exit_code": report.exit_code,
        "size_bytes": report.size_bytes,
        "rounds": report.rounds,
        "curl": [asdict(one) for one in report.curl],
        "programs": [{**asdict(one), "broken": one.broken} for one in report.gates],
    }


def _in_one_line(report: CostReport) -> str:
    size_mb = report.size_bytes / 1e6
    return f"{report.suite}: medians of {report.rounds} downloads of {size_mb:g} MB each"


def _figures(one: Gate) -> list[str]:
    return [
        f"{one.cpu_s_per_mb * 1e3:.2f}",
        f"{one.peak_bytes / 2**20:.1f}",
        f"{one.cpu_ratio:.2f}",
        f"{one.cpu_limit:g}",
        f"{one.memory_ratio:.2f}",
        f"{one.memory_limit:g}",
    ]
