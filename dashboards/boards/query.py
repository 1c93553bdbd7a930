"""What panels ask of Prometheus, from linklab's metrics.

No metric's name is written here: a query of a metric or label that is not there is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from grafana_foundation_sdk.builders import prometheus
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from linklab.core.link_kinds import KINDS
from linklab.metrics import about
from linklab.metrics.metric import RUN_LABELS, Metric

DATASOURCE = DataSourceRef(type_val="prometheus", uid="linklab-prometheus")
"""As provisioned in grafana/provisioning/datasources."""

RUNS = ('scenario=~"$scenario"', 'algorithm=~"$algorithm"', 'run=~"$run"')
"""What the variables of a dashboard choose."""

WINDOW = "$__rate_interval"

STEP = "$__interval"
"""How far apart the times are that a query is asked for: a second at least, and more where more is
shown. What was between two of them is seen by who looks back at it."""

REFS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""What Grafana calls the queries of a panel, in their order."""


def series(metric: Metric[Any], *matchers: str, **equal: str) -> str:
    """A metric's series that the variables choose, fewer of them with `matchers` or labels that
    are `equal` to values. ValueError where the metric has no such label."""
    return _selector(metric, metric.name, *matchers, **equal)


def buckets(metric: Metric[Any]) -> str:
    """The buckets of a histogram. ValueError where it is none."""
    if metric.type != "histogram":
        raise ValueError(f"{metric.name} is a {metric.type}; needed: a histogram")
    return _selector(metric, f"{metric.name}_bucket")


def rate(metric: Metric[Any], *matchers: str, **equal: str) -> str:
    """By how much a counter's series grow in a second. ValueError where it is none."""
    return f"rate({_counted(metric, *matchers, **equal)}[{WINDOW}])"


def of_payload(ask: Callable[..., str], metric: Metric[Any], **equal: str) -> str:
    """What `series` or `rate` ask of a metric in the direction in which a run's payload goes: of the
    uplink in an upload, of the downlink else."""
    upload = series(about.INFO, direction="up")
    down, up = (ask(metric, **equal, direction=one) for one in ("down", "up"))
    return f"({down} unless on (run) {upload} or {up} and on (run) {upload})"


def stepped(metric: Metric[Any], *matchers: str) -> str:
    """By how much a counter's series have grown since the step before, or since there was nothing;
    those that have. ValueError where it is none."""
    counted = _counted(metric, *matchers)
    newest = f"(last_over_time({counted}[{STEP}]) or {counted})"
    return f"({newest} - ({counted} offset {STEP} or 0 * {newest})) > 0"


def been(state: str) -> str:
    """The series of a state (1 or 0) that are so at a step, or were so since the one before."""
    return f"({state} == 1 or {begun(state)})"


def begun(state: str) -> str:
    """The series of a state that have become so since the step before."""
    within = f"changes({state}[{STEP}]) - resets({state}[{STEP}]) > 0"
    first = (
        f"({state} == 1 or max_over_time({state}[{STEP}]) == 1) unless {state} offset {STEP} == 1"
    )
    return f"({within} or {first})"


def stopped(state: str) -> str:
    """The series of a state that have stopped to be so since the step before."""
    first = f"{state} offset {STEP} == 1 and min_over_time({state}[{STEP}]) == 0"
    return f"(resets({state}[{STEP}]) > 0 or {first})"


def ever(metric: Metric[Any], *matchers: str, **equal: str) -> str:
    """The newest value of each series in the time shown."""
    return f"last_over_time({series(metric, *matchers, **equal)}[$__range])"


def firing() -> str:
    """Prometheus' alerts that fire, of the runs that the variables choose."""
    matchers = ('alertstate="firing"', *RUNS)
    return f"ALERTS{{{', '.join(matchers)}}}"


def by(aggregate: str, labels: str, expression: str) -> str:
    """An aggregate (`max`, `sum`, …) over all series that share these labels."""
    return f"{aggregate} by ({labels}) ({expression})"


def by_link(aggregate: str, expression: str, *labels: str) -> str:
    """An aggregate for each link, by the names that people read: Wi-Fi, then LTE, then others.

    Prometheus sorts series by their labels, the labels by their names; `index` comes before `link`.
    """
    made = by(aggregate, ", ".join(("link", *labels)), expression)
    for index, kind in enumerate(KINDS.values()):
        made = f'label_replace({made}, "index", "{index}", "link", "{kind.name}.*")'
        made = f'label_replace({made}, "link", "{kind.title}", "link", "{kind.name}")'
    return made


OF_EACH_KIND = (
    *(f'link=~"{name}.*"' for name in KINDS),
    f'link!~"{"|".join(f"{name}.*" for name in KINDS)}"',
)
"""Links of each kind, and then all others: where what is now is to be in this order, it is asked for
in this order. Prometheus sorts only what it answers of a time."""


def in_words(expression: str, between: str, *labels: str, otherwise: str) -> str:
    """Series called `which` by some of their labels; where there are none, one of 0 that is called
    otherwise. A panel that shows names alone would stay blank."""
    listed = ", ".join(f'"{label}"' for label in labels)
    named = f'label_join({expression}, "which", "{between}", {listed})'
    return f'{named} or on () label_replace(vector(0), "which", "{otherwise}", "", "")'


WHICH = "{{which}}"
"""The legend of those."""


def links_named(metric: Metric[Any]) -> str:
    """What a variable asks to have a metric's links by name and, in `title`, as people read them."""
    made = f'label_replace({by("max", "link", ever(metric))}, "title", "$1", "link", "(.*)")'
    for kind in KINDS.values():
        made = f'label_replace({made}, "title", "{kind.title}", "link", "{kind.name}")'
    return f"query_result({made})"


LINK_AND_TITLE = '/link="(?<value>[^"]+)",\\s*title="(?<text>[^"]+)"/'
"""How a variable reads that."""


def now(expression: str, legend: str = "") -> prometheus.Dataquery:
    """What there is at the end of the dashboard's time, which is now in a live lab."""
    return _asked(expression).instant().legend_format(legend)


def over_time(expression: str) -> prometheus.Dataquery:
    """A table of what there was at each step of the dashboard's time."""
    return _asked(expression).range().interval("1s").format(PromQueryFormat.TABLE)


def query(expression: str, legend: str = "") -> prometheus.Dataquery:
    """A query over the dashboard's time."""
    return _asked(expression).range().legend_format(legend)


def at_end(expression: str) -> prometheus.Dataquery:
    """A table of what there was in the dashboard's time."""
    return _asked(expression).instant().format(PromQueryFormat.TABLE)


def _asked(expression: str) -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(expression).datasource(DATASOURCE)


def _counted(metric: Metric[Any], *matchers: str, **equal: str) -> str:
    if metric.type != "counter":
        raise ValueError(f"{metric.name} is a {metric.type}; needed: a counter")
    return series(metric, *matchers, **equal)


def _selector(metric: Metric[Any], name: str, *matchers: str, **equal: str) -> str:
    more = (*matchers, *(f'{label}="{value}"' for label, value in equal.items()))
    known = {*RUN_LABELS, *metric.labels}
    for one in more:
        label = re.split("[=!]", one, maxsplit=1)[0]
        if label not in known:
            allowed = ", ".join(sorted(known))
            raise ValueError(f"{metric.name} has no label {label!r}; it has: {allowed}")
    return f"{name}{{{', '.join((*RUNS, *more))}}}"
