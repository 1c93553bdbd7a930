"""Runs `publish`: writes finished runs into Prometheus with recent timestamps.

A run in virtual time has no date. So each run gets its own time slot in Prometheus. A slot is old
enough not to overlap current scrapes, and young enough to stay within the retention time. A ledger
in the data directory records the slots.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import math
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from linklab.core import locks, plain_file, records, whole_file
from linklab.core.errors import LinklabError
from linklab.core.naming import naming
from linklab.core.records import RecordError
from linklab.metrics.manifest import new_metrics, run_label
from linklab.metrics.run import families
from linklab.publish.owner import Owner, OwnerError, acting_as, owner_of
from linklab.runs import beside_baseline, job, outcome, summary
from linklab.runs.beside_baseline import BesideBaseline
from linklab.runs.job import Job
from linklab.runs.run_figures import FigureError, RunFigures
from linklab.scenario import Scenario, ScenarioError

LEDGER = "linklab-published.jsonl"

GRAFANA = "http://127.0.0.1:3000"
"""The address in compose.yaml."""

LIVE_UID, COMPARE_UID, HISTORY_UID = "linklab-live", "linklab-compare", "linklab-regression"
"""The identifiers of the dashboards (dashboards/grafana)."""

STEP_S = 1
"""The interval of samples, like the scrapes of a live run."""

SLACK_S = 0.01
"""Queues are sampled some µs after whole seconds. Such a sample counts for that second."""

LEAST_AGE_S = 3 * 3600
"""Prometheus' data that is not in blocks yet reaches up to 3 h back."""

REST_S = 300
"""The gap between two slots. Prometheus answers queries with values up to 5 min old."""

RETENTION_S = 15 * 86400
"""Prometheus' default retention time."""

ROOM_S = 6 * 86400
"""The age of the first slot. Dashboards of published runs show 7 days."""

MARGIN_S = 86400
"""A slot must stay in Prometheus for at least a day."""


MOST_SAMPLES = 2_000_000
"""The limit for a run: several hours of two links. All samples are in memory at once."""


class PublishError(LinklabError, RuntimeError):
    """A run cannot be published. The message says which and why."""


_NAME = r"^[^/\x00-\x1f\x7f-\x9f]+\Z"
"""The allowed names of runs. They become file names, and the ledger is untrusted."""


class Slot(msgspec.Struct, frozen=True):
    """A line of the ledger: a run and its slot in Unix seconds."""

    run: Annotated[str, msgspec.Meta(pattern=_NAME)]
    digest: str
    start_s: int
    end_s: int


@dataclass(frozen=True)
class FinishedRun:
    """A run directory that can be published.

    `label` is the value of the metrics' label `run`. `digest` is a hash of manifest and outcome. It
    identifies a run even if its directory was moved.
    """

    directory: Path
    label: str
    digest: str
    job: Job
    scenario: Scenario
    figures: RunFigures | None
    verdict: BesideBaseline | None
    lasted_s: float

    @property
    def compared(self) -> tuple[str, str, str]:
        """Scenario, size of the file and clock, as in the metrics' labels."""
        labels = new_metrics(self.label, self.job, self.scenario, 0.0).labels
        return labels.scenario, labels.size, labels.clock


@dataclass(frozen=True)
class PublishedRun:
    """A published run: its slot, and whether it was in the ledger before."""

    run_dir: Path
    slot: Slot
    before: bool
    compared: tuple[str, str, str]
    """Scenario, size of the file and clock. Runs can be compared if these are equal."""
    suite: str | None
    """The regression suite of the run, if any."""


def finished_run(run_dir: Path) -> FinishedRun:
    """Reads a run's identity. Raises PublishError if the directory is no finished run."""
    try:
        return _finished_run(run_dir)
    except RecordError as error:
        raise PublishError(str(error)) from error


def _finished_run(run_dir: Path) -> FinishedRun:
    try:
        identity = hashlib.sha256(plain_file.read(run_dir / job.FILE))
        made = job.read(run_dir)
        scenario = job.scenario_of(run_dir)
        verdict = beside_baseline.read(run_dir)
    except FileNotFoundError as error:
        raise PublishError(
            f"{run_dir} is not a run directory: {error.filename} is missing"
        ) from None
    except ScenarioError as error:
        raise PublishError(f"{run_dir}: {error}") from None
    noted = outcome.noted(run_dir)
    if not noted:
        raise PublishError(f"{run_dir}: the run has not finished")
    for content in noted:
        identity.update(content)
    try:
        figures = summary.figures_of(run_dir)
    except (FigureError, FileNotFoundError):
        figures = None
    times = [t_s for t_s, _ in records.read_all(run_dir, made.shift_s)]
    label = run_label(made, run_dir)
    if not re.search(_NAME, label):
        raise PublishError(f"{run_dir}: a control character is in its name; allowed: one without")
    return FinishedRun(
        directory=run_dir,
        label=label,
        digest=identity.hexdigest()[:16],
        job=made,
        scenario=scenario,
        figures=figures,
        verdict=verdict,
        lasted_s=max(times, default=0.0),
    )


def samples(run: FinishedRun, start_s: int) -> Iterator[Sample]:
    """Yields all series of a run, a sample each second from `start_s` on.

    The figures come with the last sample. Raises PublishError if there are too many samples.
    """
    count = 0
    told = new_metrics(run.label, run.job, run.scenario, start_s)
    waiting = records.read_all(run.directory, run.job.shift_s)
    following = next(waiting, None)
    last = _seconds(run)
    for second in range(0, last + 1, STEP_S):
        while following is not None and following[0] <= second + SLACK_S:
            told.record(*following)
            following = next(waiting, None)
        told.advance(second)
        if second == last:
            told.conclude(run.figures, start_s + second, run.verdict)
        now = [one._replace(timestamp=start_s + second) for one in told.samples()]
        count += len(now)
        if count + len(now) * (last - second) > MOST_SAMPLES:
            raise PublishError(
                f"{run.directory}: {last} s of {len(now)} series are too much; "
                f"allowed: {MOST_SAMPLES} samples, one a second of each"
            )
        yield from now


def _seconds(run: FinishedRun) -> int:
    return max(1, math.ceil(run.lasted_s))


class _Text(Collector):
    """Gives metrics to prometheus_client's text writer."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


def openmetrics(runs: Sequence[tuple[FinishedRun, int]]) -> bytes:
    """Returns the runs as OpenMetrics text, each starting at its Unix second."""
    everything = [sample for run, start_s in runs for sample in samples(run, start_s)]
    text: bytes = generate_latest(_Text(families(everything)))  # type: ignore[no-untyped-call]
    return text


def free_slots(
    lengths_s: Sequence[int], taken: Sequence[tuple[int, int]], now_s: float, retention_s: float
) -> list[int]:
    """Returns the starts of new slots with these lengths, in this order. Pure.

    They come after all `taken` slots (start and end), so the order in Prometheus is the order of
    publishing. The very first slot is some days old, which leaves space for later ones. Raises
    PublishError if there is no space.
    """
    latest_s = now_s - LEAST_AGE_S
    whole_s = sum(_whole_minutes(length_s + REST_S) for length_s in lengths_s)
    oldest_s = now_s - max(retention_s - MARGIN_S, retention_s / 2)
    usual_s = min(now_s - min(ROOM_S, retention_s / 2), latest_s - whole_s)
    start_s = _whole_minutes(max([oldest_s, usual_s, *(end_s + REST_S for _, end_s in taken)]))
    starts: list[int] = []
    for length_s in lengths_s:
        if start_s + length_s > latest_s:
            raise PublishError(
                f"no room for {len(lengths_s)} runs in what Prometheus keeps "
                f"({retention_s / 86400:g} days): publish fewer, or raise its retention and --retention"
            )
        starts.append(start_s)
        start_s += _whole_minutes(length_s + REST_S)
    return starts


def _whole_minutes(seconds: float) -> int:
    return math.ceil(seconds / 60) * 60


class _Ledger:
    """A ledger that is locked until it is closed, so that no other process gives slots."""

    def __init__(self, directory: Path) -> None:
        path = directory / LEDGER
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, 0o666)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _no_ledger(path) from None
            raise
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            os.close(descriptor)
            raise _no_ledger(path)
        self._path = path
        self._file = os.fdopen(descriptor, "a+b")
        try:
            locks.take(self._file)
            self._file.seek(0)
            lines = self._file.read().splitlines()
            self.slots = [msgspec.json.decode(line, type=Slot) for line in lines]
        except msgspec.DecodeError as error:
            self.close()
            raise PublishError(f"{path}: {error}") from None
        except BaseException:
            self.close()
            raise

    def append(self, slots: Iterable[Slot]) -> None:
        """Records slots."""
        whole = os.fstat(self._file.fileno()).st_size
        try:
            with naming(self._path):
                content = b"".join(map(_line, slots))
                while content:
                    content = content[os.write(self._file.fileno(), content) :]
        except OSError:
            self._file.truncate(whole)
            raise

    def close(self) -> None:
        """Unlocks the ledger."""
        self._file.close()


def _line(slot: Slot) -> bytes:
    return msgspec.json.encode(slot) + b"\n"


def _no_ledger(path: Path) -> PublishError:
    return PublishError(f"{path} is no ledger of linklab's; allowed: a plain file with one name")


def publish(
    run_dirs: Sequence[Path],
    *,
    data: Path | None = None,
    output: Path | None = None,
    retention_s: float = RETENTION_S,
    now_s: float | None = None,
) -> list[PublishedRun]:
    """Gives each run a slot, and writes it into Prometheus' data directory or an OpenMetrics file.

    One of `data` and `output` must be given. promtool reads the file elsewhere. A run that has a
    slot keeps it; the file contains it again. Root acts as the owner of the directory. Raises
    PublishError; then no new slot is recorded.
    """
    runs = [finished_run(run_dir) for run_dir in dict.fromkeys(one.resolve() for one in run_dirs)]
    directory = data if data is not None else (output or Path()).absolute().parent
    if not directory.is_dir():
        raise PublishError(f"{directory} is not a directory")
    if output is not None and output.is_dir():
        raise PublishError(f"{output} is a directory; allowed: a file's name")
    if output is not None and (output.is_symlink() or (output.exists() and not output.is_file())):
        raise PublishError(f"{output} is no plain file; allowed: a file's name")
    try:
        owner = owner_of(directory)
    except OwnerError as error:
        raise PublishError(str(error)) from error
    now_s = time.time() if now_s is None else now_s
    with contextlib.ExitStack() as stack:
        with acting_as(owner):
            if data is not None and not _is_prometheus_data(data):
                raise PublishError(
                    f"{data} is not where a Prometheus keeps its data: {', '.join(_STORAGE)} are "
                    "missing; allowed: the directory of its --storage.tsdb.path (Debian: "
                    "/var/lib/prometheus/metrics2), or an empty one"
                )
            ledger = stack.enter_context(contextlib.closing(_Ledger(directory)))
        given = [slot for slot in ledger.slots if slot.end_s > now_s - retention_s]
        known = {slot.digest: slot for slot in given}
        distinct = {run.digest: run for run in runs}.values()
        fresh = [run for run in distinct if run.digest not in known]
        starts = free_slots(
            [_seconds(run) for run in fresh],
            [(slot.start_s, slot.end_s) for slot in given],
            now_s,
            retention_s,
        )
        new: dict[str, Slot] = {}
        for run, start_s in zip(fresh, starts, strict=True):
            taken = {slot.run for slot in (*given, *new.values())}
            candidates = (run.label, *(f"{run.label}-{n}" for n in range(2, len(taken) + 3)))
            label = next(one for one in candidates if one not in taken)
            new[run.digest] = Slot(label, run.digest, start_s, start_s + _seconds(run))
        slots = known | new
        if output is not None:
            text = _text_of(distinct, slots)
            with acting_as(owner):
                whole_file.write(output, text)
        elif data is not None and fresh:
            _backfill(_text_of(fresh, slots), data.resolve(), owner)
        with acting_as(owner):
            ledger.append(new.values())
    return [
        PublishedRun(
            run.directory,
            slots[run.digest],
            run.digest in known,
            run.compared,
            run.verdict.suite if run.verdict else None,
        )
        for run in runs
    ]


def to_json(one: PublishedRun, grafana: str) -> dict[str, object]:
    """Describes a published run for programs."""
    slot = msgspec.structs.asdict(one.slot)
    return {
        "run_dir": str(one.run_dir),
        "before": one.before,
        **slot,
        "live_url": live_url(one, grafana),
    }


def in_words(one: PublishedRun, grafana: str) -> str:
    """Describes a published run for people, with its address in Grafana."""
    how = "published before" if one.before else "published"
    return f"{one.slot.run}: {how}, {live_url(one, grafana)}"


def live_url(one: PublishedRun, grafana: str) -> str:
    """Returns the URL of Grafana's dashboard *Live lab* for a run."""
    return _url(grafana, LIVE_UID, [one.slot], run=one.slot.run)


def overviews(published: Iterable[PublishedRun], grafana: str) -> dict[str, str]:
    """Returns the URLs of Grafana's overview dashboards, by description.

    There is *Compare algorithms* for each scenario, file size and clock with several published
    runs, and *Regression history* for each suite.
    """
    groups: dict[tuple[str, str, str], list[Slot]] = {}
    suites: dict[str, list[Slot]] = {}
    for one in published:
        groups.setdefault(one.compared, []).append(one.slot)
        if one.suite is not None:
            suites.setdefault(one.suite, []).append(one.slot)
    found = {
        f"{scenario}, {size}, {clock} clock": _url(
            grafana, COMPARE_UID, slots, scenario=scenario, size=size, clock=clock
        )
        for (scenario, size, clock), slots in groups.items()
        if len(slots) > 1
    }
    for suite, slots in suites.items():
        found[f"suite {suite}"] = _url(grafana, HISTORY_UID, slots, suite=suite)
    return found


def _url(grafana: str, uid: str, slots: Sequence[Slot], **variables: str) -> str:
    """Returns a dashboard's URL from the first slot to 1 s after the end of the last one."""
    asked = {f"var-{name}": value for name, value in variables.items()}
    asked["from"] = f"{min(slot.start_s for slot in slots)}000"
    asked["to"] = f"{max(slot.end_s for slot in slots) + 1}000"
    return f"{grafana.rstrip('/')}/d/{uid}?{urllib.parse.urlencode(asked)}"


def _text_of(runs: Iterable[FinishedRun], slots: Mapping[str, Slot]) -> bytes:
    return openmetrics(
        [(replace(run, label=slots[run.digest].run), slots[run.digest].start_s) for run in runs]
    )


def _is_prometheus_data(directory: Path) -> bool:
    """Tells whether a directory is Prometheus' data directory, or could become one."""
    names = {path.name for path in directory.iterdir()}
    return not names or not names.isdisjoint((LEDGER, *_STORAGE))


def _backfill(text: bytes, data: Path, owner: Owner | None) -> None:
    """Makes blocks of Prometheus' storage from OpenMetrics text: all of them or none.

    The blocks belong to the directory's owner, because Prometheus must compact them.
    """
    promtool = shutil.which("promtool")
    if promtool is None:
        raise PublishError("promtool is missing: apt-get install prometheus, or use --output FILE")
    with acting_as(owner):
        work = Path(tempfile.mkdtemp(prefix="linklab-publish-", dir=data))
    try:
        file, blocks = work / "runs.om", work / "blocks"
        with acting_as(owner):
            plain_file.write(file, text)
        done = subprocess.run(
            [promtool, "tsdb", "create-blocks-from", "openmetrics", "--quiet", file, blocks],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            **(owner.of_process() if owner else {}),
        )
        if done.returncode != 0:
            raise PublishError(f"promtool: {(done.stderr or done.stdout).strip()}")
        with acting_as(owner):
            for block in sorted(blocks.glob(_BLOCK)):
                block.rename(data / block.name)
    finally:
        with acting_as(owner):
            shutil.rmtree(work, ignore_errors=True)


_STORAGE = ("wal", "chunks_head")
"""The directories that Prometheus makes when it starts (its documentation, Storage)."""

_BLOCK = "[0-9A-Z]" * 26
"""The name of a block in Prometheus' storage, which is a ULID."""
