import contextlib
import os
import random
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from linklab.core import records
from linklab.core.records_test import sampled
from linklab.lab.network.services import OwnServer
from linklab.links import oracle
from linklab.models.events import Event
from linklab.places.choice import Environment
from linklab.places.guest import boot
from linklab.runs import job, outcome, runner
from linklab.runs.outcome import Outcome
from linklab.runs.payload_share import PayloadShare
from linklab.runs.programs import ProgramError
from linklab.runs.runner import RunError, RunRequest
from linklab.runs.visible_paths import ShareError
from linklab.scenario import Payload, Scenario, default_queue_bytes, list_all, load, parse
from linklab.scenario.clients import Downloader
from linklab.scenario.traffic import Bulk, TrafficFlow
from linklab.scenario.workload import MediaPlayer, Paced, Rounds, Upload, Workload

HOST = Environment("host", "real", "as asked")
GUEST = Environment("guest", "virtual", "")


def test_directories_are_always_new(tmp_path: Path) -> None:
    parent = tmp_path / "runs" / "deep"
    made = [runner.new_directory(parent, "one") for _ in range(3)]
    assert [path.name for path in made] == ["one", "one-2", "one-3"]
    (made[1] / "figure").write_text("kept")
    made[0].rmdir()
    assert runner.new_directory(parent, "one").name == "one"
    assert (made[1] / "figure").exists()
    assert made[0].is_absolute()


def test_a_name_that_is_used_up_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(path: Path, parents: bool = False, exist_ok: bool = False) -> None:
        if not exist_ok:
            raise FileExistsError

    monkeypatch.setattr(Path, "mkdir", taken)
    with pytest.raises(RunError, match="ten thousand runs called one"):
        runner.new_directory(tmp_path, "one")


def test_labels(small: Scenario) -> None:
    assert RunRequest(small, "alg3", 7).label == "small-alg3-seed7"
    command = ("/usr/bin/curl", "-o", "x", "{url}")
    assert RunRequest(small, None, 1, command=command).label == "small-curl-seed1"
    assert RunRequest(small, None, 1).label == "small-exec-seed1"


def test_of_many_runs_none_has_a_seed_beyond_the_last(small: Scenario) -> None:
    with pytest.raises(RunError, match=r"seed 9223372036854775808; allowed: 0 to 2\^63-1"):
        RunRequest(small, "alg3", 2**63)


def asked(scenario: Scenario, shift_s: float = 0.0) -> RunRequest:
    return RunRequest(scenario, None, 1, command=("true",), shift_s=shift_s)


def test_the_watchdog_leaves_time_for_the_slowest_link(small: Scenario) -> None:
    # 1 MB over 40 Mbit/s: 0.2095 s of data and three round trips of 40 ms.
    assert runner.watchdog_s(asked(small), GUEST) == pytest.approx(120 + 10 * 0.3295, abs=1)
    never = replace(small, events=(Event("wifi", 0.0, carrier="down"),))
    assert runner.watchdog_s(asked(never), GUEST) == 120 + 10 * 3600


@pytest.mark.parametrize(
    "workload",
    [
        Workload(player=MediaPlayer(length_s=1800.0)),
        Workload(player=MediaPlayer(rate_bps=4000)),
        Workload(paced=Paced(rate_bps=4000)),
        Workload(rounds=Rounds(answer_bytes=1000, request_bytes=100, think_s=1.8)),
    ],
)
def test_the_watchdog_leaves_time_for_who_plays_thinks_or_starts_later(
    small: Scenario, workload: Workload
) -> None:
    """On the real clock, where that takes as long as it lasts."""
    at_once = runner.watchdog_s(asked(small), GUEST)
    playing = asked(replace(small, workload=workload))
    assert runner.watchdog_s(playing, GUEST) > 1700 + at_once
    assert runner.watchdog_s(asked(small, shift_s=1800.0), GUEST) == 1800 + at_once


def test_the_limit_of_the_lab_s_time_comes_before_the_wall_s(small: Scenario) -> None:
    """For scenarios, limits and starts at random."""
    chance = random.Random(48)
    assert runner.limit_s(RunRequest(small, "alg3", 1), None) is None
    for _ in range(200):
        size_bytes = int(10 ** chance.uniform(3, 9))
        event = Event("wifi", chance.choice((0.0, chance.uniform(0, 900))), carrier="down")
        scenario = replace(
            small,
            payload=replace(small.payload, size_bytes=size_bytes),
            events=chance.choice(((), (event,))),
        )
        one = asked(scenario, shift_s=chance.choice((0.0, 500.0)))
        wanted_s = chance.choice((None, 0.2, chance.uniform(1, 10_000)))
        limit_s = runner.limit_s(one, wanted_s)
        assert limit_s is not None
        assert runner.watchdog_s(one, GUEST, wanted_s) >= one.shift_s + limit_s + 59
        if wanted_s is not None:
            assert limit_s == wanted_s
            continue
        assert limit_s >= max(60, 10 * oracle.oracle_s(scenario))
        assert all(limit_s > (one.at_s or 0) for one in scenario.events)


def test_others_on_the_links_get_time_and_memory(small: Scenario) -> None:
    def more_s(one: Scenario) -> float:
        return runner.watchdog_s(asked(one), HOST) - runner.MIN_WATCHDOG_S

    flow = TrafficFlow(link="wifi", bulk=Bulk(connections=30))
    shared = replace(small, traffic=(flow,))
    both = replace(shared, clients=(Downloader(),) * 2)
    assert more_s(shared) > 2 * more_s(small)
    assert more_s(both) == pytest.approx(2 * more_s(shared))
    size_bytes = 2 * small.payload.size_bytes
    assert runner.memory_of(both) == boot.memory_bytes(size_bytes)


def test_an_upload_gets_room_for_what_h2o_makes_of_it(small: Scenario) -> None:
    large = replace(small, payload=Payload(300_000_000))
    download, upload = runner.memory_of(large), replace(large, workload=Workload(upload=Upload()))
    assert runner.memory_of(upload) > download


def test_full_queues_find_memory(small: Scenario) -> None:
    """Of the default size at the highest rate."""
    text = "name: fast\npayload: {size: 1 MB}\nlinks: {lte: {down: 10 Gbit/s, up: 10 Gbit/s, rtt: 0 s}}"
    more = runner.memory_of(parse(text)) - runner.memory_of(small)
    assert more > 2.2 * 2 * default_queue_bytes(10_000_000_000) - (400 << 20)


def test_what_ships_has_the_memory_that_its_figures_were_taken_with() -> None:
    for scenario in list_all():
        plain = boot.memory_bytes(
            scenario.payload.size_bytes, uploaded=scenario.workload.upload is not None
        )
        assert runner.memory_of(scenario) == plain, scenario.name


def test_a_run_directory_is_prepared(small: Scenario, cache: Path, tmp_path: Path) -> None:
    run_dir = runner.new_directory(tmp_path, "run")
    request = RunRequest(small, None, 3, command=("true", "{url}"), shift_s=1e-6)
    runner.prepare(request, run_dir, HOST)
    assert load(run_dir / "scenario.yaml", any_name=True) == small
    written = job.read(run_dir)
    assert (written.scenario, written.client, written.seed) == ("small", None, 3)
    assert written.command == [shutil.which("true"), "{url}"]
    assert written.environment["PATH"].startswith(os.environ["PATH"].partition(":")[0])
    assert (written.place, written.clock, written.reason) == ("host", "real", "as asked")
    assert written.shift_s == 1e-6
    for path in (written.payload, written.certificate_authority, written.certificate, written.key):
        assert Path(path).is_relative_to(cache)
        assert Path(path).is_file()


def test_of_our_own_runs_nothing_of_the_user_s_environment_is_noted(
    small: Scenario, cache: Path, tmp_path: Path
) -> None:
    """Its length would move figures."""
    run_dir = runner.new_directory(tmp_path, "run")
    runner.prepare(RunRequest(small, "alg3", 3), run_dir, HOST)
    assert job.read(run_dir).environment == {}


@pytest.mark.parametrize(
    "given", [{"command": ("mytool",)}, {"command": ("true",), "server": OwnServer(("mytool",))}]
)
def test_nothing_begins_where_a_program_of_the_user_s_is_missing(
    small: Scenario, tmp_path: Path, given: dict[str, Any]
) -> None:
    requests = [asked(small), RunRequest(small, None, 2, **given)]
    with pytest.raises(ProgramError, match="mytool: no such program; looked in /"):
        next(runner.run_all(requests, HOST, tmp_path / "runs", parallel=1))
    assert not (tmp_path / "runs").exists()


def test_nothing_begins_where_a_further_client_s_program_is_missing(
    small: Scenario, begun: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    request = RunRequest(replace(small, clients=(Downloader(), Downloader("aria2-8"))), "alg3", 1)
    with pytest.raises(RunError, match="missing programs: apt-get install aria2"):
        list(runner.run_all([request], HOST, tmp_path, parallel=1))
    assert begun == []


def test_nothing_begins_where_what_is_to_be_shared_is_missing(
    small: Scenario, tmp_path: Path
) -> None:
    request = replace(asked(small), share=(f"{tmp_path}/none",))
    with pytest.raises(ShareError, match=f"--share {tmp_path}/none: no such file or directory"):
        next(runner.run_all([request], HOST, tmp_path / "runs", parallel=1))
    assert not (tmp_path / "runs").exists()


class Running:
    """A run that ends when the test writes into its pipe, or is ended."""

    def __init__(self, request: RunRequest, run_dir: Path, timeout_s: float) -> None:
        self.request = request
        self.run_dir = self.growing_dir = run_dir
        self.needed: tuple[Path, ...] = ()
        self.deadline = time.monotonic() + timeout_s
        self.code: int | None = None
        self.closed = False
        self._reader, self._writer = os.pipe()

    def fileno(self) -> int:
        return self._reader

    def end(self, code: int) -> None:
        self.code = code
        os.write(self._writer, b".")

    def exit_code(self) -> int:
        if self.code is None:
            raise RunError("it hangs")
        return self.code

    def close(self) -> None:
        assert not self.closed
        self.closed = True
        os.close(self._reader)
        os.close(self._writer)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Running]:
    """Every run that was begun; nothing is prepared."""
    runs: list[Running] = []

    def begin(request: RunRequest, run_dir: Path, place: Environment, timeout_s: float) -> Running:
        assert place == HOST
        runs.append(Running(request, run_dir, timeout_s))
        return runs[-1]

    monkeypatch.setattr(runner, "prepare", lambda *_, **__: None)
    monkeypatch.setattr(runner, "begin", begin)
    monkeypatch.setattr(
        runner, "watchdog_s", lambda _, __, limit_s: 300.0 if limit_s is None else limit_s
    )
    return runs


def requests(small: Scenario, count: int) -> list[RunRequest]:
    return [RunRequest(small, "alg3", seed) for seed in range(count)]


def test_a_slow_machine_ends_no_run_whose_lab_goes_on(small: Scenario, tmp_path: Path) -> None:
    """A run has 10 s of the lab's time here. Its watchdog fires again and again."""
    running = Running(asked(small), tmp_path, 0.0)
    carried = PayloadShare(tmp_path, small)
    started = runner._Started(running.request, 0.0, carried, 120.0, 10.0)

    def goes_on(*times_s: float) -> bool:
        lines = [records.line(sampled(t_s, "wifi", 1, "down")) for t_s in times_s]
        with (tmp_path / records.FILES[records.QueueRecord]).open("ab") as file:
            file.write(b"".join(lines))
        return started.goes_on(cast(Any, running))

    assert not goes_on()
    assert goes_on(0.5, 1.0)
    assert running.deadline > time.monotonic() + 100
    assert not goes_on()
    assert goes_on(9.5)
    assert not goes_on(10.5)
    running.close()


def test_at_most_so_many_run_at_a_time_in_order(
    small: Scenario, begun: list[Running], tmp_path: Path
) -> None:
    started: list[int] = []

    def tell(request: RunRequest, _: float) -> None:
        if request.seed not in started:
            started.append(request.seed)

    running = runner.run_all(requests(small, 4), HOST, tmp_path, parallel=2, tell=tell)

    def next_seed() -> int:
        return next(running).request.seed

    # The generator begins runs and then waits, so what is to end must end by itself.
    original = Running.fileno

    def end_newest(run: Running) -> int:
        if run is begun[-1] and run.code is None:
            run.end(0)
        return original(run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Running, "fileno", end_newest)
        assert next_seed() == 1
        assert started == [0, 1]
        assert [run.closed for run in begun] == [False, True]
        assert next_seed() == 2
        assert started == [0, 1, 2]
        assert next_seed() == 3
    begun[0].end(0)
    assert next_seed() == 0
    assert list(running) == []
    assert all(run.closed for run in begun)


def test_a_run_that_goes_on_tells_its_share_of_the_payload(
    small: Scenario, begun: list[Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_TOLD_S", 0.01)
    told: list[float] = []

    def tell(_: RunRequest, share: float) -> None:
        told.append(share)
        if share:
            begun[0].end(0)
        elif len(told) == 3:
            sample = sampled(0.5, "wifi", small.payload.size_bytes // 2)
            (begun[0].growing_dir / "queues.jsonl").write_bytes(records.line(sample))

    (_,) = runner.run_all(requests(small, 1), HOST, tmp_path, parallel=1, tell=tell)
    assert told[:3] == [0, 0, 0]
    assert 0.4 < told[-1] < 0.5


def ended(
    small: Scenario,
    begun: list[Running],
    parent: Path,
    code: int,
    note: str,
    noted: str = "",
    client_err: str | None = None,
) -> str | None:
    """The error of a run that ends with `code`, left `note` as its error and `noted` as its outcome."""
    running = runner.run_all(requests(small, 1), HOST, parent, parallel=1)

    def end(run: Running) -> int:
        if note:
            (run.run_dir / "error").write_text(note)
        if client_err is not None:
            (run.run_dir / "client.err").write_text(client_err)
        if noted:
            (run.run_dir / outcome.FILE).write_text(noted)
        if run.code is None:
            run.end(code)
        return run._reader

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Running, "fileno", end)
        (finished,) = running
    assert begun[-1].closed
    return finished.error


def test_errors_are_those_that_the_run_noted(
    small: Scenario, begun: list[Running], tmp_path: Path
) -> None:
    done = msgspec.json.encode(
        Outcome(exit_code=0, elapsed_ns=1, received_bytes={}, output_bytes=0)
    )
    assert ended(small, begun, tmp_path, 0, "", done.decode()) is None
    assert ended(small, begun, tmp_path, 1, "H2O ended with -9\n") == "H2O ended with -9"
    assert len(ended(small, begun, tmp_path, 1, "x" * 10**6) or "") == 65536
    said = ended(small, begun, tmp_path, 137, "")
    assert said is not None
    assert said.startswith("the lab ended with 137")
    assert said.endswith("console.log")


@pytest.mark.parametrize("noted", ["", "x", "{}"])
def test_an_outcome_that_is_none_is_an_error_of_that_run(
    small: Scenario, begun: list[Running], tmp_path: Path, noted: str
) -> None:
    said = ended(small, begun, tmp_path, 0, "", noted)
    assert said is not None
    assert said.startswith("the run left no outcome: ")
    assert "outcome.json" in said


def test_a_run_that_hangs_is_ended_and_the_others_go_on(
    small: Scenario, begun: list[Running], tmp_path: Path
) -> None:
    running = runner.run_all(requests(small, 2), HOST, tmp_path, parallel=1, timeout_s=0.02)
    first = next(running)
    assert (first.error, first.request.seed) == ("it hangs", 0)
    assert first.wall_s >= 0.02
    assert begun[0].closed
    assert next(running).request.seed == 1
    assert list(running) == []


def test_a_run_that_hung_keeps_why_with_the_client_s_last_words(
    small: Scenario, begun: list[Running], tmp_path: Path
) -> None:
    """For whoever looks at its directory later."""
    hung = "the client was still running after 60 s of the lab's time and was ended"
    said = "".join(f"line {number} {'x' * 300}\n" for number in range(1000))
    error = ended(small, begun, tmp_path, 1, f"{hung}\n", client_err=said)
    assert error is not None
    first, *words = error.splitlines()
    assert first == f"{hung}; the client's last words ({begun[-1].run_dir}/client.err):"
    assert [line.split()[1] for line in words] == ["995", "996", "997", "998", "999"]
    assert max(map(len, words)) < 210
    assert outcome.missing(begun[-1].run_dir) == error
    error = ended(small, begun, tmp_path, 1, f"{hung}\n", client_err="")
    assert error is not None
    assert error.endswith("client.err):\n  (nothing)")


@pytest.mark.parametrize("stop", ["close", "error"])
def test_whoever_stops_early_leaves_nothing_running(
    small: Scenario,
    begun: list[Running],
    tmp_path: Path,
    stop: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(run: Running) -> str | None:
        raise KeyboardInterrupt

    running = runner.run_all(requests(small, 3), HOST, tmp_path, parallel=2, timeout_s=0.01)
    if stop == "close":
        next(running)
        running.close()  # type: ignore[attr-defined]
    else:
        monkeypatch.setattr(runner, "verdict", interrupt)
        with pytest.raises(KeyboardInterrupt):
            next(running)
    assert len(begun) == 2
    assert all(run.closed for run in begun)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "tmp"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


@contextlib.contextmanager
def on_host(run_dir: Path, scratch: Path) -> Iterator[runner._HostRun]:
    """An execution on the host, with what must hold before and after."""
    run_dir.mkdir()
    run = runner._HostRun(run_dir, 30)
    try:
        (made,) = scratch.iterdir()
        assert made.name.startswith(f"linklab-run-{os.getpid()}-")
        assert stat.S_IMODE(made.stat().st_mode) == 0o711  # For an H2O that is nobody.
        yield run
    finally:
        run.close()
    assert list(scratch.iterdir()) == []
    run.close()  # A second time is no error.


def test_an_execution_on_the_host_says_why_it_failed(
    namespace: int, scratch: Path, tmp_path: Path
) -> None:
    with on_host(tmp_path / "empty", scratch) as run:
        os.waitid(os.P_PIDFD, run.fileno(), os.WEXITED | os.WNOWAIT)
        assert run.exit_code() == 1
        assert "run.json" in str(runner.verdict(run))


def test_an_execution_on_the_host_is_ended_however_early(
    namespace: int, scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Process 1 of a namespace ignores SIGTERM until it has a handler, here after 0.3 s."""
    program = tmp_path / "python"
    program.write_text(
        f"#!/bin/sh\n: > '{tmp_path}/begun'; sleep .3; trap 'exit 0' TERM; while :; do sleep .05; done\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with on_host(tmp_path / "run", scratch) as run:
        with pytest.raises(RunError, match=r"running after 30 s and was ended.*console\.log"):
            run.exit_code()
        while not (tmp_path / "begun").exists():
            assert run._process.poll() is None, (run.run_dir / "console.log").read_text()
            time.sleep(0.001)  # The run has not begun yet.
        run.close()
        assert run.exit_code() == 0, "it was not killed"
