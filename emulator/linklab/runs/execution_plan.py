"""What a run directory asks for, as the place that executes it finds things."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from linklab.core.paths import GUEST_FILES
from linklab.lab.multipath.path_use import PathUse
from linklab.places.guest.init import BIND, mount
from linklab.runs import environment
from linklab.runs import job as manifest
from linklab.runs.clients import ClientUnderTest, Task, client_of
from linklab.runs.job import Job
from linklab.scenario import Scenario
from linklab.scenario.workload import UPLOAD, WHOLE_FILE

_SILENCE_S: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A run that is to be executed here.

    The user's programs run from the host's files, with `host_root` as their root. `as_written` is
    the job with paths as they find them. `job` is the same with paths as the lab's own programs find
    them. `client_job` is whichever holds for the client. `scratch` is a directory for the time of
    the run.
    """

    run_dir: Path
    host_root: Path
    scratch: Path
    as_written: Job
    job: Job
    scenario: Scenario
    client: ClientUnderTest | None
    task: Task

    @classmethod
    def read(cls, run_dir: Path, host_root: Path, scratch: Path) -> Plan:
        """Reads the run directory. Mounts the job's files where the lab's programs look for them."""
        as_written = manifest.read(run_dir)
        job = _held(host_root, as_written)
        scenario = manifest.scenario_of(run_dir)
        client = client_of(job.contestant) if job.contestant else None
        told = job if client else as_written
        task = environment.task_of(told, scenario, run_dir, scratch / "payload")
        return cls(run_dir, host_root, scratch, as_written, job, scenario, client, task)

    @property
    def client_job(self) -> Job:
        """The job with paths as the client's program finds them."""
        return self.job if self.client else self.as_written

    @property
    def path_use(self) -> PathUse | None:
        """How Multipath TCP is to use the links; None for plain TCP."""
        if self.client is not None and self.client.multipath is not None:
            return self.client.multipath
        return PathUse() if self.scenario.tcp.mptcp else None

    @property
    def first_link(self) -> str | None:
        """The link of the first subflow; None for plain TCP."""
        use = self.path_use
        return None if use is None else use.first_of(self.scenario.links)

    @property
    def needs_plain_http(self) -> bool:
        """Whether the server has to answer without TLS, too."""
        return self.client is not None and self.client.plain_http

    @property
    def uploads(self) -> Path | None:
        """Where the server keeps what it gets, if it gets more than requests."""
        return self.scratch / "uploads" if self.scenario.workload.sends else None

    @property
    def uploaded(self) -> Path:
        """Where an uploaded payload lies."""
        return self.scratch / "uploads" / Path(self.job.payload).name

    @property
    def patience_s(self) -> float:
        """For how long nothing may pass in a download or upload. No TCP of Linux is silent for so
        long and goes on, for it gives up after 925 s (tcp_retries2). Who watches a film may be."""
        moves_a_file = self.scenario.workload.name in (WHOLE_FILE, UPLOAD)
        is_timed = self.client is not None and self.job.clock == "virtual"
        return _SILENCE_S if moves_a_file and is_timed else math.inf

    @property
    def checks_output(self) -> bool:
        """Whether the lab compares the file with the payload: where a peer's program writes it, which
        nobody has told what is in it. multilink compares it with the SHA-256 that it is told. A
        program of the user's may write what it wants."""
        return self.client is not None and self.client.program is not None


def _held(host_root: Path, job: Job) -> Job:
    """The job with its files at places that are the same on every machine, where the host's root is
    another: a client's course may change with the length of a path among its arguments. They are
    there for programs whose root is the host's, too."""
    if host_root == Path("/"):
        return job
    held, files = {}, {}
    for name in ("payload", "multilink", "certificate_authority", "certificate", "key"):
        file = Path(getattr(job, name))
        place = GUEST_FILES / name
        if name == "payload":
            place /= file.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
        held[name] = str(place)
        files[held[name]] = host_root / file.relative_to("/")
    _lay_over(files, {Path("/"), host_root})
    return msgspec.structs.replace(job, **held)


def _lay_over(files: Mapping[str, Path], roots: set[Path]) -> None:
    """Has the lab's programs find these files where others lie; this process' mounts are its own."""
    for place, file in files.items():
        for root in roots:
            path = root / place.lstrip("/")
            if path.exists():
                mount(str(file), str(path), "", BIND)
