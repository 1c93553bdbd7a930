"""From what a run left to its figures. Pure.

Input is what lies in a run directory, already decoded: the scenario as run, and the
client's summary (`client.json`) or, for programs that write none, the elapsed time and the
bytes that each link received. All values are in base units: seconds, bytes, bit/s, ratios.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from linklab.core.bounded import (
    ByName,
    Bytes,
    Count,
    Figure,
    LargeFigure,
    Name,
    Nanoseconds,
    Rate,
    Ratio,
    Seconds,
    SomeSeconds,
    UnixNanoseconds,
    Words,
)
from linklab.energy.account import EnergyFigures
from linklab.links import oracle
from linklab.scenario import Scenario

T = TypeVar("T")

_HORIZON_RUNS = 2
"""How many times as long as the run took the oracle looks at least: links that follow their load may
take another course for it."""


_MAX_HORIZON_S = 6 * oracle.HORIZON_S
"""How long the oracle looks at most: models are asked 50 times a second."""


class LinkSummary(msgspec.Struct, frozen=True):
    """What multilink reports about one link; times in ns from the start, 0 is unknown."""

    device: Name = ""
    bytes: Bytes = 0
    finish_ns: Nanoseconds = 0
    requests: Count = 0
    rtt_min_ns: Nanoseconds = 0
    rtt_last_ns: Nanoseconds = 0
    peak_bps: Rate = 0.0
    wasted_bytes: Bytes = 0


class ClientSummary(msgspec.Struct, frozen=True):
    """multilink's `client.json`. Keys that a later version adds are ignored. `resumed_bytes` of the
    file are those of an earlier call."""

    algorithm: Name
    outcome: Name
    size_bytes: Bytes
    download_ns: Nanoseconds
    links: ByName[LinkSummary]
    version: Name = ""
    go: Name = ""
    url: Words = ""
    sha256: Name = ""
    error: Words = ""
    started_at_unix_ns: UnixNanoseconds = 0
    resumed_bytes: Bytes = 0

    @property
    def carried_bytes(self) -> int:
        """What this call had to bring of the file."""
        return self.size_bytes - self.resumed_bytes


class FigureError(ValueError):
    """A run that yields no figures; the message says why."""


@dataclass(frozen=True, slots=True)
class LinkFigures:
    """One link's part in one run. None is what the program does not tell.

    `bytes` are payload; of a program that did not bring the file, all that the device took in or
    sent. `finish_s` is when the link's last byte came, `share` its part of all bytes received,
    `wasted_bytes` what was received and thrown away.
    """

    bytes: Bytes
    share: Ratio
    finish_s: Seconds | None = None
    rtt_min_s: Seconds | None = None
    wasted_bytes: Bytes | None = None
    requests: Count | None = None


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """What a process used, from so many samples. Loads are cores that it kept busy between two of
    them; `load_variation` and `memory_variation` are standard deviation by mean, None of nothing.
    `cpu_s` is all the processor time that was seen, the integral of the load, however often one looks;
    `memory_bytes` the median of what it occupied, with its integral over time."""

    samples: Count
    load_p05: Figure
    load_median: Figure
    load_p90: Figure
    load_max: Figure
    load_variation: Figure | None
    cpu_s: Figure
    memory_bytes: Figure | None
    memory_variation: Figure | None
    memory_integral_byte_s: LargeFigure | None


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One run. `goodput_bps` is None where the file did not come, or only a part of it, as of a
    program of the user's that is no download. `oracle_s` is None where the links never deliver the
    file, as far as can be seen. `efficiency` is oracle / download time with *all* links in the oracle,
    also for algorithms that use one, so that all rows of a comparison share a scale. `stalled_s` is
    how long no link brought anything though bytes were missing (`stalls.py`), None where no samples
    were taken. Both are None of a player, rounds or a paced stream, which take their own time and are
    silent while they think or play: their figures are in `workload`. Without goodput there is neither,
    and no efficiency where an earlier call had brought a part of the file.
    `energy` is None where no energy model is named. `processes` has client and server, by how often
    they were looked at, "1 Hz" and "10 Hz"; None in virtual time, where computing takes no time and
    so neither load nor memory over time are figures. `workload` has a workload's own figures by
    their keys (`workload_figures.py`), None of a download of the file.
    """

    download_s: SomeSeconds
    goodput_bps: Rate | None
    oracle_s: SomeSeconds | None
    efficiency: Figure | None
    link_delta_s: Seconds | None
    links: ByName[LinkFigures]
    stalled_s: Seconds | None = None
    energy: EnergyFigures | None = None
    processes: ByName[ByName[ProcessFigures]] | None = None
    workload: ByName[Figure] | None = None

    @property
    def wasted_bytes(self) -> int | None:
        """What all links received and threw away; None where the program does not tell."""
        told = [one.wasted_bytes for one in self.links.values() if one.wasted_bytes is not None]
        return sum(told) if told else None

    @property
    def carried_bytes(self) -> int:
        """The payload that came; of a program that did not bring the file, what its links carried."""
        if self.goodput_bps is None:
            return sum(one.bytes for one in self.links.values())
        return round(self.goodput_bps * self.download_s / 8)

    @property
    def said_goodput(self) -> str:
        """As the end of a line for people, "" where it is none."""
        return "" if self.goodput_bps is None else f", {self.goodput_bps / 1e6:.1f} Mbit/s"

    @property
    def said_efficiency(self) -> str:
        """As the end of a line for people, "" where it is none."""
        return "" if self.efficiency is None else f", efficiency {self.efficiency:.3f}"


def figures(
    scenario: Scenario, seed: int, client: ClientSummary, start_s: float = 0.0
) -> RunFigures:
    """The figures of a run of multilink, which started at `start_s`. Raises FigureError unless it downloaded everything."""
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
        for name, link in in_order(scenario, client.links).items()
    }
    download_s = client.download_ns / 1e9
    return _run_figures(scenario, seed, start_s, download_s, links, client.carried_bytes)


def peer_figures(
    scenario: Scenario,
    seed: int,
    elapsed_s: float,
    received_bytes: Mapping[str, int],
    *,
    start_s: float = 0.0,
    is_whole: bool = True,
) -> RunFigures:
    """The figures of another program, from its start, its run time and the links' interface counters.

    The counters hold headers and duplicates too, so the payload is divided in their ratio; where
    not the whole of it came (`is_whole`), they stand as they are. Raises FigureError where nothing
    was received or no time passed.
    """
    total = sum(received_bytes.values())
    if total <= 0:
        raise FigureError("no link received anything")
    payload_bytes = scenario.payload.size_bytes if is_whole else None
    carried = total if payload_bytes is None else payload_bytes
    links = {
        name: LinkFigures(bytes=round(carried * received / total), share=received / total)
        for name, received in in_order(scenario, received_bytes).items()
    }
    return _run_figures(scenario, seed, start_s, elapsed_s, links, payload_bytes)


def in_order(scenario: Scenario, links: Mapping[str, T]) -> dict[str, T]:
    """Links in the scenario's order, then others; a run outside the lab may name its own."""
    known = [name for name in scenario.links if name in links]
    return {name: links[name] for name in [*known, *(n for n in links if n not in known)]}


def _run_figures(
    scenario: Scenario,
    seed: int,
    start_s: float,
    download_s: float,
    links: dict[str, LinkFigures],
    payload_bytes: int | None,
) -> RunFigures:
    """The figures of a run that brought so much of the file; None where that is not known."""
    if download_s <= 0:
        raise FigureError(f"a download of {download_s} s is none")
    horizon_s = max(oracle.HORIZON_S, min(_HORIZON_RUNS * download_s, _MAX_HORIZON_S))
    least_s = oracle.oracle_s(scenario, seed, start_s, horizon_s)
    is_known = math.isfinite(least_s)
    is_whole = payload_bytes == scenario.payload.size_bytes
    is_measured = is_known and is_whole and not scenario.workload.takes_its_time
    return RunFigures(
        download_s=download_s,
        goodput_bps=None if payload_bytes is None else payload_bytes * 8 / download_s,
        oracle_s=least_s if is_known else None,
        efficiency=least_s / download_s if is_measured else None,
        link_delta_s=link_delta_s(link.finish_s for link in links.values()),
        links=links,
    )


def link_delta_s(ends_s: Iterable[float | None]) -> float | None:
    """From the first link's finishing to the last one's ("link Δ" of thesis table 5.1); None unless
    several finished."""
    known = [end for end in ends_s if end is not None]
    return max(known) - min(known) if len(known) > 1 else None
