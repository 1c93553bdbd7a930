"""Makes JSON schemas of a run directory's files from the types that read them.

Files that linklab does not read have no schema: files for people, and logs of multilink and H2O.
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
"""The type of each file; of a `.jsonl` file, the type of a line."""


def schemas() -> dict[str, Any]:
    """Returns the JSON schema of each file; of a `.jsonl` file, the schema of a line.

    `run.json` holds the format's number, which grows if older readers would misread the files.
    """
    return {name: msgspec.json.schema(kind) for name, kind in _FILES.items()}
