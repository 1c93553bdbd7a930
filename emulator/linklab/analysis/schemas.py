"""What stands in each JSON file of a run directory, as schemas made from the types that read it.

What no type of linklab reads has none: what is kept for people, and what multilink and H2O log.
"""

from __future__ import annotations

from typing import Any

import msgspec

from linklab.core.records import FILES
from linklab.lab.player import control
from linklab.runs import beside_baseline, job, outcome, summary
from linklab.runs.beside_baseline import BesideBaseline
from linklab.runs.job import Job
from linklab.runs.outcome import Outcome
from linklab.runs.run_figures import ClientSummary, RunFigures
from linklab.runs.workload_figures import WorkloadSummary

_FILES: dict[str, Any] = {
    job.FILE: Job,
    outcome.FILE: Outcome,
    summary.FILE: RunFigures,
    "client.json": ClientSummary,
    summary.WORKLOAD_FILE: WorkloadSummary,
    beside_baseline.FILE: BesideBaseline,
    control.FILE: control.Command,
    **{name: kind for kind, name in FILES.items()},
}
"""Each file with its type; of a `.jsonl` file that of a line."""


def schemas() -> dict[str, Any]:
    """File name → JSON schema; of a `.jsonl` file that of each line. The format's number, which
    grows when older readers would misread it, is that of `run.json`."""
    return {name: msgspec.json.schema(kind) for name, kind in _FILES.items()}
