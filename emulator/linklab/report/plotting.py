"""Collects what a plot of a scenario or of a run shows: series, outages and marks. Pure.

The plot of a scenario shows its links under full load (`full_load.py`), with the oracle's finishing
time. The plot of a run shows capacity and use of each link as they were.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from linklab.core.link_kinds import LinkKind, link_title
from linklab.core.link_state import Direction, LinkState
from linklab.links import oracle
from linklab.links.full_load import spans
from linklab.models import registry
from linklab.report.link_styles import LinkStyle, link_styles
from linklab.scenario import Scenario

MAX_SECONDS: Final = 3600.0


@dataclass(slots=True)
class Series:
    """Holds one line of a panel. Each value holds from its time on. NaN is a gap. `dashed`
    distinguishes a second quantity of the same link without colour."""

    link: str
    label: str
    times_s: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    dashed: bool = False

    def add(self, t_s: float, value: float) -> None:
        """Appends the value from `t_s` on, unless it equals the last one."""
        if not self.values or not _same(self.values[-1], value):
            self.times_s.append(t_s)
            self.values.append(value)


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


@dataclass(slots=True)
class Panel:
    """Series that share an axis."""

    title: str
    unit: str
    series: list[Series]

    @property
    def is_empty(self) -> bool:
        """Whether all values are 0 or missing."""
        values = (value for series in self.series for value in series.values)
        return all(value == 0 or math.isnan(value) for value in values)


@dataclass(frozen=True, slots=True)
class Outage:
    """Holds a span of time in which a link carried nothing."""

    link: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Mark:
    """Holds an event of a link."""

    t_s: float
    link: str
    text: str


@dataclass(slots=True)
class Plot:
    """Holds everything that a drawing shows, from 0 to `end_s` seconds, in the order of time.

    `styles` are the links' styles in the order of links. `finishes_s` are finishing times by name.
    """

    title: str
    end_s: float
    styles: dict[str, LinkStyle]
    panels: list[Panel]
    outages: list[Outage]
    marks: list[Mark]
    finishes_s: dict[str, float]


class _LinkSeries:
    """Collects the states of one link in the order of time."""

    def __init__(self, link: str) -> None:
        name = link_title(link)
        self.link = link
        self.down = Series(link, name)
        self.up = Series(link, f"{name} up", dashed=True)
        self.delay = Series(link, name)
        self.loss = Series(link, name)
        self.signal = Series(link, name)
        self.outages: list[Outage] = []
        self.marks: list[Mark] = []
        self._before: LinkState | None = None
        self._out_since_s: float | None = None

    def add(self, t_s: float, state: LinkState) -> None:
        self.down.add(t_s, state.rate_bps("down") / 1e6)
        self.up.add(t_s, state.rate_bps("up") / 1e6)
        reaches = state.up and not state.blackout
        self.delay.add(t_s, state.rtt_s * 1e3 if reaches else math.nan)
        self.loss.add(t_s, state.lost_ratio("down") * 100 if reaches else math.nan)
        self.signal.add(t_s, math.nan if state.signal_dbm is None else state.signal_dbm)
        if self._before is not None:
            for happening in registry.transitions(self._before, state):
                text = f"{happening.kind} {happening.detail}".strip()
                self.marks.append(Mark(t_s, self.link, text))
        out = state.is_out("down")
        if out and self._out_since_s is None:
            self._out_since_s = t_s
        elif not out:
            self.end(t_s)
        self._before = state

    @property
    def has_signal(self) -> bool:
        return not all(math.isnan(value) for value in self.signal.values)

    def end(self, t_s: float) -> None:
        if self._out_since_s is not None and t_s > self._out_since_s:
            self.outages.append(Outage(self.link, self._out_since_s, t_s))
        self._out_since_s = None


def _panels(
    link_series: Iterable[_LinkSeries], down: Iterable[Series], up: Iterable[Series]
) -> list[Panel]:
    """Returns the panels that are not empty. `down` and `up` are the used rates."""
    made = list(link_series)
    panels = [
        Panel("capacity, downlink", "Mbit/s", [*(one.down for one in made), *down]),
        Panel("capacity, uplink", "Mbit/s", [*(one.up for one in made), *up]),
        Panel("round trip", "ms", [one.delay for one in made]),
        Panel("loss", "%", [one.loss for one in made]),
        Panel("signal", "dBm", [one.signal for one in made if one.has_signal]),
    ]
    return [panel for panel in panels if not panel.is_empty] or panels[:1]


def of_scenario(scenario: Scenario, seed: int, seconds: float | None = None) -> Plot:
    """Returns the plot of a scenario's links under full load, for `seconds` or 1.2 times the
    oracle's time."""
    least_s = oracle.oracle_s(scenario, seed)
    together = {2: "both links"}.get(len(scenario.links), "all links")
    finishes_s = {together: least_s} if len(scenario.links) > 1 else {}
    for link in scenario.links:
        finishes_s[f"{link_title(link)} alone"] = oracle.single_link_s(scenario, link, seed)
    end_s = seconds or min(1.2 * least_s, MAX_SECONDS)
    link_series = {link: _LinkSeries(link) for link in scenario.links}
    for span in spans(scenario, seed, scenario.links):
        if span.start_s >= end_s:
            break
        for link, state in span.states.items():
            link_series[link].add(span.start_s, state)
    title = f"{scenario.name}, seed {seed}, links kept full"
    kinds = {link: settings.kind for link, settings in scenario.links.items()}
    return _plot(title, end_s, link_series, kinds, finishes_s)


def of_run(
    title: str,
    states: Iterable[tuple[float, str, LinkState]],
    sent_bytes: Mapping[str, Sequence[tuple[float, int]]],
    download_s: float | None,
    kinds: Mapping[str, LinkKind],
    direction: Direction = "down",
) -> Plot:
    """Returns the plot of a run.

    `states` are (time, link, state) as applied. `sent_bytes` is each link's counter over time in
    `direction`, the direction of the payload. `download_s` is None if the run failed. Raises
    ValueError for a link that `kinds` does not have.
    """
    link_series: dict[str, _LinkSeries] = {}
    last_s = 0.0 if download_s is None else download_s
    for t_s, link, state in states:
        link_series.setdefault(link, _LinkSeries(link)).add(t_s, state)
        last_s = max(last_s, t_s)
    used = []
    for link, samples in sent_bytes.items():
        series = Series(link, f"{link_title(link)} used", dashed=direction == "down")
        before_s, before = 0.0, 0
        for t_s, sent in samples:
            if t_s > before_s:
                series.add(before_s, (sent - before) * 8 / (t_s - before_s) / 1e6)
            before_s, before = t_s, sent
            last_s = max(last_s, t_s)
        used.append(series)
    finishes_s = {} if download_s is None else {"download": download_s}
    return _plot(title, last_s, link_series, kinds, finishes_s, **{direction: used})


def _plot(
    title: str,
    end_s: float,
    link_series: dict[str, _LinkSeries],
    kinds: Mapping[str, LinkKind],
    finishes_s: dict[str, float],
    down: Sequence[Series] = (),
    up: Sequence[Series] = (),
) -> Plot:
    for one in link_series.values():
        one.end(end_s)
    for link in link_series:
        if link not in kinds:
            raise ValueError(f"{title}: of what kind is the link {link!r}? The scenario has none")
    return Plot(
        title=title,
        end_s=end_s,
        styles=link_styles({link: kinds[link] for link in link_series}),
        panels=_panels(link_series.values(), down, up),
        outages=[outage for one in link_series.values() for outage in one.outages],
        marks=sorted(
            (mark for one in link_series.values() for mark in one.marks), key=lambda mark: mark.t_s
        ),
        finishes_s={what: t_s for what, t_s in finishes_s.items() if math.isfinite(t_s)},
    )


def envelope(series: Series, end_s: float, columns: int) -> tuple[list[float], list[float]]:
    """Returns a series as a line of at most 2 × `columns` points up to `end_s`.

    Where the series changes within a column, the column gets its least and its largest value, so
    that no short drop is lost. NaN points are gaps.
    """
    width_s = end_s / columns
    times: list[float] = []
    values: list[float] = []
    index, last = 0, math.nan
    for column in range(columns):
        start_s = column * width_s
        seen = [] if math.isnan(last) else [last]
        while index < len(series.times_s) and series.times_s[index] < start_s + width_s:
            last = series.values[index]
            seen.append(last)
            index += 1
        known = [value for value in seen if not math.isnan(value)]
        if not known:
            times.append(start_s)
            values.append(math.nan)
            continue
        rising = known.index(min(known)) <= known.index(max(known))
        low, high = min(known), max(known)
        times += [start_s, start_s + width_s / 2]
        values += [low, high] if rising else [high, low]
    return times, values


def to_json(plot: Plot) -> dict[str, Any]:
    """Returns everything that is drawn as plain data. NaN becomes null."""
    return {
        "title": plot.title,
        "end_s": plot.end_s,
        "finishes_s": plot.finishes_s,
        "panels": [
            {
                "title": panel.title,
                "unit": panel.unit,
                "series": [
                    {
                        "link": one.link,
                        "label": one.label,
                        "t_s": one.times_s,
                        "value": [None if math.isnan(v) else v for v in one.values],
                    }
                    for one in panel.series
                ],
            }
            for panel in plot.panels
        ],
        "outages": [
            {"link": one.link, "start_s": one.start_s, "end_s": one.end_s} for one in plot.outages
        ],
        "events": [{"t_s": one.t_s, "link": one.link, "text": one.text} for one in plot.marks],
    }
