"""Computes a run's figures from the decoded contents of its run directory. Pure.

The input is the scenario as run, and the client's summary (`client.json`). For programs that write
none, it is the elapsed time and the bytes received on each link. All values are in base units:
seconds, bytes, bit/s, ratios.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeVar

import msgspec

from linklab.core.bounded import (
    ByName,
    Bytes,
    Count,
    Few,
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
from linklab.core.errors import LinklabError
from linklab.energy.account import EnergyFigures
from linklab.links import oracle
from linklab.runs.queue_figures import QueueFigures
from linklab.runs.shares import ClientFigures, ShareFigures
from linklab.runs.traffic_figures import TrafficFigures
from linklab.scenario import Scenario

T = TypeVar("T")

_HORIZON_RUNS = 2
"""The oracle simulates at least this many times the run's duration, because links that follow their
load may behave differently under full load."""


_MAX_HORIZON_S = 6 * oracle.HORIZON_S
"""The longest simulation of the oracle. It asks models 50 times a second."""


class LinkSummary(msgspec.Struct, frozen=True):
    """Holds multilink's report on one link. Times are in ns from the start, 0 if unknown."""

    device: Name = ""
    bytes: Bytes = 0
    finish_ns: Nanoseconds = 0
    requests: Count = 0
    rtt_min_ns: Nanoseconds = 0
    rtt_last_ns: Nanoseconds = 0
    peak_bps: Rate = 0.0
    wasted_bytes: Bytes = 0


class ClientSummary(msgspec.Struct, frozen=True):
    """Holds multilink's `client.json`. Keys that a later version adds are ignored. An earlier call
    had fetched `resumed_bytes` of the file."""

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
        """The bytes of the file that this call had to transfer."""
        return self.size_bytes - self.resumed_bytes


class FigureError(LinklabError, ValueError):
    """A run yields no figures. The message says why."""


@dataclass(frozen=True, slots=True)
class LinkFigures:
    """Holds one link's figures in one run. None if the program does not report the value.

    `bytes` are payload. For a program that did not transfer the file, they are all bytes that the
    device received or sent. `finish_s` is the time of the link's last byte, `share` its part of all
    received bytes, `wasted_bytes` the bytes received and discarded.
    """

    bytes: Bytes
    share: Ratio
    finish_s: Seconds | None = None
    rtt_min_s: Seconds | None = None
    wasted_bytes: Bytes | None = None
    requests: Count | None = None


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """Holds a process's use, from `samples`. Loads are busy cores between two samples.
    `load_variation` and `memory_variation` are standard deviation divided by mean, None if the mean
    is 0. `cpu_s` is the observed processor time, the integral of the load, whatever the sampling
    rate. `memory_bytes` is the median of the resident memory, given with its integral over time."""

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
    """Holds the figures of one run.

    `goodput_bps` is None if the file was not transferred, or only in part, as with a user's program
    that is no download. `oracle_s` is None if the links do not deliver the file within the oracle's
    horizon. `efficiency` is oracle / download time. The oracle uses *all* links even for algorithms
    that use one, so that all rows of a comparison share a scale. It is None if an earlier call had
    fetched a part of the file. `stalled_s` is the time in which no link delivered anything though
    bytes were missing (`stalls.py`), None without samples. `efficiency` and `stalled_s` are None
    without goodput, and for a player, rounds or a paced stream. These pause by design, and their
    figures are in `workload`.

    `energy` is None without an energy model. `processes` has client and server by sampling rate, "1
    Hz" and "10 Hz". It is None in virtual time, where computing takes no time. `workload` has a
    workload's own figures by key (`workload_figures.py`), None for a file download. `burst_load` is
    the number of cores that the client kept busy while packets came or went, None in virtual time.
    `from_first_byte_s` is how long a page took from its first byte on (MPTCP study, equation 2).
    `queues` has those of each link's queues by link and direction, None without samples. `traffic`
    has those of each flow of other hosts, None without any. `clients` has those of each client, None
    of a single one. `shares` says how clients and bulk flows share each link. On links that other
    hosts use, `stalled_s` and `energy` are None, because the links' counters hold their packets too.
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
    burst_load: Figure | None = None
    from_first_byte_s: Seconds | None = None
    queues: ByName[ByName[QueueFigures]] | None = None
    traffic: Annotated[list[TrafficFigures], Few] | None = None
    clients: Annotated[list[ClientFigures], Few] | None = None
    shares: ByName[ShareFigures] | None = None

    @property
    def wasted_bytes(self) -> int | None:
        """The bytes that all links received and discarded. None if the program does not report
        them."""
        told = [one.wasted_bytes for one in self.links.values() if one.wasted_bytes is not None]
        return sum(told) if told else None

    @property
    def carried_bytes(self) -> int:
        """The payload transferred. For a program that did not transfer the file, the bytes on its
        links."""
        if self.goodput_bps is None:
            return sum(one.bytes for one in self.links.values())
        return round(self.goodput_bps * self.download_s / 8)

    @property
    def goodput_text(self) -> str:
        """The goodput as the end of a line of text, "" without goodput."""
        return "" if self.goodput_bps is None else f", {self.goodput_bps / 1e6:.1f} Mbit/s"

    @property
    def efficiency_text(self) -> str:
        """The efficiency as the end of a line of text, "" without one."""
        return "" if self.efficiency is None else f", efficiency {self.efficiency:.3f}"


def figures(
    scenario: Scenario, seed: int, client: ClientSummary, start_s: float = 0.0
) -> RunFigures:
    """Computes the figures of a run of multilink that started at `start_s`. Raises FigureError
    unless it downloaded everything."""
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
    """Computes the figures of another program from its start, its run time and the interface
    counters.

    The counters include headers and duplicates, so the payload is divided in their ratio. If not
    the whole payload arrived (`is_whole`), they are used as they are. Raises FigureError if nothing
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
    """Returns the links in the scenario's order, then others. A run outside the lab may name its
    own links."""
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
    """Computes the figures of a run that transferred `payload_bytes`, None if that is unknown."""
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
    """Returns the time between the first and the last link's end ("link Δ" of thesis table 5.1).
    None unless several links finished."""
    known = [end for end in ends_s if end is not None]
    return max(known) - min(known) if len(known) > 1 else None
