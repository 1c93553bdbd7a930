"""Writes recorded downloads beside the lab's predictions, as tables and JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from linklab.core.link_kinds import link_title
from linklab.field.prediction import LinkPrediction, Prediction

MOST_ROWS: Final = 12
"""The most rows of a table over time."""


def table(source: str, one: Prediction, notes: str) -> RenderableType:
    """Returns the figures as recorded and in the lab, both over time, and the notes on the
    recording."""
    head = Text(source, style="bold")
    head.append(f"  {one.contestant} as recorded, and in the lab over links made of the record", "")
    return Group(head, _figures(one), _over_time(one.links), Text(notes, "dim"))


def _figures(one: Prediction) -> Table:
    made = _table("", "recorded", "lab", "%")
    _row(made, "download, s", one.measured_s, one.predicted_s, 3)
    for link in one.links:
        name, here, there = link_title(link.link), link.measured, link.predicted
        _row(made, f"{name}, MB", here.carried_bytes / 1e6, there.carried_bytes / 1e6, 1)
        _row(made, f"{name} done, s", here.finish_s, there.finish_s, 1)
        _row(made, f"{name}, ms with queues", here.rtt_s * 1e3, there.rtt_s * 1e3, 1)
        _row(made, f"{name}, ms without", here.base_rtt_s * 1e3, there.base_rtt_s * 1e3, 1)
    return made


def _row(table: Table, title: str, measured: float, predicted: float, digits: int) -> None:
    off = f"{100 * (predicted / measured - 1):+.1f}" if measured else "-"
    table.add_row(title, f"{measured:.{digits}f}", f"{predicted:.{digits}f}", off)


def _over_time(links: Sequence[LinkPrediction]) -> RenderableType:
    names = [link_title(one.link) for one in links]
    made = _table("Mbit/s from", *(word for name in names for word in (name, "lab")))
    steps = list(zip(*(one.steps for one in links), strict=True))
    size = -(-len(steps) // MOST_ROWS)
    for first in range(0, len(steps), size):
        part = steps[first : first + size]
        means = [
            fmean(rates) / 1e6
            for column in zip(*part, strict=True)
            for rates in (
                [one.measured_bps for one in column],
                [one.predicted_bps for one in column],
            )
        ]
        made.add_row(f"{part[0][0].start_s:.0f} s", *(f"{mean:.1f}" for mean in means))
    off = ", ".join(
        f"{name} {100 * one.off_ratio:.1f} %" for name, one in zip(names, links, strict=True)
    )
    length_s = steps[0][0].end_s - steps[0][0].start_s
    return Group(made, Text(f"Apart in {length_s:.1f} s on average: {off} of the mean.", "dim"))


def _table(*columns: str) -> Table:
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for number, title in enumerate(columns):
        made.add_column(title, justify="right" if number else "left", no_wrap=True)
    return made


def to_json(source: str, one: Prediction, notes: str) -> dict[str, object]:
    """Returns the same as plain data, with every step."""
    return {"recording": source, **asdict(one), "error_ratio": one.error_ratio, "notes": notes}
