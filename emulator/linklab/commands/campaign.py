"""Implements `linklab campaign`: runs a campaign's file and compares the runs."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import TextColumn, TimeRemainingColumn

from linklab.api import series
from linklab.api.series import Result
from linklab.campaign import folder, machine, wire_format
from linklab.commands import report, running
from linklab.commands.options import UsageError, add
from linklab.core import extras
from linklab.core.error_report import report_error
from linklab.display import printing
from linklab.display.progress import progress
from linklab.places import choice
from linklab.report import tables
from linklab.runs import runner, summary
from linklab.runs.matrix import Campaign, load

if TYPE_CHECKING:
    from distributed import Client

    from linklab.campaign.cluster import ClusterTask
    from linklab.runs.comparison import Comparison

Results = dict[str, Result]
"""Results by the runs' labels."""

EPILOG = """\
Complete runs in --out are kept: after Ctrl-C call it once more.

examples:
  linklab campaign profiles/campaigns/thesis.yaml
  linklab campaign mine.yaml --jobs 2

On several machines, by TLS. All machines share tls.key, which grants access:
  openssl req -x509 -newkey rsa:2048 -noenc -days 365 -subj /CN=campaign \\
    -keyout tls.key -out tls.pem
  tls='--tls-ca-file tls.pem --tls-cert tls.pem --tls-key tls.key'
  export DASK_TEMPORARY_DIRECTORY=$(mktemp -d)
  dask scheduler $tls --protocol tls --host 192.0.2.7 --port 8786 \\
    --dashboard-address 127.0.0.1:0 &
  dask worker $tls --host 192.0.2.7 --dashboard-address 127.0.0.1:0 \\
    --nthreads 1 --nworkers 2 tls://192.0.2.7:8786 &
  linklab campaign mine.yaml --scheduler tls://192.0.2.7:8786 \\
    --tls-ca tls.pem --tls-cert tls.pem --tls-key tls.key

Without TLS, anyone who reaches a Dask scheduler or worker can run programs as
its user. So tcp:// is only allowed on the loopback device, which every user of
the machine reaches."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add(parser, "--processor")
    parser.add_argument("file", type=Path, metavar="FILE", help="a campaign's YAML file")
    workers = parser.add_mutually_exclusive_group()
    workers.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="of a Dask cluster, such as tls://192.0.2.7:8786 (default: workers on this machine)",
    )
    each = "workers on this machine, each on a core of its own (default: all)"
    add(workers, "--jobs", help=each)
    certificates = {
        "ca": "whom of a tls:// cluster to trust",
        "cert": "who this is",
        "key": "its key",
    }
    for name, what in certificates.items():
        parser.add_argument(
            f"--tls-{name}",
            type=Path,
            metavar="FILE",
            help=f"{what}, in PEM (or as Dask is set up)",
        )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="for run directories (runs/campaign-NAME)"
    )
    add(parser, "--timeout", "--report", "--json")


def run(options: argparse.Namespace) -> int:
    """Runs what is missing of a campaign and compares all of it. Returns 1 if a run failed.

    Raises ScenarioError, FolderError, ClusterError if the campaign cannot be run as given.
    """
    given = [name for name in ("tls_ca", "tls_cert", "tls_key") if getattr(options, name)]
    if given and (len(given) != 3 or not options.scheduler):
        raise UsageError("--tls-ca, --tls-cert and --tls-key go together, and with --scheduler")
    campaign = load(options.file)
    out = options.out or Path("runs", f"campaign-{campaign.name}")
    report.require_place(options.report, out)
    done = complete(campaign, out, options.timeout, lambda: _cluster(options, campaign))
    _tell(options, campaign, out, done)
    report.of_directories(
        [out / one for one in done.results if one not in done.failures], options.report
    )
    return 1 if done.failures else 0


@dataclass(frozen=True)
class Completed:
    """Holds a finished campaign: results by the runs' labels, how many existed before, and how many
    each worker has made."""

    results: Results
    there: int
    per_worker: dict[str, int]
    wall_s: float

    @property
    def failures(self) -> dict[str, str]:
        """The reasons of failed runs, by their labels."""
        return {label: one for label, one in self.results.items() if isinstance(one, str)}


def complete(
    campaign: Campaign,
    out: Path,
    timeout_s: float | None,
    cluster: Callable[[], AbstractContextManager[Client]],
) -> Completed:
    """Runs what is missing in `out`. Starts the cluster only if anything is missing.

    Raises FolderError, ClusterError, MissingExtra.
    """
    extras.require("campaign", "running a campaign")
    from linklab.campaign.cluster import ClusterTask  # Dask is slow to load.

    running.choose_place("guest", "virtual")
    facts = machine.facts()
    parcels = {one.label: wire_format.wrap(one, timeout_s, facts) for one in campaign.requests}
    begun = time.monotonic()
    with folder.opened(out, campaign.name, facts, parcels) as whole:
        results: Results = dict(whole)
        tasks = [ClusterTask(label, one) for label, one in parcels.items() if label not in whole]
        per_worker = _work(cluster, tasks, facts, out, results) if tasks else {}
    return Completed(results, len(whole), per_worker, time.monotonic() - begun)


def _cluster(options: argparse.Namespace, campaign: Campaign) -> AbstractContextManager[Client]:
    from linklab.campaign import cluster  # Dask is slow to load.

    if options.scheduler:
        files = (options.tls_ca, options.tls_cert, options.tls_key)
        certificates = cluster.Certificates(*files) if all(files) else None
        return cluster.existing(options.scheduler, certificates, report_error)
    return on_this_machine(campaign, options.jobs)


def on_this_machine(campaign: Campaign, jobs: int | None) -> AbstractContextManager[Client]:
    """Returns workers on this machine: `jobs`, or one per core if there is memory for their guests."""
    from linklab.campaign import cluster  # Dask is slow to load.

    most = jobs or len(os.sched_getaffinity(0))
    fitting = runner.fitting(campaign.scenarios, is_emulated=choice.is_emulated())
    return cluster.embedded(min(most, fitting))


def _work(
    cluster: Callable[[], AbstractContextManager[Client]],
    tasks: list[ClusterTask],
    facts: dict[str, str],
    out: Path,
    results: Results,
) -> dict[str, int]:
    """Runs the tasks and keeps their results. Returns how many each worker has done."""
    from linklab.campaign.cluster import Dispatch  # Dask is slow to load.

    done: Counter[str] = Counter()
    with (
        cluster() as client,
        progress(TextColumn("ETA"), TimeRemainingColumn()) as bar,
    ):

        def tell(line: str) -> None:
            if bar.disable:
                report_error(line)
            else:
                bar.console.print(f"linklab: {line}", markup=False, highlight=False)

        dispatch = Dispatch(client, facts, tell)
        dispatch.find_workers()
        task = bar.add_task("starting", total=len(tasks))

        def started(_: str) -> None:
            count = len(dispatch.workers)
            bar.update(task, description=f"{count} worker{'s' if count != 1 else ''}")

        for one in dispatch.run_all(tasks, started):
            if one.reply.files:
                run_dir = folder.keep(out, one.label, one.reply.files)
            results[one.label] = one.reply.failure or summary.read(run_dir)
            done[one.worker] += 1
            bar.update(task, advance=1)
            if one.reply.failure:
                tell(f"{one.label}: {one.reply.failure}")
    return dict(done)


def comparisons(campaign: Campaign, results: Mapping[str, Result]) -> list[Comparison]:
    """Returns a comparison for each scenario, with algorithms in the order of the file. Pure."""
    made = []
    for scenario in campaign.scenarios:
        requests = [one for one in campaign.requests if one.scenario == scenario]
        found = [(one, results[one.label]) for one in requests]
        made.append(series.comparison(scenario, [one.client_name for one in requests], found))
    return made


def _tell(options: argparse.Namespace, campaign: Campaign, out: Path, done: Completed) -> None:
    compared = comparisons(campaign, done.results)
    if options.json:
        print(
            json.dumps(
                {
                    "campaign": campaign.name,
                    "run_dir": str(out.resolve()),
                    "runs": len(done.results),
                    "runs_there_before": done.there,
                    "runs_per_worker": done.per_worker,
                    "wall_s": done.wall_s,
                    "failures": done.failures,
                    "comparisons": [tables.to_json(one) for one in compared],
                },
                indent=2,
            )
        )
        return
    console = printing.console()
    for one in compared:
        tables.show(one, console)
    print(f"{in_one_line(done)}; run directories: {out}")


def in_one_line(done: Completed) -> str:
    """Says how many runs there are, how many existed before, and how long they took."""
    before = f", {done.there} of which were there already" if done.there else ""
    by = f" on {len(done.per_worker)} workers" if len(done.per_worker) > 1 else ""
    return f"{len(done.results)} runs{before}, in {done.wall_s:.0f} s{by}"
