"""Computes a run's figures from its directory and keeps them in `summary.json`."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, replace
from pathlib import Path

import msgspec

from linklab.core import plain_file, records
from linklab.core.records import (
    BurstRecord,
    ProcessRecord,
    QueueRecord,
    RecordError,
    RoundTripRecord,
    SojournRecord,
    Tail,
    TrafficRecord,
)
from linklab.runs import (
    job,
    outcome,
    queue_figures,
    run_energy,
    run_figures,
    server_ends,
    shares,
    stalls,
    traffic_figures,
    workload_figures,
)
from linklab.runs.job import Job, client_directory
from linklab.runs.outcome import Outcome
from linklab.runs.run_figures import ClientSummary, FigureError, RunFigures
from linklab.runs.shares import ClientFigures
from linklab.runs.workload_figures import WorkloadSummary
from linklab.scenario import Scenario, ScenarioError
from linklab.scenario.workload import UPLOAD

FILE = "summary.json"

WORKLOAD_FILE = "workload.json"
"""The summary of `multilink workload`."""

_MOST_WORDS = 500
"""The most characters of a program's last line that an error quotes."""

_END_BYTES = 65536
"""The most bytes that are read to find that line."""


def figures_of(run_dir: Path) -> RunFigures:
    """Computes the figures of an executed run directory. Raises FigureError if there are none, and
    OSError (RecordError) if the directory cannot be read."""
    try:
        return _figures_of(run_dir)
    except ScenarioError as error:
        raise RecordError(str(error)) from error


def _figures_of(run_dir: Path) -> RunFigures:
    scenario = job.scenario_of(run_dir)
    manifest = job.read(run_dir)
    try:
        figures = _of_client(run_dir, scenario, manifest)
    except FigureError as error:
        raise FigureError("; ".join([str(error), *server_ends.found_in(run_dir)])) from error
    figures = _with_samples(figures, scenario, run_dir, manifest.shift_s)
    return _with_shares(figures, scenario, run_dir, manifest)


def _of_client(run_dir: Path, scenario: Scenario, manifest: Job) -> RunFigures:
    """Computes the figures of a client by the files that it has left in its directory."""
    try:
        ended = outcome.read(run_dir)
    except FileNotFoundError:
        raise FigureError(outcome.missing(run_dir)) from None
    client = run_dir / "client.json"
    is_upload = scenario.workload.name == UPLOAD
    if is_upload and ended.exit_code == 0:
        _check_upload(manifest, ended)
    if os.path.lexists(client):
        summary = records.document(client, ClientSummary)
        return run_figures.figures(scenario, manifest.seed, summary, manifest.shift_s)
    if os.path.lexists(run_dir / WORKLOAD_FILE):
        return _of_workload(scenario, manifest, run_dir, ended)
    if ended.exit_code != 0:
        raise FigureError(f"the client ended with {ended.exit_code}: {_last_words(run_dir)}")
    size_bytes = scenario.payload.size_bytes
    is_kept = (ended.uploaded_sha256 if is_upload else ended.output_bytes) is not None
    is_checked = is_kept or manifest.client is not None
    if not is_upload and is_checked and ended.output_bytes != size_bytes:
        raise FigureError(f"{ended.output_bytes or 0} bytes arrived instead of {size_bytes}")
    if ended.output_sha256 not in (None, manifest.payload_sha256):
        raise FigureError(
            f"the file's SHA-256 is {ended.output_sha256} instead of {manifest.payload_sha256}"
        )
    carried = ended.sent_bytes if is_upload else ended.received_bytes
    return run_figures.peer_figures(
        scenario,
        manifest.seed,
        ended.elapsed_ns / 1e9,
        carried,
        start_s=manifest.shift_s,
        is_whole=is_checked or sum(carried.values()) >= size_bytes,
    )


def _with_shares(
    figures: RunFigures, scenario: Scenario, run_dir: Path, manifest: Job
) -> RunFigures:
    """Adds the figures of further clients, and how all share the links."""
    if not scenario.shared_links:
        return figures
    clients = [_client_figures(figures, 1, manifest.title)]
    for number, one in enumerate(scenario.clients[1:], 2):
        own = manifest.of_client(one.algorithm)
        try:
            found = _of_client(run_dir / client_directory(number), scenario, own)
        except FigureError as error:
            raise FigureError(f"client {number} ({own.title}): {error}") from error
        clients.append(_client_figures(found, number, own.title))
    direction = scenario.workload.direction
    return replace(
        figures,
        clients=clients if len(clients) > 1 else None,
        shares=shares.of_run(clients, figures.traffic or [], direction) or None,
    )


def _client_figures(figures: RunFigures, number: int, algorithm: str) -> ClientFigures:
    return ClientFigures(
        client=number,
        algorithm=algorithm,
        download_s=figures.download_s,
        goodput_bps=figures.goodput_bps,
        links_bytes={name: link.bytes for name, link in figures.links.items()},
    )


def _check_upload(manifest: Job, ended: Outcome) -> None:
    """Raises FigureError if the server received another file, or none from a client of ours. A
    user's program may upload elsewhere."""
    if manifest.client is None and ended.uploaded_sha256 is None:
        return
    if ended.uploaded_sha256 != manifest.payload_sha256:
        raise FigureError(
            f"the server got a file with the SHA-256 {ended.uploaded_sha256} instead of "
            f"{manifest.payload_sha256}"
        )


def _of_workload(scenario: Scenario, manifest: Job, run_dir: Path, ended: Outcome) -> RunFigures:
    done = records.document(run_dir / WORKLOAD_FILE, WorkloadSummary)
    own = workload_figures.checked(done, scenario.workload.name, scenario.payload.size_bytes)
    round_trips = Tail(run_dir, RoundTripRecord).read()
    if round_trips:
        own[workload_figures.ROUND_TRIP] = math.fsum(one.rtt_s for one in round_trips) / len(
            round_trips
        )
    figures = run_figures.peer_figures(
        scenario,
        manifest.seed,
        done.duration_ns / 1e9,
        ended.received_bytes,
        start_s=manifest.shift_s,
    )
    first_byte = _first_byte_s(run_dir) if scenario.workload.page is not None else None
    if first_byte is not None:
        loaded_s = manifest.shift_s + own["page_load_s"]
        figures = replace(figures, from_first_byte_s=loaded_s - first_byte)
    return replace(figures, workload=own)


def _first_byte_s(run_dir: Path) -> float | None:
    """Returns when the first byte came, if packets tell."""
    seen = Tail(run_dir, BurstRecord).read()
    return next((one.t_s + one.first_byte_s for one in seen if one.first_byte_s is not None), None)


def _with_samples(
    figures: RunFigures, scenario: Scenario, run_dir: Path, shift_s: float
) -> RunFigures:
    """Adds what was sampled, if there is any: stalls, energy, processes, queues, traffic."""
    queues = Tail(run_dir, QueueRecord).read()
    processes = Tail(run_dir, ProcessRecord).read()
    if processes:
        from linklab.runs import process_figures  # numpy is slow to load.

        bursts = run_energy.bursts(scenario, run_dir, shift_s, shift_s + figures.download_s)
        load = process_figures.load_in(processes, "client", bursts or [])
        used = process_figures.of_records(processes)
        figures = replace(figures, processes=used, burst_load=load)
    flows = Tail(run_dir, TrafficRecord).read()
    if flows:
        figures = replace(figures, traffic=traffic_figures.of_records(flows))
    if not queues:
        return figures
    waits = Tail(run_dir, SojournRecord).read()
    figures = replace(figures, queues=queue_figures.of_records(queues, waits))
    if scenario.shared_links:
        return figures
    if figures.goodput_bps is not None and not scenario.workload.takes_its_time:
        end_s, direction = shift_s + figures.download_s, scenario.workload.direction
        stalled_s = stalls.stalled_s(queues, end_s, direction)
        figures = replace(figures, stalled_s=stalled_s)
    model = run_energy.model_of(run_dir)
    if model is None:
        return figures
    cost = run_energy.of_download(model, scenario, run_dir, queues, shift_s, figures)
    return replace(figures, energy=cost.figures)


def write(run_dir: Path) -> RunFigures:
    """Writes `summary.json` and returns the figures. Raises as `figures_of`, and OSError if it
    cannot be written."""
    figures = figures_of(run_dir)
    text = msgspec.json.format(msgspec.json.encode(asdict(figures)), indent=2)
    plain_file.write(run_dir / FILE, text + b"\n")
    return figures


def read(run_dir: Path) -> RunFigures:
    """Reads the figures that `write` has written. Raises OSError, RecordError."""
    return records.document(run_dir / FILE, RunFigures)


def read_or_compute(run_dir: Path) -> RunFigures:
    """Reads the figures of the run, or computes them if there is no `summary.json`. Raises as
    `figures_of`."""
    try:
        return read(run_dir)
    except FileNotFoundError:
        return figures_of(run_dir)


def _last_words(run_dir: Path) -> str:
    """Returns the last line of the client's output, for an error message."""
    for name in ("client.err", "client.out"):
        end = plain_file.end(run_dir / name, _END_BYTES)
        lines = end.decode(errors="replace").strip().splitlines()
        if lines:
            return lines[-1][:_MOST_WORDS]
    return "it said nothing"
