"""Draws a plot as text for a terminal."""

from __future__ import annotations

import math
from typing import Any

import plotext

from linklab.core.link_kinds import link_title
from linklab.report.plotting import Panel, Plot, envelope

PANEL_ROWS = 12
MAX_MARKS = 12

_OTHERS = "*+#%~=@&$!?^"
"""Characters of dashed series whose link's capital letter is taken. No link has one as its letter."""


def text(plot: Plot, columns: int) -> str:
    """Returns the plot in `columns` columns. Each series is drawn with a character of its own."""
    lines = [plot.title, ""]
    for panel in plot.panels[:1]:
        markers = _markers(panel, plot)
        lines += _panel(panel, plot, columns, markers)
        drawn = (f"{one} {series.label}" for one, series in zip(markers, panel.series, strict=True))
        if _need_legend(panel, markers):
            lines.append(f"drawn as: {', '.join(drawn)}")
    for panel in plot.panels[1:]:
        lines += _ranges(panel, plot)
    lines += _outages(plot)
    for mark in plot.marks[:MAX_MARKS]:
        lines.append(f"{mark.t_s:9.3f} s  {link_title(mark.link)}: {mark.text}")
    if len(plot.marks) > MAX_MARKS:
        lines.append(f"           and {len(plot.marks) - MAX_MARKS} more events")
    for what, t_s in plot.finishes_s.items():
        lines.append(f"{t_s:9.3f} s  {what} finished")
    return "\n".join(lines) + "\n"


def _markers(panel: Panel, plot: Plot) -> list[str]:
    """Returns each series' character: the letter of its link, or another one if it is dashed."""
    letters = [style.letter for style in plot.styles.values()]
    free = iter(_OTHERS)
    markers: list[str] = []
    for series in panel.series:
        marker = plot.styles[series.link].letter
        if series.dashed:
            marker = marker.upper()
        if series.dashed and marker in (*letters, *markers):
            marker = next(free)
        markers.append(marker)
    return markers


def _need_legend(panel: Panel, markers: list[str]) -> bool:
    """Tells whether a character is not its link's first letter."""
    pairs = zip(markers, panel.series, strict=True)
    return any(series.dashed or not series.link.startswith(one) for one, series in pairs)


def _panel(panel: Panel, plot: Plot, columns: int, markers: list[str]) -> list[str]:
    figure: Any = plotext.figure
    figure.clear()
    figure.plot_size(columns, PANEL_ROWS + 4)
    for series, marker in zip(panel.series, markers, strict=True):
        times, values = envelope(series, plot.end_s, columns)
        known = [(t, v) for t, v in zip(times, values, strict=True) if not math.isnan(v)]
        if not known:
            continue
        figure.draw(figure.signal(*zip(*known, strict=True), marker=marker))
    figure.draw(figure.signal([0.0], [0.0], marker=" "))  # Makes the axis begin at 0.
    drawn = plotext.uncolorize(str(figure.build()))
    figure.clear()
    return [f"{panel.title}, {panel.unit}", *drawn.splitlines()]


def _ranges(panel: Panel, plot: Plot) -> list[str]:
    """Returns one line per series with the range of most of its values."""
    lines = []
    for series in panel.series:
        known = [
            value
            for t_s, value in zip(series.times_s, series.values, strict=True)
            if not math.isnan(value) and t_s <= plot.end_s
        ]
        if known:
            low, high = min(known), max(known)
            values = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            lines.append(f"{panel.title}, {series.label}: {values} {panel.unit}")
    return lines


def _outages(plot: Plot) -> list[str]:
    lines = []
    for link in plot.styles:
        own = [one for one in plot.outages if one.link == link]
        if own:
            total_s = sum(one.end_s - one.start_s for one in own)
            times = "once" if len(own) == 1 else f"{len(own)} times"
            lines.append(f"{link_title(link)} carries nothing {times}, {total_s:.3f} s in all")
    return lines
