"""Runs `live`: a lab in real time that the user can watch and change.

A live lab either downloads repeatedly, or is there for other programs. It is a sequence of ordinary
runs, one algorithm after the other, each with its own run directory. Each run starts the scenario
from its beginning. The user's changes stay for later runs until they are changed again. A live lab
without downloads is a single endless run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import select
import shutil
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from linklab.core import plain_file, units
from linklab.core.error_report import report_error
from linklab.core.records import FILES, MachineRecord, RecordError, line
from linklab.lab.network.services import Outside
from linklab.lab.player import control
from linklab.lab.player.control import Command
from linklab.places import choice
from linklab.places.choice import Environment
from linklab.realtime import by_hand, way_outside
from linklab.realtime.core_load import CoreLoad
from linklab.realtime.exporter import Exporter
from linklab.realtime.link_command import feasible, in_words, lasting
from linklab.realtime.recorder import Recorder, title_of
from linklab.runs import job, runner, summary
from linklab.runs.reach import Reach
from linklab.runs.run_figures import FigureError, RunFigures
from linklab.runs.runner import RunRequest
from linklab.scenario import Scenario

TICK_S = 1.0

KEPT_RUNS = 20
"""The number of run directories that a live lab keeps; older ones are removed."""

PATIENCE_S = 5.0
"""The time for a run to end before the next one begins, and the pause after a failure."""


_SLEEP = ("sleep", "infinity")


def requests(
    scenario: Scenario, algorithms: Sequence[str], seed: int, reach: Reach | None
) -> list[RunRequest]:
    """Returns the runs of a turn: one for each algorithm, or one without a download. Raises
    RunError if an algorithm does not fit."""
    if not algorithms:
        return [RunRequest(scenario, None, seed, command=_SLEEP, name=job.NOBODY, reach=reach)]
    return [RunRequest(scenario, name, seed, reach=reach) for name in algorithms]


def choose_place(wanted: str) -> Environment:
    """Chooses the host if possible, since it is faster, else the guest; always the real clock.

    Raises PlaceError if neither is available.
    """
    if wanted != "auto":
        return choice.choose(wanted, "real")
    obstacle = choice.host_obstacle()
    if obstacle is None:
        return Environment("host", "real", "live, and the host has netem")
    guest = choice.choose("guest", "real")
    return Environment(guest.name, guest.clock, f"live, and no host place: {obstacle}")


class LiveLab:
    """Repeats the runs of a `turn` of one scenario until the user interrupts.

    Each turn has the next seeds.
    """

    def __init__(
        self, turn: Sequence[RunRequest], where: Environment, recorder: Recorder | None = None
    ) -> None:
        self.exporter = Exporter()
        self._scenario = turn[0].scenario
        self.turn = turn
        self._where = where
        self._lock = threading.Lock()
        self._standing: dict[str, Command] = {}
        self._running: tuple[RunRequest, Path] | None = None
        self._kept: deque[Path] = deque()
        self._runs = 0
        self._place_in_turns = 0
        self._recorder = recorder
        self._is_changed = False
        self._changed_run: tuple[RunRequest, Path] | None = None
        self._paused = False
        self._resumed = threading.Condition(self._lock)
        self._next_asked_at: float | None = None
        self._behind = False
        self._is_ready = False
        self._stopping = threading.Event()
        self._reader, self._waker = socket.socketpair()

    def close(self) -> None:
        self._reader.close()
        self._waker.close()

    def stop(self) -> None:
        """Has `run` end soon. A lab that is closed already stays so."""
        self._stopping.set()
        with self._lock, contextlib.suppress(OSError):
            self._resumed.notify_all()
            self._waker.send(b".")

    def status(self) -> dict[str, Any]:
        """Returns the lab's status, for people and programs."""
        with self._lock:
            running = self._running
            changed = [msgspec.to_builtins(one) for one in self._standing.values()]
        reach = self.turn[0].reach
        outside = Outside() if reach is None else reach.outside
        now = self.exporter.now()
        # The proxies accept connections before they answer.
        self._is_ready = self._is_ready or bool(
            now and now["links"] and way_outside.answers(outside)
        )
        return {
            "ready": self._is_ready,
            "scenario": self._scenario.name,
            "algorithms": [one.client for one in self.turn if one.client],
            "running": running[0].client_name if running else None,
            "run_dir": str(running[1]) if running else None,
            "seed": (running[0] if running else self.turn[0]).seed,
            "runs": self._runs,
            "place": self._where.name,
            "clock": self._where.clock,
            "paused": self._paused,
            "changed": changed,
            "proxies": way_outside.urls(outside),
            "origins": [one.url for one in outside.origins],
            "lateness_s": self.exporter.lateness_s,
            "now": now,
        }

    def obey(self, command: Command) -> str:
        """Changes the lab now. Lasting changes also hold for later runs.

        Raises ValueError if the scenario's links cannot do it.
        """
        sent: tuple[Path, int] | None = None
        with self._lock:
            before = self._standing.get(command.link)
            standing = before
            parts = [
                feasible(self._scenario, one, None if command.restore else before)
                for one in command.parts()
            ]
            command = parts[-1]
            if command.pause is not None:
                self._pause(is_wanted=command.pause)
            elif command.next:
                self._go_on_to(command.algorithm)
                command = Command(next=True, algorithm=command.algorithm)
            else:
                for one in parts:
                    standing = lasting(standing, one)
                self._stand(command.link, standing)
                self._is_changed = True
                self._changed_run = self._running or self._changed_run
            if self._running is not None and command.pause is None:
                run_dir = self._running[1]
                for one in parts:
                    sent = run_dir, control.send(run_dir, one)
        if sent is None or command.next:
            return in_words(command)
        try:
            record = control.wait_until_executed(*sent)
            return in_words(command, is_executed=record is not None)
        except ValueError:
            with self._lock:
                if self._standing.get(command.link) is standing:
                    self._stand(command.link, before)
            raise

    def begin_anew(self) -> str:
        """Sets the lab back to the scenario's start. Returns what goes on as it was, in words, or "".

        A run that ends meanwhile does not obey. The next one begins at the scenario's start by itself.
        So a lab that downloads by itself goes on to a new run of the same algorithm.

        Raises ValueError if this lab cannot do it, TimeoutError if it did not do it soon.
        """
        with self._lock:
            if self._running is None and not self.turn[0].client:
                raise ValueError("this lab has not begun yet; allowed: a running lab")
            self._standing.clear()
            if self._running is None:
                return ""
            request, run_dir = self._running
            if request.client and self._next_asked_at is None:
                self._go_on_to(request.client)
            command = Command(next=True) if request.client else Command(restore=True)
            number = control.send(run_dir, command)

        def goes_on() -> bool:
            return self._running is not None and self._running[1] == run_dir

        record = control.wait_until_executed(run_dir, number, control.ANEW_S, goes_on)
        if record is None and not goes_on():
            return ""
        if record is None:
            raise TimeoutError(f"the lab was not set back within {control.ANEW_S:.0f} s")
        return record.detail

    def _stand(self, link: str, command: Command | None) -> None:
        """Sets what later runs of a link begin with."""
        self._standing.pop(link, None)
        if command is not None:
            self._standing[link] = command

    def saved(self, name: str, begins: str) -> str:
        """Writes a scenario of the last run in which a user changed a link.

        `begins` is its time 0 in the run; "" is the client's start or, without a client, the first
        traffic or change. Raises ValueError.
        """
        with self._lock:
            changed = self._changed_run
        done = [] if changed is None else by_hand.changes_of(changed[1])
        if changed is None or not done:
            raise ValueError("no link was changed by hand yet: there is nothing to save")
        request = changed[0]
        title = title_of(self._scenario, request.client_name, request.seed)
        if begins:
            from_s = units.parse_duration(begins)
        else:
            from_s = 0.0 if request.client else by_hand.zero_s(changed[1], done)
        return by_hand.saved(self._scenario, done, name, title, seed=request.seed, from_s=from_s)

    def _pause(self, *, is_wanted: bool) -> None:
        if not self.turn[0].client:
            raise ValueError("nothing downloads here by itself: there is nothing to pause")
        self._paused = is_wanted
        self._resumed.notify_all()

    def _go_on_to(self, algorithm: str | None) -> None:
        """Has the running download end for the next one. Raises ValueError, as `_choose`."""
        self._choose(algorithm)
        self._next_asked_at = time.monotonic()
        self._waker.send(b".")

    def _choose(self, algorithm: str | None) -> None:
        """Has the runs go on with an algorithm. Raises ValueError if it takes no turn."""
        if algorithm is None:
            return
        names = [one.client for one in self.turn]
        if algorithm not in names:
            raise ValueError(
                f"{algorithm!r} takes no turn here; allowed: {', '.join(filter(None, names))}"
            )
        ahead = (names.index(algorithm) - self._place_in_turns) % len(names)
        self._place_in_turns += ahead

    def run(self, directory: Path) -> None:
        """Runs until `stop` or an exception such as KeyboardInterrupt, with run directories below
        `directory`.

        Raises RunError if every run fails.
        """
        failures = 0
        while True:
            with self._lock:
                while self._paused and not self._stopping.is_set():
                    self._resumed.wait(TICK_S)
                if self._stopping.is_set():
                    return
                turns, which = divmod(self._place_in_turns, len(self.turn))
                self._place_in_turns += 1
            request = self.turn[which]
            error = self._one(dataclasses.replace(request, seed=request.seed + turns), directory)
            self._runs += 1
            if error is not None:
                failures += 1
                report_error(f"{request.client_name} failed: {error}")
                if failures == self._runs >= max(2, len(self.turn)):
                    raise runner.RunError("every run has failed: there is nothing to watch")
                self._stopping.wait(PATIENCE_S)

    def begin(self, request: RunRequest, directory: Path) -> Path:
        """Prepares a run below `directory`, which later commands are about. Returns its directory."""
        run_dir = runner.new_directory(directory, request.label)
        runner.prepare(request, run_dir, self._where, live=True)
        with self._lock:
            for command in self._standing.values():
                control.send(run_dir, command)
            self._running = (request, run_dir)
            self._next_asked_at = None
            self._is_changed = False
        self.exporter.begin(run_dir, job.read(run_dir), self._scenario)
        return run_dir

    def _one(self, request: RunRequest, directory: Path) -> str | None:
        """Executes one run, and returns why it failed, or None."""
        run_dir = self.begin(request, directory)
        began = time.monotonic()
        doing = "downloading…" if request.client else "the links are there for others"
        print(f"{request.client_name}: {doing}", file=sys.stderr)
        with (
            contextlib.ExitStack() as stack,
            contextlib.closing(
                runner.begin(request, run_dir, self._where, float("inf"))
            ) as running,
        ):
            stack.callback(self._record, request, run_dir)  # Also where the user interrupts.
            broken_off = self._watch(running, functools.partial(self._record, request, run_dir))
            error = None if broken_off else runner.verdict(running)
        with self._lock:
            self._running = None
            broken_off = broken_off or self._next_asked_at is not None
        figures, error = (None, None) if broken_off else _figures(run_dir, error)
        if broken_off:
            self.exporter.forget()
            print(f"{request.client_name}: broken off", file=sys.stderr)
        else:
            self.exporter.end(figures)
        if figures is not None:
            print(
                f"{request.client_name}: {figures.download_s:.2f} s"
                f"{figures.goodput_text}{figures.efficiency_text}, "
                f"next after {time.monotonic() - began - figures.download_s:.1f} s",
                file=sys.stderr,
            )
        self._kept.append(run_dir)
        if len(self._kept) > KEPT_RUNS:
            shutil.rmtree(self._kept.popleft(), ignore_errors=True)
        return error

    def _record(self, request: RunRequest, run_dir: Path) -> None:
        """Writes down what was changed by hand in this run, if that is wanted."""
        if self._recorder is None or not self._is_changed:
            return
        try:
            self._recorder.update(run_dir, request.client_name, request.seed)
        except OSError as error:
            report_error(f"--record: {error}")

    def _watch(self, running: runner.Running, record: Callable[[], None]) -> bool:
        """Waits for the run's end. Returns True if it had to be stopped for the next one."""
        load = CoreLoad(running.core)
        with plain_file.appending(running.run_dir / FILES[MachineRecord]) as machine:
            while True:
                ready, _, _ = select.select([running, self._reader], [], [], TICK_S)
                if running in ready:
                    return False
                if self._reader in ready:
                    self._reader.recv(4096)
                if self._stopping.is_set():
                    return True
                asked_at = self._next_asked_at
                if asked_at is not None and time.monotonic() - asked_at > PATIENCE_S:
                    return True
                try:
                    busy = MachineRecord(self.exporter.now_s, load.ratio())
                    machine.write(line(busy))
                    self._warn(busy.busy_ratio)
                except RecordError as error:
                    report_error(error)
                record()

    def _warn(self, busy_ratio: float) -> None:
        """Warns when the machine cannot keep up, and tells when it can again."""
        behind = not self.exporter.keeps_up
        if behind and not self._behind:
            print(
                f"linklab: THIS MACHINE CANNOT KEEP UP: the emulator is late by "
                f"{self.exporter.lateness_s * 1e3:.0f} ms, its core is {units.percent(busy_ratio)} busy. The links are not "
                "what the scenario says; take lower rates, or the virtual clock (linklab compare)",
                file=sys.stderr,
            )
        elif self._behind and not behind:
            print("linklab: the machine keeps up again", file=sys.stderr)
        self._behind = behind


def _figures(run_dir: Path, error: str | None) -> tuple[RunFigures | None, str | None]:
    if error is not None:
        return None, error
    try:
        return summary.write(run_dir), None
    except (FigureError, OSError) as problem:
        return None, str(problem)
