"""Tests session.py with runs that need no lab. The whole: tests/live_test.py."""

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from linklab import scenario
from linklab.core.records import FILES, EventRecord, MachineRecord, QueueRecord, line
from linklab.core.records_test import sampled
from linklab.lab.network.services import Origin, Outside
from linklab.lab.player import control
from linklab.lab.player.control import FILE, Command
from linklab.models.events import REFUSED
from linklab.places import choice
from linklab.places.choice import Environment, PlaceError
from linklab.realtime import session as live
from linklab.realtime.recorder import Recorder
from linklab.realtime.session import KEPT_RUNS, LiveLab, choose_place, requests
from linklab.runs import job, runner, summary
from linklab.runs.job_test import JOB
from linklab.runs.reach import Reach
from linklab.runs.run_figures import RunFigures
from linklab.runs.runner import RunError, RunRequest
from linklab.scenario import Scenario

GUEST = Environment("guest", "real", "test")
FIGURES = RunFigures(
    download_s=1.0, goodput_bps=8e6, oracle_s=0.9, efficiency=0.9, link_delta_s=None, links={}
)


class Enough(Exception):
    """Ends a live lab that would go on for ever."""


class FakeRun:
    """A run that is over at once, or never."""

    core = None

    def __init__(self, run_dir: Path, *, ends: bool) -> None:
        self.run_dir = run_dir
        self._reader, self._writer = os.pipe()
        if ends:
            os.write(self._writer, b".")

    def fileno(self) -> int:
        return self._reader

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


class Runs:
    """What a live lab runs: each request, and what happens while it does."""

    def __init__(self) -> None:
        self.begun: list[tuple[str | None, int]] = []
        self.directories: list[Path] = []
        self.during: Callable[[int], None] = lambda _: None
        self.error: str | None = None
        self.ends = True

    def prepare(self, request: RunRequest, run_dir: Path, _: Environment, *, live: bool) -> None:
        job.write(
            msgspec.structs.replace(
                JOB,
                scenario=request.scenario.name,
                client=request.client,
                seed=request.seed,
                clock="real",
                live=live,
            ),
            run_dir,
        )

    def begin(
        self, request: RunRequest, run_dir: Path, _: Environment, timeout_s: float
    ) -> FakeRun:
        assert timeout_s == float("inf")
        self.begun.append((request.client, request.seed))
        self.directories.append(run_dir)
        self.during(len(self.begun))
        return FakeRun(run_dir, ends=self.ends)

    def until_enough(self, lab: LiveLab, parent: Path, during: Callable[[int], None]) -> None:
        self.during = during
        with pytest.raises(Enough):
            lab.run(parent)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Runs()
    monkeypatch.setattr(runner, "prepare", made.prepare)
    monkeypatch.setattr(runner, "begin", made.begin)
    monkeypatch.setattr(runner, "verdict", lambda _: made.error)
    monkeypatch.setattr(summary, "write", lambda _: FIGURES)
    monkeypatch.setattr(live, "PATIENCE_S", 0.0)
    monkeypatch.setattr(live, "TICK_S", 0.01)
    monkeypatch.setattr(control, "ANSWER_S", 0.0)
    return made


@pytest.fixture
def lab(small: Scenario) -> Iterator[LiveLab]:
    made = LiveLab(requests(small, ["alg3", "alg1"], 5, None), GUEST)
    yield made
    made.close()


def stop_at(number: int) -> Callable[[int], None]:
    def stop(begun: int) -> None:
        if begun == number:
            raise Enough

    return stop


def exported(lab: LiveLab) -> dict[str, list[tuple[dict[str, Any], float]]]:
    return {
        metric.name: [(sample.labels, sample.value) for sample in metric.samples]
        for metric in lab.exporter.collect()
    }


def test_algorithms_take_turns_and_share_a_turns_seed(
    lab: LiveLab, runs: Runs, tmp_path: Path
) -> None:
    runs.until_enough(lab, tmp_path, stop_at(5))
    assert all(job.read(run_dir).live for run_dir in runs.directories)
    assert runs.begun == [("alg3", 5), ("alg1", 5), ("alg3", 6), ("alg1", 6), ("alg3", 7)]
    found = exported(lab)
    assert {labels["algorithm"]: value for labels, value in found["linklab_run_failed"]} == {
        "alg3": 0,
        "alg1": 0,
    }
    assert {labels["seed"] for labels, _ in found["linklab_run_download_seconds"]} == {"6"}


def test_what_was_changed_stays_changed(lab: LiveLab, runs: Runs, tmp_path: Path) -> None:
    def change(begun: int) -> None:
        if begun == 1:
            said = lab.obey(Command(link="lte", down_rate_bps=10**7))
            assert said == "lte: down 10 Mbit/s (the lab has not applied it yet)"
            lab.obey(Command(link="wifi", carrier="down", duration_s=1.0))
        if begun == 3:
            raise Enough

    runs.until_enough(lab, tmp_path, change)
    sent = [
        [json.loads(line) for line in (run_dir / FILE).read_text().splitlines()]
        for run_dir in runs.directories
    ]
    standing = {"link": "lte", "down_rate_bps": 10**7}
    passing = {"link": "wifi", "carrier": "down", "duration_s": 1.0}
    assert sent == [[standing, passing], [standing], [standing]]
    assert lab.status()["changed"] == [standing]


def test_a_link_is_restored_and_changed_by_one_command(
    lab: LiveLab, runs: Runs, tmp_path: Path
) -> None:
    def change(begun: int) -> None:
        lab.obey(Command(link="lte", loss_ratio=0.1))
        said = lab.obey(Command(link="lte", restore=True, down_rate_bps=10**7))
        assert said.startswith("lte: down 10 Mbit/s")
        raise Enough

    runs.until_enough(lab, tmp_path, change)
    lines = (runs.directories[0] / FILE).read_text().splitlines()
    changed = {"link": "lte", "down_rate_bps": 10**7}
    assert [json.loads(one) for one in lines[1:]] == [{"link": "lte", "restore": True}, changed]
    assert lab.status()["changed"] == [changed]


@pytest.mark.parametrize(
    ("algorithms", "asked", "begun"),
    [
        (["alg3", "alg1"], None, [("alg3", 5), ("alg3", 6)]),
        (["alg3", "alg1"], Command(next=True), [("alg3", 5), ("alg1", 5)]),
        ([], Command(next=True), [(None, 5), (None, 6)]),
    ],
    ids=["downloads", "next then restore", "next then restore without downloads"],
)
def test_a_lab_is_set_back_by_its_next_run(
    small: Scenario,
    runs: Runs,
    tmp_path: Path,
    algorithms: list[str],
    asked: Command | None,
    begun: list[tuple[str | None, int]],
) -> None:
    made, said = LiveLab(requests(small, algorithms, 5, None), GUEST), list[str]()
    restore = threading.Thread(target=lambda: said.append(made.begin_anew()))

    def change(number: int) -> None:
        if number == 2:
            raise Enough
        made.obey(Command(link="wifi", loss_ratio=0.1))
        if asked is not None:
            made.obey(asked)
        restore.start()
        while made.status()["changed"]:
            time.sleep(0.01)  # The thread has not begun.

    runs.ends, runs.during = False, change
    with pytest.raises(Enough):
        made.run(tmp_path)
    restore.join(timeout=10)
    made.close()
    assert (said, runs.begun, made.status()["changed"]) == ([""], begun, [])
    assert not (runs.directories[1] / FILE).exists()


def test_what_the_lab_refuses_does_not_stay(lab: LiveLab, runs: Runs, tmp_path: Path) -> None:
    def change(begun: int) -> None:
        if begun == 2:
            raise Enough
        wifi_to = [Command(link="wifi", loss_ratio=0.1), Command(link="wifi", rtt_s=0.2)]
        with (runs.directories[-1] / FILES[EventRecord]).open("wb") as events:
            events.write(line(EventRecord(0.1, "wifi", "live", "loss 10 %", 1)))
            events.write(line(EventRecord(0.2, "wifi", REFUSED, "too slow", 2)))
        assert lab.obey(wifi_to[0]) == "wifi: loss 10 %"
        with pytest.raises(ValueError, match="too slow"):
            lab.obey(wifi_to[1])

    runs.until_enough(lab, tmp_path, change)
    assert lab.status()["changed"] == [{"link": "wifi", "loss_ratio": 0.1}]


def test_an_algorithm_is_chosen(lab: LiveLab, runs: Runs, tmp_path: Path) -> None:
    def choose(begun: int) -> None:
        if begun in (1, 2):
            lab.obey(Command(next=True, algorithm="alg3"))
        if begun == 4:
            raise Enough

    runs.during = choose
    with pytest.raises(ValueError, match="'alg9' takes no turn here; allowed: alg3, alg1"):
        lab.obey(Command(next=True, algorithm="alg9"))
    with pytest.raises(Enough):
        lab.run(tmp_path)
    assert runs.begun == [("alg3", 5), ("alg3", 6), ("alg3", 7), ("alg1", 7)]


def test_a_paused_lab_begins_no_run_until_it_goes_on(
    lab: LiveLab, runs: Runs, tmp_path: Path
) -> None:
    def pause(begun: int) -> None:
        if begun == 2:
            raise Enough
        lab.obey(Command(pause=True))

    runs.during = pause
    ended: list[str] = []

    def run() -> None:
        with pytest.raises(Enough):
            lab.run(tmp_path)
        ended.append("enough")

    thread = threading.Thread(target=run)
    thread.start()
    while lab.status()["runs"] == 0:
        time.sleep(0.01)  # The first run is still there.
    time.sleep(0.1)  # A second one would have begun meanwhile.
    assert (lab.status()["paused"], len(runs.begun), ended) == (True, 1, [])
    assert lab.obey(Command(pause=False)) == "downloads go on"
    thread.join(timeout=10)
    assert ended == ["enough"]


@pytest.mark.parametrize("is_paused", [True, False])
def test_a_lab_that_is_stopped_ends(
    lab: LiveLab, runs: Runs, tmp_path: Path, *, is_paused: bool
) -> None:
    """It is between two downloads, or in one that would go on for ever."""
    runs.ends = is_paused
    runs.during = lambda _: (lab.obey(Command(pause=is_paused)), None)[1]
    thread = threading.Thread(target=lab.run, args=(tmp_path,))
    thread.start()
    while not lab.status()["runs"] and (is_paused or not runs.begun):
        time.sleep(0.01)  # The run has not begun yet, or not ended.
    lab.stop()
    thread.join(timeout=10)
    assert (thread.is_alive(), len(runs.begun)) == (False, 1)
    lab.close()
    lab.stop()  # It is closed already.


def test_nothing_is_paused_where_nobody_downloads(small: Scenario) -> None:
    made = LiveLab(requests(small, [], 1, None), GUEST)
    with pytest.raises(ValueError, match="nothing downloads here by itself"):
        made.obey(Command(pause=True))
    made.close()


def test_changed_runs_are_recorded_and_those_with_old_changes_only_are_not(
    small: Scenario, runs: Runs, tmp_path: Path
) -> None:
    made = LiveLab(
        requests(small, ["alg3"], 5, None), GUEST, Recorder(small, tmp_path / "mine.yaml")
    )

    def change(begun: int) -> None:
        if begun in (1, 3):
            made.obey(Command(link="wifi", down_rate_bps=begun * 10**6))
            record = EventRecord(1.3, "wifi", "live", "rate", begun and len(sent(begun)))
            (runs.directories[-1] / FILES[EventRecord]).write_bytes(line(record))
        if begun == 4:
            raise Enough

    def sent(begun: int) -> list[str]:
        return (runs.directories[begun - 1] / FILE).read_text().splitlines()

    runs.until_enough(made, tmp_path / "runs", change)
    made.close()
    assert sorted(one.name for one in tmp_path.glob("*.yaml")) == ["mine-2.yaml", "mine.yaml"]
    found = [scenario.load(tmp_path / one).events for one in ("mine.yaml", "mine-2.yaml")]
    rates = [[(one.at_s, one.down_rate_bps) for one in events] for events in found]
    assert rates == [[(1.3, 1_000_000)], [(1.3, 3_000_000)]]


def test_a_run_that_does_not_end_when_asked_is_broken_off_and_no_failure(
    lab: LiveLab, runs: Runs, tmp_path: Path
) -> None:
    def go_on(begun: int) -> None:
        if begun == 2:
            raise Enough
        lab.obey(Command(next=True))

    runs.ends = False
    runs.until_enough(lab, tmp_path, go_on)
    assert json.loads((runs.directories[0] / FILE).read_text()) == {"next": True}
    assert "linklab_run_failed" not in exported(lab)


def test_a_failed_run_is_said_and_counted_and_the_next_one_begins(
    lab: LiveLab, runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail_once(begun: int) -> None:
        runs.error = "no memory" if begun == 1 else None
        if begun == 3:
            raise Enough

    runs.until_enough(lab, tmp_path, fail_once)
    assert "alg3 failed: no memory" in capsys.readouterr().err
    failed = exported(lab)["linklab_run_failed"]
    assert {labels["algorithm"]: value for labels, value in failed} == {"alg3": 1, "alg1": 0}


def test_a_lab_in_which_nothing_works_ends(lab: LiveLab, runs: Runs, tmp_path: Path) -> None:
    runs.error = "no memory"
    with pytest.raises(RunError, match="every run has failed"):
        lab.run(tmp_path)
    assert len(runs.begun) == 2


def test_old_run_directories_go(lab: LiveLab, runs: Runs, tmp_path: Path) -> None:
    runs.until_enough(lab, tmp_path, stop_at(KEPT_RUNS + 4))
    ended = runs.directories[:-1]
    assert [path.exists() for path in ended] == [False] * 3 + [True] * KEPT_RUNS


def test_it_says_loudly_when_the_machine_cannot_keep_up_and_not_before_a_figure_suffers(
    lab: LiveLab, runs: Runs, small: Scenario, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.prepare(RunRequest(small, "alg3", 5), tmp_path, GUEST, live=True)
    lab.exporter.begin(tmp_path, job.read(tmp_path), small)
    machine = tmp_path / FILES[MachineRecord]
    queues = tmp_path / FILES[QueueRecord]

    def happens(path: Path, record: MachineRecord | QueueRecord) -> str:
        with path.open("ab") as file:
            file.write(line(record))
        lab._warn(0.3)
        return capsys.readouterr().err

    def late(t_s: float, late_s: float) -> str:
        return happens(queues, sampled(t_s, "wifi", 0, late_s=late_s))

    assert late(1.0, 0.1) == ""  # An idle core, and 100 ms of a whole download.
    said = late(2.0, 0.3)
    assert "THIS MACHINE CANNOT KEEP UP: the emulator is late by 300 ms" in said
    assert late(2.5, 0.3) == ""
    assert late(9.0, 0.0) == "linklab: the machine keeps up again\n"
    for t_s, busy_ratio in ((10.0, 1.0), (11.0, 1.0), (12.0, 0.5), (13.0, 1.0), (14.0, 1.0)):
        assert happens(machine, MachineRecord(t_s, busy_ratio)) == ""
    assert "THIS MACHINE CANNOT KEEP UP" in happens(machine, MachineRecord(15.0, 1.0))


def test_the_host_comes_first_and_why_not_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "host_obstacle", lambda: None)
    monkeypatch.setattr(choice, "guest_obstacle", lambda *_: None)
    assert str(choose_place("auto")).startswith("place: host, clock: real")
    assert (choose_place("guest").name, choose_place("guest").clock) == ("guest", "real")
    monkeypatch.setattr(choice, "host_obstacle", lambda: "no netem")
    assert (
        str(choose_place("auto")) == "place: guest, clock: real (live, and no host place: no netem)"
    )
    monkeypatch.setattr(choice, "guest_obstacle", lambda *_: "no kernel")
    with pytest.raises(PlaceError, match="no kernel"):
        choose_place("auto")


def test_the_status_has_the_ways_into_the_lab_and_out_of_it(small: Scenario) -> None:
    origin = Origin("http://10.0.1.1:3000/", "", "10.0.1.1", 3000, ("127.0.0.1", 3000))
    outside = Outside(origins=(origin,), proxies={"": 8080, "wifi": 8081})
    with contextlib.closing(LiveLab(requests(small, [], 1, Reach(outside)), GUEST)) as lab:
        status = lab.status()
    assert status["origins"] == ["http://10.0.1.1:3000/"]
    assert status["proxies"] == {"": "http://127.0.0.1:8080", "wifi": "http://127.0.0.1:8081"}
