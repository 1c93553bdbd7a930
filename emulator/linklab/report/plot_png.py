"""A plot as a PNG. The same plot gives the same bytes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from linklab.core import whole_file
from linklab.core.link_kinds import link_title
from linklab.core.scratch import scratch_prefix

# Before matplotlib is imported: it would keep its font cache under HOME.
_scratch = tempfile.TemporaryDirectory(prefix=scratch_prefix("matplotlib"))
os.environ["MPLCONFIGDIR"] = _scratch.name

from matplotlib import rc_context  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from linklab.report.plotting import Mark, Panel, Plot, envelope  # noqa: E402

WIDTH_IN, PANEL_IN, DPI = 11.0, 2.1, 110
COLUMNS = 1000
MAX_MARKS = 14
"""With more there is a line at each, but no text."""


def draw(plot: Plot, file: Path) -> None:
    """Writes the plot to `file`. Raises OSError where that is not possible."""
    with rc_context({"text.parse_math": False}):  # Names with `$` stay names.
        _draw(plot, file)


def _draw(plot: Plot, file: Path) -> None:
    heights = [2.0 if number == 0 else 1.0 for number in range(len(plot.panels))]
    figure = Figure(figsize=(WIDTH_IN, PANEL_IN * sum(heights) * 0.8 + 0.9), dpi=DPI)
    FigureCanvasAgg(figure)
    axes = figure.subplots(
        len(plot.panels), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
    )[:, 0]
    figure.suptitle(plot.title, x=0.01, ha="left", weight="bold")
    for axis, panel in zip(axes, plot.panels, strict=True):
        _panel(axis, panel, plot)
    _marks(axes[0], plot)
    axes[-1].set_xlabel("seconds")
    axes[-1].set_xlim(0, plot.end_s)
    figure.tight_layout(rect=(0, 0, 1, 0.98))
    with whole_file.replacing(file) as written:
        figure.savefig(written, format="png", metadata={"Software": None})


def _panel(axis: Axes, panel: Panel, plot: Plot) -> None:
    axis.set_title(panel.title, loc="left", fontsize=9)
    axis.set_ylabel(panel.unit)
    axis.grid(alpha=0.3)
    for series in panel.series:
        times, values = envelope(series, plot.end_s, COLUMNS)
        axis.plot(
            [*times, plot.end_s],
            [*values, values[-1]],
            label=series.label,
            color=plot.styles[series.link].colour,
            linestyle="--" if series.dashed else "-",
            linewidth=1.3,
            drawstyle="steps-post",
        )
    if panel.unit != "dBm":
        axis.set_ylim(bottom=0)
    for outage in plot.outages:
        style = plot.styles[outage.link]
        axis.axvspan(
            outage.start_s,
            outage.end_s,
            facecolor=style.colour,
            alpha=0.18,
            hatch=style.hatch,
            edgecolor="grey",
            linewidth=0,
        )
    axis.legend(
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=4,
        fontsize=8,
        frameon=False,
        borderaxespad=0.2,
    )


def _marks(axis: Axes, plot: Plot) -> None:
    shown = [mark for mark in plot.marks if mark.t_s <= plot.end_s]
    top = axis.get_ylim()[1] * 1.35
    axis.set_ylim(top=top)
    for mark in shown:
        axis.axvline(mark.t_s, color=plot.styles[mark.link].colour, linewidth=0.8, linestyle=":")
    groups = _grouped(shown, plot.end_s / 25)
    for number, group in enumerate(groups if len(groups) <= MAX_MARKS else []):
        late = group[0].t_s > 0.7 * plot.end_s
        axis.annotate(
            f"{link_title(group[0].link)}: {', '.join(one.text for one in group)}",
            (group[0].t_s, top),
            ha="right" if late else "left",
            fontsize=7,
            xytext=(-2 if late else 2, -9 - 10 * (number % 3)),
            textcoords="offset points",
        )
    for what, t_s in plot.finishes_s.items():
        if t_s <= plot.end_s:
            axis.axvline(t_s, color="black", linewidth=1.2)
            axis.annotate(
                f"{what}: {t_s:.2f} s",
                (t_s, 0),
                xytext=(-3, 4),
                textcoords="offset points",
                ha="right",
                fontsize=8,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
            )


def _grouped(marks: list[Mark], within_s: float) -> list[list[Mark]]:
    """Marks of a link that follow each other closely, to be named together."""
    groups: list[list[Mark]] = []
    for mark in marks:
        last = groups[-1] if groups else []
        if last and last[0].link == mark.link and mark.t_s - last[0].t_s <= within_s:
            last.append(mark)
        else:
            groups.append([mark])
    return groups
