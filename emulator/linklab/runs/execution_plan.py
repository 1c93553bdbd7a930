"""Reads what a run directory asks for, with paths valid where it is executed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from msgspec import UNSET

from linklab.core.paths import GUEST_FILES
from linklab.lab.multipath.path_use import PathUse
from linklab.places.guest.init import BIND, mount
from linklab.runs import environment, working_directory
from linklab.runs import job as manifest
from linklab.runs.clients import ClientUnderTest, Task, client_of
from linklab.runs.job import Job
from linklab.scenario import Scenario
from linklab.scenario.workload import UPLOAD, WHOLE_FILE

_SILENCE_S: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Holds a run to be executed here.

    The user's programs run from the host's files, with `host_root` as their root. `as_written` is
    the job with paths valid for them. `job` is the same with paths valid for the lab's own
    programs. `scratch` is a directory for the time of the run. The user's programs start in
    `directory`.
    """

    run_dir: Path
    host_root: Path
    scratch: Path
    as_written: Job
    job: Job
    scenario: Scenario
    client: ClientUnderTest | None
    task: Task
    directory: Path

    @classmethod
    def read(cls, run_dir: Path, host_root: Path, scratch: Path) -> Plan:
        """Reads the run directory. Mounts the job's files where the lab's programs look for them."""
        as_written = manifest.read(run_dir)
        job = _held(host_root, as_written)
        scenario = manifest.scenario_of(run_dir)
        client = client_of(job.client) if job.client else None
        told = job if client else as_written
        task = environment.task_of(told, scenario, run_dir, scratch / "payload")
        directory = scratch
        if job.directory is not UNSET:
            directory = working_directory.begin(host_root, Path(job.directory), scratch)
        return cls(run_dir, host_root, scratch, as_written, job, scenario, client, task, directory)

    def further(self) -> list[Plan]:
        """Returns a plan for each further client of the scenario. It has directories of its own in
        `run_dir` and `scratch`, which are made here."""
        plans = []
        for number, one in enumerate(self.scenario.clients[1:], 2):
            name = one.algorithm
            own = manifest.client_directory(number)
            for directory in (self.run_dir / own, self.scratch / own):
                directory.mkdir()
            as_written, job = self.as_written.of_client(name), self.job.of_client(name)
            client = client_of(job.client) if job.client else None
            told = job if client else as_written
            output = self.scratch / own / "payload"
            task = environment.task_of(told, self.scenario, self.run_dir / own, output)
            task = dataclasses.replace(task, wireless=self.task.wireless, energy=self.task.energy)
            plans.append(
                dataclasses.replace(
                    self,
                    run_dir=self.run_dir / own,
                    scratch=self.scratch / own,
                    as_written=as_written,
                    job=job,
                    client=client,
                    task=task,
                )
            )
        return plans

    @property
    def client_job(self) -> Job:
        """The job with paths as the client's program finds them."""
        return self.job if self.client else self.as_written

    @property
    def path_use(self) -> PathUse | None:
        """How Multipath TCP uses the links. None for plain TCP."""
        if self.client is not None and self.client.multipath is not None:
            return self.client.multipath
        return PathUse() if self.scenario.tcp.mptcp else None

    @property
    def first_link(self) -> str | None:
        """The link of the first subflow. None for plain TCP."""
        use = self.path_use
        return None if use is None else use.first_of(self.scenario.links)

    @property
    def needs_plain_http(self) -> bool:
        """Whether the server also has to answer without TLS."""
        return self.client is not None and self.client.plain_http

    @property
    def uploads(self) -> Path | None:
        """The directory in which the server keeps uploads. None if nothing is uploaded."""
        return self.scratch / "uploads" if self.scenario.workload.sends else None

    @property
    def uploaded(self) -> Path:
        """The path of the uploaded payload."""
        return self.scratch / "uploads" / Path(self.job.payload).name

    @property
    def patience_s(self) -> float:
        """The seconds of silence after which a download or upload is ended. Linux' TCP gives up
        after 925 s of silence (tcp_retries2), so no transfer recovers from that. A player may pause
        for longer."""
        moves_a_file = self.scenario.workload.name in (WHOLE_FILE, UPLOAD)
        is_timed = self.client is not None and self.job.clock == "virtual"
        return _SILENCE_S if moves_a_file and is_timed else math.inf

    @property
    def checks_output(self) -> bool:
        """Whether the lab compares the client's file with the payload. That is so for foreign
        programs, which do not know the payload's hash. multilink compares the SHA-256 itself. A
        user's program may write any file."""
        return self.client is not None and self.client.program is not None


def _held(host_root: Path, job: Job) -> Job:
    """Returns the job with its files at paths that are the same on every machine, unless the host's
    root is `/`. The length of a path among a client's arguments may change figures. Programs with
    the host's root find the files at these paths too."""
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
    if job.peers is not UNSET:
        held["peers"] = str(GUEST_FILES / "peers")
        Path(held["peers"]).mkdir(parents=True, exist_ok=True)
        files[held["peers"]] = host_root / Path(job.peers).relative_to("/")
    _lay_over(files, {Path("/"), host_root})
    return msgspec.structs.replace(job, **held)


def _lay_over(files: Mapping[str, Path], roots: set[Path]) -> None:
    """Mounts files over those that the lab's programs look for. Only this process' mounts change."""
    for place, file in files.items():
        for root in roots:
            path = root / place.lstrip("/")
            if path.exists():
                mount(str(file), str(path), "", BIND)
