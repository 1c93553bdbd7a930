"""Builds the charts of a report as Vega-Lite specifications with their data. Pure.

A specification states no text colour, no background and no width. The page fills these in for its
light and dark form and its own width. `vega.py` does so for files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from linklab.core import statistics
from linklab.core.link_kinds import link_title
from linklab.core.statistics import Interval
from linklab.field.prediction import LinkPrediction
from linklab.report.link_styles import link_styles
from linklab.runs.run_figures import ProcessFigures
from linklab.runs.time_series import Range, TimeSeries
from linklab.scenario import Scenario

Spec = dict[str, Any]

_SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
_ROW: Final = 26
_SERIES: Final = 220
_WIDE: Final = 4
"""A logarithmic axis is used if the largest value is over this many times the smallest."""

_LEGEND: Final = {"orient": "top", "title": None, "symbolOpacity": 1, "symbolStrokeWidth": 3}

OUTCOMES: Final = ("complete", "taken over", "cancelled", "failed", "unfinished")


def _spec(values: Sequence[Mapping[str, Any]], height: int, **rest: Any) -> Spec:
    return {
        "$schema": _SCHEMA,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "data": {"values": list(values)},
        **rest,
    }


def _q(field: str, title: str | None, **more: Any) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", "title": title, **more}


def _n(field: str, title: str | None = None, **more: Any) -> dict[str, Any]:
    return {"field": field, "type": "nominal", "title": title, **more}


def _layer(field: str, mark: Mapping[str, Any], **encoding: Any) -> Spec:
    """Returns a layer of the values that have `field`."""
    return {
        "transform": [{"filter": f"isValid(datum.{field})"}],
        "mark": mark,
        "encoding": encoding,
    }


def _point(size: int, opacity: float) -> dict[str, Any]:
    return {"type": "point", "filled": True, "size": size, "opacity": opacity}


def times(
    runs: Mapping[str, Sequence[tuple[int, float]]], intervals: Mapping[str, Interval | None]
) -> Spec:
    """Draws download times, one row per client: a point per run (seed, seconds), a line at the
    median, and a bar for the median's confidence interval."""
    values: list[dict[str, Any]] = []
    for client, found in runs.items():
        values += [{"client": client, "seed": seed, "s": round(s, 3)} for seed, s in found]
    for client, found in runs.items():
        one = {"client": client, "median": round(statistics.median(s for _, s in found), 3)}
        interval = intervals.get(client)
        if interval is not None:
            one |= {"low": round(interval.low, 3), "high": round(interval.high, 3)}
        values.append(one)
    seconds = [s for found in runs.values() for _, s in found]
    scale = _scale(seconds)
    tooltip = [_n("client", "client"), _q("median", "median, s")]
    bars = _layer(
        "low",
        {"type": "bar", "height": 16, "opacity": 0.25, "color": "#7a7a8c"},
        x=_q("low", "download, s", scale=scale),
        x2={"field": "high"},
        tooltip=[*tooltip, _q("low", "from"), _q("high", "to")],
    )
    points = _layer(
        "s",
        _point(36, 0.65),
        x=_q("s", "download, s", scale=scale),
        color={"value": "#3b82c4"},
        tooltip=[_n("client", "client"), _q("seed", "seed"), _q("s", "download, s")],
    )
    medians = _layer(
        "median",
        {"type": "tick", "thickness": 3, "size": 18, "color": "#d4483b"},
        x=_q("median", "download, s", scale=scale),
        tooltip=tooltip,
    )
    y = _n("client", sort=list(runs), axis={"labelLimit": 130, "ticks": False, "domain": False})
    is_known = any(one is not None for one in intervals.values())
    return _spec(
        values,
        _ROW * len(runs) + 40,
        encoding={"y": y},
        # Vega warns of a layer without data.
        layer=[*([bars] if is_known else []), points, medians],
    )


def energies(runs: Mapping[str, Sequence[tuple[int, float, float]]]) -> Spec:
    """Draws download time against energy: a small point per run (seed, seconds, joules), a large
    one per client at its medians. A line joins the medians on the Pareto front."""
    values: list[dict[str, Any]] = []
    medians = {
        client: (
            statistics.median(s for _, s, _ in found),
            statistics.median(joules for _, _, joules in found),
        )
        for client, found in runs.items()
    }
    for client, found in runs.items():
        values += [
            {"client": client, "seed": seed, "s": round(s, 3), "j": round(joules, 2)}
            for seed, s, joules in found
        ]
        s, joules = medians[client]
        values.append({"client": client, "ms": round(s, 3), "mj": round(joules, 2)})
    values += [{"fs": round(s, 3), "fj": round(joules, 2)} for s, joules in front(medians.values())]
    seconds = [s for found in runs.values() for _, s, _ in found]
    scale = _scale(seconds)
    drawn = [joules for found in runs.values() for _, _, joules in found]
    upward = _scale(drawn)
    color = {**_n("client", sort=list(runs)), "legend": {**_LEGEND, "columns": 3}}
    of_run = [_n("client", "client"), _q("seed", "seed"), _q("s", "download, s"), _q("j", "J")]
    of_client = [_n("client", "client"), _q("ms", "median, s"), _q("mj", "median, J")]
    return _spec(
        values,
        _SERIES + 60,
        layer=[
            _layer(
                "fs",
                {"type": "line", "color": "#8a8f99", "strokeDash": [4, 3]},
                x=_q("fs", "download, s", scale=scale),
                y=_q("fj", "J", scale=upward),
            ),
            _layer(
                "s",
                _point(22, 0.45),
                x=_q("s", "download, s"),
                y=_q("j", "J"),
                color=color,
                tooltip=of_run,
            ),
            _layer(
                "ms",
                _point(130, 1),
                x=_q("ms", "download, s"),
                y=_q("mj", "J"),
                color=color,
                tooltip=of_client,
            ),
        ],
    )


def front(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Returns the points that no other point beats in both values (Pareto front), by time."""
    found: list[tuple[float, float]] = []
    for s, joules in sorted(points):
        if not found or joules < found[-1][1]:
            found.append((s, joules))
    return found


def powers(
    scenario: Scenario, power: Sequence[tuple[float, float, Mapping[str, float]]], end_s: float
) -> Spec:
    """Draws the device's power over time, in all and per link. A rule at `end_s` marks where the
    download ends and tail energy begins."""
    values: list[dict[str, Any]] = []
    for t, watts, links in power:
        at = round(t, 2)
        values += [
            {"l": link_title(link), "t": at, "w": round(one, 3)} for link, one in links.items()
        ]
        values.append({"l": "all", "t": at, "w": round(watts, 3)})
    used = {link for _, _, links in power for link in links}
    scale = _links(scenario, used)
    color = {
        **_n("l"),
        "scale": {"domain": [*scale["domain"], "all"], "range": [*scale["range"], "#8a8f99"]},
        "legend": _LEGEND,
    }
    return _spec(
        values,
        _SERIES,
        layer=[
            {
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8},
                "encoding": {"x": _q("t", "s"), "y": _q("w", "W"), "color": color},
            },
            {
                "data": {"values": [{"t": round(end_s, 2), "what": "tail begins"}]},
                "mark": {"type": "rule", "color": "#d4483b", "strokeDash": [2, 2]},
                "encoding": {"x": _q("t", "s"), "tooltip": _n("what")},
            },
        ],
    )


PROCESSES: Final = {"client": "#3b82c4", "server": "#c4863b"}
"""The measured processes and their colours."""


def loads(clients: Mapping[str, Mapping[str, Sequence[ProcessFigures]]]) -> Spec:
    """Draws the processor load of client and server in percent of a core. A bar goes from the 5th
    to the 90th percentile, a line marks the median, each as the median over runs. A point marks the
    median of each run."""
    values: list[dict[str, Any]] = []
    for client, processes in clients.items():
        for process, runs in processes.items():
            whose = {"client": client, "p": process}
            values += [{**whose, "v": round(100 * one.load_median, 2)} for one in runs]
            values.append(
                {
                    **whose,
                    "low": round(100 * statistics.median(one.load_p05 for one in runs), 2),
                    "median": round(100 * statistics.median(one.load_median for one in runs), 2),
                    "high": round(100 * statistics.median(one.load_p90 for one in runs), 2),
                }
            )
    y = _n("client", sort=list(clients), axis={"labelLimit": 130, "ticks": False, "domain": False})
    beside = {"field": "p", "sort": list(PROCESSES)}
    color = {**_n("p"), "scale": _of_processes(PROCESSES), "legend": _LEGEND}
    tooltip = [
        *(_n("client", "client"), _n("p", "process"), _q("median", "median, %")),
        *(_q("low", "5th percentile, %"), _q("high", "90th percentile, %")),
    ]
    return _spec(
        values,
        2 * _ROW * len(clients) + 70,
        encoding={"y": y, "yOffset": beside, "color": color},
        layer=[
            _layer(
                "median",
                {"type": "bar", "opacity": 0.3},
                x=_q("low", "% of a core"),
                x2={"field": "high"},
                tooltip=tooltip,
            ),
            _layer(
                "v",
                _point(30, 0.65),
                x=_q("v", "% of a core"),
                tooltip=[_q("v", "median of a run, %")],
            ),
            _layer(
                "median",
                {"type": "tick", "thickness": 3, "size": 18},
                x=_q("median", "% of a core"),
                tooltip=tooltip,
            ),
        ],
    )


def processes(loads_or_memory: Mapping[str, TimeSeries], title: str) -> Spec:
    """Draws load or memory of processes over time, one line each."""
    values = [
        {"p": process, "t": round(t, 2), "v": round(value, 2)}
        for process, series in loads_or_memory.items()
        for t, value in series
    ]
    color = {**_n("p"), "scale": _of_processes(loads_or_memory), "legend": _LEGEND}
    return _spec(
        values,
        _SERIES,
        mark={"type": "line", "interpolate": "step-after", "strokeWidth": 1.8},
        encoding={"x": _q("t", "s"), "y": _q("v", title), "color": color},
    )


def _of_processes(named: Collection[str]) -> dict[str, Any]:
    """Returns the colour scale of the processes in `named`."""
    known = {name: colour for name, colour in PROCESSES.items() if name in named}
    return {"domain": list(known), "range": list(known.values())}


def _scale(values: Sequence[float]) -> dict[str, Any]:
    """Returns a logarithmic scale if the values are far apart, else a linear one."""
    if min(values) > 0 and max(values) > _WIDE * min(values):
        return {"type": "log", "nice": False, "padding": 12}
    return {"zero": False}


def _links(scenario: Scenario, used: Collection[str]) -> dict[str, Any]:
    """Returns the colour scale of the links in `used`."""
    styles = link_styles({name: link.kind for name, link in scenario.links.items()})
    return {
        "domain": [link_title(name) for name in styles if name in used],
        "range": [style.colour for name, style in styles.items() if name in used],
    }


def link_rates(
    scenario: Scenario,
    runs: Mapping[int, Mapping[str, TimeSeries]],
    capacities: Mapping[str, TimeSeries],
    step_s: float,
) -> Spec:
    """Draws the rate of each link over time. Every run (by seed) is a thin line, the median of the
    unfinished runs a thick one. The capacity in the median run is dashed."""
    values: list[dict[str, Any]] = []
    for seed, links in runs.items():
        for link, series in links.items():
            values += [
                {"l": link_title(link), "k": seed, "t": round(t, 2), "r": round(rate / 1e6, 2)}
                for t, rate in series
            ]
    used = {link for links in runs.values() for link in links}
    for link in (one for one in scenario.links if one in used):
        values += [
            {"l": link_title(link), "m": round(rate / 1e6, 2), "t": round(t, 2)}
            for t, rate in _median([one[link] for one in runs.values() if link in one], step_s)
        ]
        values += [
            {"l": link_title(link), "c": round(rate / 1e6, 2), "t": round(t, 2)}
            for t, rate in capacities.get(link, ())
        ]
    color = _of_links(scenario, used)
    thin = _rates("r", color, strokeWidth=0.8, opacity=0.3)
    thin["encoding"] = {**thin["encoding"], "detail": _n("k")}
    layers = {
        "r": thin,
        "c": _rates("c", color, strokeWidth=1.2, strokeDash=[4, 3], opacity=0.9),
        "m": _rates("m", color, strokeWidth=2.6),
    }
    known = {field for row in values for field in row}
    # Vega warns of a layer without data.
    return _spec(
        values, _SERIES, layer=[layer for field, layer in layers.items() if field in known]
    )


def predicted(scenario: Scenario, links: Sequence[LinkPrediction]) -> Spec:
    """Draws the rate of each link over time: thick as recorded, dashed as in the lab."""
    values = [
        {"l": link_title(one.link), "t": round(at_s, 2), field: round(rate_bps / 1e6, 2)}
        for one in links
        for at_s, step in (
            *((step.start_s, step) for step in one.steps),
            (one.steps[-1].end_s, one.steps[-1]),  # A stepped line ends at its last point.
        )
        for field, rate_bps in (("m", step.measured_bps), ("p", step.predicted_bps))
    ]
    color = _of_links(scenario, {one.link for one in links})
    return _spec(
        values,
        _SERIES,
        layer=[
            _rates("m", color, strokeWidth=2.6, opacity=0.7),
            _rates("p", color, strokeWidth=1.4, strokeDash=[4, 3]),
        ],
    )


def _of_links(scenario: Scenario, used: Collection[str]) -> dict[str, Any]:
    """Returns the colour encoding of the links in `used`."""
    return {**_n("l"), "scale": _links(scenario, used), "legend": _LEGEND}


def _rates(field: str, color: Mapping[str, Any], **mark: Any) -> dict[str, Any]:
    """Returns a layer with a line of rates over time."""
    line = {"type": "line", "interpolate": "step-after", "clip": True, **mark}
    return _layer(field, line, x=_q("t", "s"), y=_q(field, "Mbit/s"), color=color)


def _median(several: Sequence[TimeSeries], step_s: float) -> TimeSeries:
    """Returns the median of several time series while at least half of them last."""
    steps: dict[int, list[float]] = {}
    for series in several:
        for t, value in series:
            steps.setdefault(round(t / step_s), []).append(value)
    return [
        (number * step_s, statistics.median(found))
        for number, found in sorted(steps.items())
        if 2 * len(found) >= len(several)
    ]


def requests(scenario: Scenario, ranges: Sequence[Range]) -> Spec:
    """Draws every range request in two views: from request to end in time, and from first to last
    byte in the file. Colour tells the link, shape the outcome."""
    values = [
        {
            "l": link_title(one.link),
            "n": one.number,
            "t": round(one.start_s, 3),
            "e": round(one.end_s, 3),
            "a": round(one.offset / 1e6, 3),
            "b": round((one.offset + max(one.got_bytes, 1)) / 1e6, 3),
            "mb": round(one.asked_bytes / 1e6, 3),
            "w": round(one.wasted_bytes / 1e6, 3),
            "o": one.outcome,
            "from": link_title(one.taken_from) if one.taken_from else "",
        }
        for one in ranges
    ]
    return _spec(
        values,
        _SERIES,
        mark={"type": "rule", "strokeWidth": 2.4, "strokeCap": "round"},
        encoding={
            "x": _q("t", "s"),
            "x2": {"field": "e"},
            "y": _q("a", "place in the file, MB"),
            "y2": {"field": "b"},
            "color": _of_links(scenario, {one.link for one in ranges}),
            "strokeDash": {
                **_n("o"),
                "scale": {
                    "domain": list(OUTCOMES),
                    "range": [[1, 0], [6, 3], [2, 2], [1, 4], [8, 6]],
                },
                "legend": None,
            },
            "tooltip": [
                *(_q("n", "request"), _n("l", "link"), _q("t", "from, s")),
                *(_q("e", "to, s"), _q("a", "at, MB"), _q("mb", "asked, MB")),
                *(_n("o", "outcome"), _n("from", "taken from"), _q("w", "wasted, MB")),
            ],
        },
    )
