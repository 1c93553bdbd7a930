"""Tests campaigns: several workers over TCP give the same digits as one machine, and nothing is
lost."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import split
from typing import Any

import psutil
import pytest
from conftest import (
    REPOSITORY,
    Called,
    Linklab,
    ScenarioFile,
    command,
    environment,
    nightly,
    succeeded,
    until,
)
from robustness_test import processes_in

DASK = Path(sys.executable).with_name("dask")


LOOPBACK = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
"""As the manual says. Otherwise they listen on all addresses."""


def certificate(directory: Path) -> tuple[Path, Path]:
    """Makes a self-signed certificate and its key, as the manual says."""
    directory.mkdir(exist_ok=True)
    cert, key = directory / "tls.pem", directory / "tls.key"
    subprocess.run(
        [
            *split("openssl req -x509 -newkey rsa:2048 -noenc -days 365 -subj /CN=campaign"),
            "-keyout",
            key,
            "-out",
            cert,
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


class Cluster:
    """Starts a Dask scheduler and workers on loopback, as the manual says, with TLS if wanted."""

    def __init__(self, directory: Path, *, tls: bool = False) -> None:
        self._directory = directory
        self._file = directory / "scheduler.json"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._options: tuple[object, ...] = LOOPBACK
        self.certificates: tuple[object, ...] = ()
        """Options of `linklab campaign`."""
        protocol: tuple[str, ...] = ()
        if tls:
            cert, key = certificate(directory)
            self._options += ("--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key)
            self.certificates = ("--tls-ca", cert, "--tls-cert", cert, "--tls-key", key)
            protocol = ("--protocol", "tls")
        self._start("scheduler", *self._options, *protocol, "--port", "0")
        until(lambda: self._file.exists() and self._file.stat().st_size > 0, "no scheduler")
        self.address = str(json.loads(self._file.read_text())["address"])

    def worker(self, **more: str) -> subprocess.Popen[bytes]:
        """Starts a worker; `more` is added to its environment."""
        return self._start("worker", *self._options, "--nthreads", "1", "--no-nanny", **more)

    def wait_for_workers(self, count: int) -> None:
        """Waits until so many workers have found the scheduler, by their logs."""

        def registered() -> bool:
            logs = [path.read_text() for path in self._directory.glob("worker-*.log")]
            return sum("Registered to:" in log for log in logs) == count

        until(registered, f"{count} workers never found the scheduler")

    def _start(self, what: str, *options: object, **more: str) -> subprocess.Popen[bytes]:
        log = (self._directory / f"{what}-{len(self._processes)}.log").open("wb")
        with log:
            process = subprocess.Popen(
                [DASK, what, "--scheduler-file", self._file, *map(str, options)],
                cwd=self._directory,
                env={**environment(), "DASK_TEMPORARY_DIRECTORY": str(self._directory), **more},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes.append(process)
        return process

    def close(self) -> None:
        """Ends everything, the scheduler last. A worker that cannot reach it waits for long."""
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler without workers."""
    directory = tmp_path / "cluster"
    directory.mkdir()
    made = Cluster(directory)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler with TLS, without workers."""
    made = Cluster(tmp_path / "cluster", tls=True)
    try:
        yield made
    finally:
        made.close()


def campaign(tmp_path: Path, *, seeds: int, algorithms: str = "alg3, alg1", more: str = "") -> Path:
    """Writes a campaign for the scenario `short` beside it."""
    path = tmp_path / "sweep.yaml"
    path.write_text(
        f"name: sweep\n{more}matrices:\n"
        f"  - {{scenarios: [./short.yaml], algorithms: [{algorithms}], runs: {seeds}}}\n"
    )
    return path


def start(tmp_path: Path, *words: object) -> subprocess.Popen[str]:
    """Starts a campaign that keeps running."""
    return subprocess.Popen(
        command("campaign", *words),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def whole(out: Path) -> dict[str, float]:
    """Returns the complete runs, and when they became complete."""
    return {
        path.parent.name: path.stat().st_mtime
        for path in out.glob("*/summary.json")
        if not path.parent.name.startswith(".")
    }


def scratch() -> set[Path]:
    """Returns linklab's scratch directories on this machine, except those of processes that these
    tests did not start."""
    places = {"/dev/shm", "/tmp", "/var/tmp", os.environ.get("TMPDIR", "/tmp")}
    found = {path for place in places for path in Path(place).glob("linklab-run-*")}
    return {path for path in found if not works_beside(int(path.name.split("-")[2]))}


def works_beside(pid: int) -> bool:
    """Tells whether a process runs that these tests have not started."""
    try:
        return psutil.Process() not in psutil.Process(pid).parents()
    except psutil.NoSuchProcess:
        return False


def heard_at(pid: int) -> set[str]:
    """Returns the addresses at which a process or one of its children listens."""
    owner = psutil.Process(pid)
    sockets = list(owner.net_connections("inet"))
    for child in owner.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            sockets += child.net_connections("inet")
    return {socket.laddr.ip for socket in sockets if socket.status == psutil.CONN_LISTEN}


def guest_of(process: subprocess.Popen[Any]) -> bool:
    """Tells whether a run's process of this worker has started its guest."""
    for child in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if any(word.startswith("linklab.seed=") for word in child.cmdline()):
                return True
    return False


def test_two_workers_over_tls_come_to_what_compare_comes_to(
    tmp_path: Path, scenario: ScenarioFile, guarded: Cluster, linklab: Linklab
) -> None:
    short = scenario("short", wifi="down: 80 Mbit/s, up: 20 Mbit/s, rtt: 10 ms, loss: 0.1 %")
    before = scratch()
    guarded.worker()
    guarded.worker()
    guarded.wait_for_workers(2)
    file = campaign(tmp_path, seeds=2)
    assert guarded.address.startswith("tls://127.0.0.1:")
    done = linklab(
        "campaign",
        file,
        "--scheduler",
        guarded.address,
        *guarded.certificates,
        "--out",
        tmp_path / "out",
        "--json",
    )
    assert "without TLS" not in done.err
    assert done.code == 0, done.err
    alone = succeeded(linklab, "compare", short, "-a", "alg3,alg1", "--runs", "2")
    assert done.json["comparisons"] == alone.json["comparisons"]
    assert sum(done.json["runs_per_worker"].values()) == 4
    assert len(done.json["runs_per_worker"]) == 2, "one worker did all"
    plain = alone.run_dir
    for seed in (1, 2):
        for name in ("alg1", "alg3"):
            label = f"short-{name}-seed{seed}"
            for what in ("summary.json", "scenario.yaml", "links.jsonl", "queues.jsonl"):
                ours, theirs = tmp_path / "out" / label / what, plain / label / what
                assert ours.read_bytes() == theirs.read_bytes(), f"{label}/{what}"
    assert scratch() <= before


def test_who_has_no_certificate_of_the_clusters_gets_no_runs(
    tmp_path: Path, scenario: ScenarioFile, guarded: Cluster, linklab: Linklab
) -> None:
    scenario("short")
    file = campaign(tmp_path, seeds=1)
    cert, key = certificate(tmp_path / "other")
    foreign = ("--tls-ca", cert, "--tls-cert", cert, "--tls-key", key)
    plain = guarded.address.replace("tls://", "tcp://")
    for words, said in (
        ((guarded.address,), "needs certificates; needed: --tls-ca"),
        ((guarded.address, *foreign), "or not to these certificates"),
        ((plain,), "no scheduler answers at tcp://"),
        ((plain, *guarded.certificates), "is without TLS: certificates go with tls://"),
        (("tcp://192.0.2.7:8786",), "allowed: tls:// anywhere, tcp:// on 127.0.0.1"),
    ):
        done = linklab("campaign", file, "--scheduler", *words, "--out", tmp_path / "out")
        assert done.code == 2
        assert said in done.err
    assert whole(tmp_path / "out") == {}


@nightly
def test_a_lost_worker_loses_nothing_and_a_late_one_takes_part(
    tmp_path: Path, scenario: ScenarioFile, cluster: Cluster
) -> None:
    scenario("short", size="60 MB")
    before = scratch()
    first = cluster.worker()
    file = campaign(tmp_path, seeds=5)  # Enough for the time in which a worker starts.
    process = start(
        tmp_path, file, "--scheduler", cluster.address, "--out", tmp_path / "out", "--json"
    )
    until(lambda: guest_of(first), "the first worker never started a guest")
    late = cluster.worker()
    until(lambda: guest_of(late), "the late worker never started a guest")
    assert heard_at(late.pid) == {"127.0.0.1"}
    until(lambda: guest_of(first), "the first worker has nothing to do any more")
    first.send_signal(signal.SIGKILL)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert "is gone" in err
    report = json.loads(out)
    assert report["runs"] == 10
    assert report["failures"] == {}
    assert len(whole(tmp_path / "out")) == 10
    assert sum(report["runs_per_worker"].values()) == 10
    until(lambda: scratch() <= before, "the lost worker's run left its scratch directory")


def test_ctrl_c_ends_everything_and_the_next_call_goes_on(
    tmp_path: Path, scenario: ScenarioFile, linklab: Linklab
) -> None:
    scenario("short", size="60 MB")
    before = scratch()
    out = tmp_path / "out"
    file = campaign(tmp_path, seeds=2)
    process = start(tmp_path, file, "--out", out, "--jobs", "2")
    until(lambda: len(whole(out)) >= 1, "no run ended")
    assert heard_at(process.pid) == {"127.0.0.1"}
    os.killpg(process.pid, signal.SIGINT)  # A terminal sends it to every process of the group.
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    until(lambda: scratch() <= before, "a run's scratch directory outlived Ctrl-C")
    kept = whole(out)
    assert kept and len(kept) < 4
    half = next(
        f"short-{name}-seed2" for name in ("alg1", "alg3") if f"short-{name}-seed2" not in kept
    )
    (out / half).mkdir(exist_ok=True)
    (out / half / "stale").touch()
    again = succeeded(linklab, "campaign", file, "--out", out)
    assert again.json["runs"] == 4
    assert again.json["runs_there_before"] == len(kept)
    assert not (out / half / "stale").exists()
    now = whole(out)
    assert len(now) == 4
    assert {name: now[name] for name in kept} == kept, "a whole run was run again"


def test_workers_with_another_client_get_no_runs(
    tmp_path: Path, scenario: ScenarioFile, cluster: Cluster, linklab: Linklab
) -> None:
    scenario("short")
    other = tmp_path / "other-multilink"
    shutil.copy(REPOSITORY / "build" / "multilink", other)
    with other.open("ab") as file:
        file.write(b"!")
    cluster.worker(LINKLAB_MULTILINK=str(other))
    done = linklab(
        "campaign",
        campaign(tmp_path, seeds=1),
        "--scheduler",
        cluster.address,
        "--out",
        tmp_path / "out",
    )
    assert done.code == 2
    assert "no worker will do" in done.err
    assert "multilink (SHA-256) is" in done.err
    assert whole(tmp_path / "out") == {}


def failures(done: Called) -> dict[str, str]:
    """Returns the failed runs of a campaign. The table names them too."""
    found: dict[str, str] = done.json["failures"]
    return found


def test_failures_are_named_and_those_of_the_lab_tried_again(
    tmp_path: Path, scenario: ScenarioFile, linklab: Linklab
) -> None:
    scenario("short")
    more = "exec: [{name: refuses, command: \"sh -c 'echo no such luck >&2; exit 3'\"}]\n"
    file = campaign(tmp_path, seeds=1, algorithms="refuses", more=more)
    done = linklab("campaign", file, "--out", tmp_path / "out", "--json", "--jobs", "1")
    assert done.code == 1
    assert failures(done) == {"short-refuses-seed1": "the client ended with 3: no such luck"}
    assert "once more" not in done.err
    assert (tmp_path / "out" / "short-refuses-seed1" / "outcome.json").exists()

    file = campaign(tmp_path, seeds=1, algorithms="alg3")
    hung = linklab(
        "campaign", file, "--out", tmp_path / "hung", "--json", "--jobs", "1", "--timeout", "0.2"
    )
    assert hung.code == 1
    (said,) = failures(hung).values()
    assert "was still running after 0.2 s of the lab's time" in said and said.endswith(
        "(tried 3 times)"
    )
    assert hung.err.count("short-alg3-seed1: once more, because") == 2
    until(lambda: not processes_in(tmp_path), "processes outlived the campaign")
