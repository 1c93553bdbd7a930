"""Draws a plot as a picture with Vega-Lite (`vega.py`). The same plot gives the same bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from linklab.core import whole_file
from linklab.core.link_kinds import link_title
from linklab.report import vega
from linklab.report.plotting import Mark, Panel, Plot, envelope

WIDTH, HEIGHT = 640, 80
COLUMNS = 1000
LINES = 3
"""The lines of the marks' texts. A mark whose text fits in none of them is a line only."""

Spec = dict[str, Any]

_LABELS: Final = {"type": "text", "fontSize": 8}
_LETTER: Final = 4.5
"""The width of a letter of that size, in pixels, rounded up."""


def draw(plot: Plot, file: Path) -> None:
    """Writes the plot to `file`, as SVG if its name ends in .svg, else as PNG. Raises OSError."""
    form = "svg" if file.suffix == ".svg" else "png"
    whole_file.write(file, vega.drawn(spec(plot), form))


def spec(plot: Plot) -> Spec:
    """Stacks the panels. The first one is twice as high and has the marks."""
    first, *rest = plot.panels
    views = [_panel(first, plot, 2 * HEIGHT, _marks(plot)), *(_panel(one, plot) for one in rest)]
    views[-1]["encoding"]["x"] |= {"title": "seconds", "axis": {}}
    return {
        "title": {"text": plot.title, "anchor": "start", "offset": 12},
        "vconcat": views,
        "spacing": 12,
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
        "config": {
            "axis": {"titleFontWeight": "normal", "gridOpacity": 0.6},
            "legend": {"labelLimit": 0},
        },
    }


def _panel(panel: Panel, plot: Plot, height: int = HEIGHT, marks: Sequence[Spec] = ()) -> Spec:
    labels = [series.label for series in panel.series]
    values: list[dict[str, Any]] = [
        {"s": series.label, "t": t_s, "v": None if math.isnan(value) else value}
        for series in panel.series
        for t_s, value in _line(envelope(series, plot.end_s, COLUMNS), plot.end_s)
    ]
    legend = {"orient": "top", "title": None, "symbolStrokeWidth": 1.5, "offset": 0}
    colours = [plot.styles[series.link].colour for series in panel.series]
    dashes = [[4, 3] if series.dashed else [1, 0] for series in panel.series]
    y: dict[str, Any] = {"zero": panel.unit != "dBm"}
    if marks:  # Room for the marks' texts.
        y["domainMax"] = 1.35 * max(one["v"] or 0 for one in values) or 1
    scale = {"domain": [0, plot.end_s], "nice": False}
    lines = {
        "data": {"values": values},
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.2},
        "encoding": {
            "y": _quantity("v", title=panel.unit, scale=y, axis={"tickCount": height // 20}),
            "color": _by_series(labels, colours, legend),
            "strokeDash": _by_series(labels, dashes, legend),
        },
    }
    outages = [
        {
            "data": {"values": [{"t": one.start_s, "e": one.end_s}]},
            "mark": {"type": "rect", "color": plot.styles[one.link].colour, "opacity": 0.18},
            "encoding": {"x2": {"field": "e"}},
        }
        for one in plot.outages
    ]
    return {
        "title": {
            "text": panel.title,
            "anchor": "start",
            "frame": "group",
            "fontSize": 10,
            "fontWeight": "normal",
        },
        "width": WIDTH,
        "height": height,
        "encoding": {"x": _quantity("t", scale=scale, axis={"labels": False})},
        "layer": [lines, *outages, *marks],
    }


def _line(line: tuple[list[float], list[float]], end_s: float) -> list[tuple[float, float]]:
    times, values = line
    return [*zip(times, values, strict=True), (end_s, values[-1])]


def _quantity(field: str, **more: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": None, **more}


def _by_series(labels: Sequence[str], looks: Sequence[Any], legend: Mapping[str, Any]) -> Spec:
    scale = {"domain": labels, "range": looks}
    return {"field": "s", "type": "nominal", "scale": scale, "legend": legend}


def _marks(plot: Plot) -> list[Spec]:
    """Draws a dotted line at each event and a black line where something finished."""
    shown = [mark for mark in plot.marks if mark.t_s <= plot.end_s]
    layers = []
    for mark in shown:
        look = {"color": plot.styles[mark.link].colour, "strokeDash": [1, 2], "strokeWidth": 0.8}
        layers.append(_at(mark.t_s, {"type": "rule", **look}))
    groups = _grouped(shown, plot.end_s / 25)
    lines: list[list[tuple[float, float]]] = [[] for _ in range(LINES)]
    for group in groups:
        is_late = group[0].t_s > 0.7 * plot.end_s
        look = {"align": "right" if is_late else "left", "dx": -2 if is_late else 2}
        text = f"{link_title(group[0].link)}: {', '.join(one.text for one in group)}"
        width = _LETTER * len(text)
        at = WIDTH * group[0].t_s / plot.end_s - (width if is_late else 0)
        for number, taken in enumerate(lines):
            if all(at + width < begin or end < at for begin, end in taken):
                taken.append((at, at + width))
                layers.append(_at(group[0].t_s, {**_LABELS, **look, "y": 7 + 10 * number}, text))
                break
    for number, (what, t_s) in enumerate(plot.finishes_s.items()):
        if t_s <= plot.end_s:
            look = {**_LABELS, "align": "right", "dx": -3, "y": 2 * HEIGHT - 6 - 10 * number}
            text = f"{what}: {t_s:.2f} s"
            layers.append(_at(t_s, {"type": "rule", "color": "black"}))
            layers.append(
                _at(t_s, {**look, "stroke": "white", "strokeWidth": 4, "strokeJoin": "round"}, text)
            )
            layers.append(_at(t_s, look, text))
    return layers


def _at(t_s: float, mark: Mapping[str, Any], text: str | None = None) -> Spec:
    """Returns a Vega-Lite mark at a time."""
    encoding = {} if text is None else {"text": {"value": text}}
    return {"data": {"values": [{"t": t_s}]}, "mark": mark, "encoding": encoding}


def _grouped(marks: list[Mark], within_s: float) -> list[list[Mark]]:
    """Groups marks of one link that follow each other within `within_s`, to name them together."""
    groups: list[list[Mark]] = []
    for mark in marks:
        last = groups[-1] if groups else []
        if last and last[0].link == mark.link and mark.t_s - last[0].t_s <= within_s:
            last.append(mark)
        else:
            groups.append([mark])
    return groups
