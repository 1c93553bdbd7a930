"""From what a run left to its figures, and from many runs' figures to a comparison. Pure.

Input is what lies in a run directory, already decoded: the scenario as run, and the
client's summary (`client.json`) or, for programs that write none, the elapsed time and the
bytes that each link received. All values are in base units: seconds, bytes, bit/s, ratios.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from linklab.links import oracle
from linklab.scenario import Scenario

T = TypeVar("T")


class LinkSummary(msgspec.Struct, frozen=True):
    """What multilink reports about one link; times in ns from the start, 0 is unknown."""

    device: str = ""
    bytes: int = 0
    finish_ns: int = 0
    requests: int = 0
    rtt_min_ns: int = 0
    rtt_last_ns: int = 0
    peak_bps: float = 0.0
    wasted_bytes: int = 0


class ClientSummary(msgspec.Struct, frozen=True):
    """multilink's `client.json`. Keys that a later version adds are ignored."""

    algorithm: str
    outcome: str
    size_bytes: int
    download_ns: int
    links: dict[str, LinkSummary]
    version: str = ""
    go: str = ""
    url: str = ""
    sha256: str = ""
    error: str = ""
    started_at_unix_ns: int = 0


class FigureError(ValueError):
    """A run that yields no figures; the message says why."""


@dataclass(frozen=True, slots=True)
class LinkFigures:
    """One link's part in one run. None is what the program does not tell.

    `finish_s` is when the link's last byte came, `share` its part of all bytes received,
    `wasted_bytes` what was received and thrown away.
    """

    bytes: int
    share: float
    finish_s: float | None = None
    rtt_min_s: float | None = None
    wasted_bytes: int | None = None
    requests: int | None = None


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One run. `efficiency` is oracle / download time with *all* links in the oracle, also
    for algorithms that use one, so that all rows of a comparison share a scale.
    `link_delta_s` is from the first link's finishing to the last one's ("link Δ" of thesis table
    5.1), None unless several links finished. `stalled_s` is how long no link brought anything
    though bytes were missing (`stalls.py`), None where no samples were taken.
    """

    download_s: float
    goodput_bps: float
    oracle_s: float
    efficiency: float
    link_delta_s: float | None
    links: dict[str, LinkFigures]
    stalled_s: float | None = None

    @property
    def wasted_bytes(self) -> int | None:
        """What all links received and threw away; None where the program does not tell."""
        told = [one.wasted_bytes for one in self.links.values() if one.wasted_bytes is not None]
        return sum(told) if told else None


def parse_client(content: bytes) -> ClientSummary:
    """The client's summary from the bytes of `client.json`. Raises FigureError."""
    try:
        return msgspec.json.decode(content, type=ClientSummary)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FigureError(f"client.json: {error}") from error


def figures(scenario: Scenario, seed: int, client: ClientSummary) -> RunFigures:
    """The figures of a run of multilink. Raises FigureError unless it downloaded everything."""
    if client.outcome != "complete":
        raise FigureError(f"the download is {client.outcome}: {client.error or 'no reason given'}")
    payload = scenario.payload
    if client.size_bytes != payload.size_bytes:
        raise FigureError(f"{client.size_bytes} bytes downloaded instead of {payload.size_bytes}")
    if client.sha256 and payload.sha256 not in (None, client.sha256):
        raise FigureError(f"the file's SHA-256 is {client.sha256} instead of {payload.sha256}")
    total = sum(link.bytes for link in client.links.values())
    links = {
        name: LinkFigures(
            bytes=link.bytes,
            share=link.bytes / total if total else 0.0,
            finish_s=link.finish_ns / 1e9 if link.finish_ns else None,
            rtt_min_s=link.rtt_min_ns / 1e9 if link.rtt_min_ns else None,
            wasted_bytes=link.wasted_bytes,
            requests=link.requests,
        )
        for name, link in _in_order(scenario, client.links).items()
    }
    return _run_figures(scenario, seed, client.download_ns / 1e9, links)


def peer_figures(
    scenario: Scenario, seed: int, elapsed_s: float, received_bytes: Mapping[str, int]
) -> RunFigures:
    """The figures of another program, from its run time and the links' interface counters.

    The counters hold headers and duplicates too, so the payload is divided in their ratio.
    Raises FigureError where nothing was received or no time passed.
    """
    total = sum(received_bytes.values())
    if total <= 0:
        raise FigureError("no link received anything")
    links = {
        name: LinkFigures(
            bytes=round(scenario.payload.size_bytes * received / total), share=received / total
        )
        for name, received in _in_order(scenario, received_bytes).items()
    }
    return _run_figures(scenario, seed, elapsed_s, links)


def _in_order(scenario: Scenario, links: Mapping[str, T]) -> dict[str, T]:
    """Links in the scenario's order, then others; a run outside the lab may name its own."""
    known = [name for name in scenario.links if name in links]
    return {name: links[name] for name in [*known, *(n for n in links if n not in known)]}


def _run_figures(
    scenario: Scenario, seed: int, download_s: float, links: dict[str, LinkFigures]
) -> RunFigures:
    if download_s <= 0:
        raise FigureError(f"a download of {download_s} s is none")
    least_s = oracle.oracle_s(scenario, seed)
    ends = [link.finish_s for link in links.values() if link.finish_s is not None]
    return RunFigures(
        download_s=download_s,
        goodput_bps=scenario.payload.size_bytes * 8 / download_s,
        oracle_s=least_s,
        efficiency=least_s / download_s,
        link_delta_s=max(ends) - min(ends) if len(ends) > 1 else None,
        links=links,
    )


# --- Many runs.


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, extremes and sample standard deviation (0 for one value) of a metric."""

    median: float
    min: float
    max: float
    sd: float
    count: int


@dataclass(frozen=True, slots=True)
class LinkRow:
    """A link over all runs of a row; None where no run tells."""

    bytes: Spread
    share: Spread
    finish_s: Spread | None
    rtt_min_s: Spread | None
    wasted_bytes: Spread | None
    requests: Spread | None


@dataclass(frozen=True, slots=True)
class Row:
    """One algorithm's runs in one scenario. The metrics are None if no run succeeded.

    `error_ratio` is (download_s - published_s) / published_s. `failures` are the reasons
    of the runs that yielded no figures.
    """

    algorithm: str
    runs: int
    failures: tuple[str, ...]
    download_s: Spread | None
    goodput_bps: Spread | None
    efficiency: Spread | None
    link_delta_s: Spread | None
    links: dict[str, LinkRow] = field(default_factory=dict)
    published_s: float | None = None
    published_link_delta_s: float | None = None
    error_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Algorithms side by side in one scenario, in the order they were asked for.

    `oracle_s` is the median over the runs, whose links differ with the seed.
    """

    scenario: str
    title: str
    size_bytes: int
    oracle_s: float
    links: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def has_published(self) -> bool:
        """Whether any row has a published figure beside it."""
        return any(row.published_s is not None for row in self.rows)


def spread(values: Iterable[float]) -> Spread:
    """The spread of at least one finite value. Raises ValueError for none."""
    numbers = [float(value) for value in values]
    if not numbers:
        raise ValueError("no values, no spread")
    return Spread(
        median=statistics.median(numbers),
        min=min(numbers),
        max=max(numbers),
        sd=statistics.stdev(numbers) if len(numbers) > 1 else 0.0,
        count=len(numbers),
    )


def median(runs: Sequence[RunFigures]) -> RunFigures:
    """The median of every metric by itself, so not one of the runs. Raises ValueError for none.

    A metric that only some runs have is the median of those.
    """
    if not runs:
        raise ValueError("no runs, no median")

    def of(pick: Callable[[RunFigures], float]) -> float:
        return statistics.median(pick(run) for run in runs)

    names = list(dict.fromkeys(name for run in runs for name in run.links))
    return RunFigures(
        download_s=of(lambda run: run.download_s),
        goodput_bps=of(lambda run: run.goodput_bps),
        oracle_s=of(lambda run: run.oracle_s),
        efficiency=of(lambda run: run.efficiency),
        link_delta_s=_median_or_none(run.link_delta_s for run in runs),
        links={name: _median_link(_of_link(runs, name)) for name in names},
        stalled_s=_median_or_none(run.stalled_s for run in runs),
    )


def _of_link(runs: Sequence[RunFigures], name: str) -> list[LinkFigures]:
    return [run.links[name] for run in runs if name in run.links]


def _median_or_none(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _median_link(links: list[LinkFigures]) -> LinkFigures:
    wasted = _median_or_none(link.wasted_bytes for link in links)
    requests = _median_or_none(link.requests for link in links)
    return LinkFigures(
        bytes=round(statistics.median(link.bytes for link in links)),
        share=statistics.median(link.share for link in links),
        finish_s=_median_or_none(link.finish_s for link in links),
        rtt_min_s=_median_or_none(link.rtt_min_s for link in links),
        wasted_bytes=None if wasted is None else round(wasted),
        requests=None if requests is None else round(requests),
    )


def compare(
    scenario: Scenario,
    runs: Mapping[str, Sequence[RunFigures]],
    failures: Mapping[str, Sequence[str]] | None = None,
) -> Comparison:
    """A row for each algorithm of `runs` and `failures`, beside the scenario's published
    figures. `failures` holds the reasons of runs that yielded no figures.
    """
    failed = failures or {}
    algorithms = list(dict.fromkeys([*runs, *failed]))
    rows = tuple(
        _row(scenario, name, list(runs.get(name, ())), tuple(failed.get(name, ())))
        for name in algorithms
    )
    used = [name for row in rows for name in row.links]
    leasts = [run.oracle_s for name in algorithms for run in runs.get(name, ())]
    return Comparison(
        scenario=scenario.name,
        title=scenario.title,
        size_bytes=scenario.payload.size_bytes,
        oracle_s=statistics.median(leasts) if leasts else oracle.oracle_s(scenario),
        links=tuple(dict.fromkeys([*scenario.links, *used])),
        rows=rows,
    )


def _row(
    scenario: Scenario, algorithm: str, runs: list[RunFigures], failures: tuple[str, ...]
) -> Row:
    published = next((p for p in scenario.published if p.algorithm == algorithm), None)
    download = _spread_or_none(run.download_s for run in runs)
    error = None
    if published is not None and download is not None:
        error = (download.median - published.download_s) / published.download_s
    names = _in_order(scenario, dict.fromkeys(name for run in runs for name in run.links))
    return Row(
        algorithm=algorithm,
        runs=len(runs),
        failures=failures,
        download_s=download,
        goodput_bps=_spread_or_none(run.goodput_bps for run in runs),
        efficiency=_spread_or_none(run.efficiency for run in runs),
        link_delta_s=_spread_or_none(run.link_delta_s for run in runs),
        links={name: _link_row(_of_link(runs, name)) for name in names},
        published_s=published.download_s if published else None,
        published_link_delta_s=published.link_delta_s if published else None,
        error_ratio=error,
    )


def _link_row(links: list[LinkFigures]) -> LinkRow:
    return LinkRow(
        bytes=spread(link.bytes for link in links),
        share=spread(link.share for link in links),
        finish_s=_spread_or_none(link.finish_s for link in links),
        rtt_min_s=_spread_or_none(link.rtt_min_s for link in links),
        wasted_bytes=_spread_or_none(link.wasted_bytes for link in links),
        requests=_spread_or_none(link.requests for link in links),
    )


def _spread_or_none(values: Iterable[float | None]) -> Spread | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return spread(known) if known else None
