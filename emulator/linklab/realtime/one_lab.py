"""Holds the one lab of a server: opens, runs, shows, changes and stops it.

Labs run in the main thread, which signals interrupt. Requests come in others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec

from linklab.core.error_report import report_error
from linklab.lab.player.control import Command
from linklab.realtime import link_command
from linklab.realtime.link_command import UnknownLinkError
from linklab.realtime.messages import (
    Done,
    LabStatus,
    RefusedError,
    StartLab,
    command_of,
    lab_of,
    refused,
)
from linklab.realtime.session import LiveLab

START_S: Final = 120.0
"""The time for a lab to start, on a machine that is busy."""

_POLL_S: Final = 0.05
_TICK_S: Final = 0.5

Opened = tuple[LiveLab, Path]
"""An open lab, and the directory of its runs."""

Open = Callable[[StartLab, Callable[[], None]], AbstractContextManager[Opened]]
"""A function that opens a lab. It calls its second argument all the time. What that raises ends it."""


class _Stopped(Exception):
    """The lab is stopped while it starts."""


class _Life:
    """The life of a lab, from being asked for to its end.

    `settled` is set when it is open or refused. `ended` says why it ended by itself.
    """

    def __init__(self, asked: StartLab) -> None:
        self.asked = asked
        self.lab: LiveLab | None = None
        self.refusal: RefusedError | None = None
        self.ended: str | None = None
        self.settled, self.over = threading.Event(), threading.Event()
        self._stopping = threading.Event()

    def live(self, open_lab: Open, begun: Callable[[LiveLab, Path], None]) -> None:
        """Opens the lab, and runs it until it is stopped or ends by itself. Raises what ended it."""
        try:
            with open_lab(self.asked, self._go_on) as (lab, directory):
                self.lab = lab
                self._go_on()
                begun(lab, directory)
                self.settled.set()
                lab.run(directory)
        except Exception as error:
            if self.settled.is_set():
                self.ended = str(error)
            elif self.is_stopping:  # By _Stopped, or by the wait that ended at last.
                return
            else:
                self.refusal = _refusal(error)
            raise
        finally:
            self.over.set()
            self.settled.set()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def await_start(self) -> LabStatus:
        """Returns the lab when it is running. Raises RefusedError if it ends before."""
        self.settled.wait()
        deadline = time.monotonic() + START_S
        while not self.over.wait(_POLL_S):
            shown = self.shown()
            if shown.state == "running":
                return shown
            if time.monotonic() > deadline:
                self.stop()
                self.refusal = RefusedError(
                    HTTPStatus.SERVICE_UNAVAILABLE, f"the lab did not start within {START_S:.0f} s"
                )
        if self.refusal is None and self.is_stopping:
            raise RefusedError(HTTPStatus.CONFLICT, "the lab was stopped while it started")
        raise self.refusal or RefusedError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"the lab did not start: {self.ended or 'the server ends'}",
        )

    def shown(self) -> LabStatus:
        """Returns the lab, whatever it is doing."""
        lab = self.lab
        if lab is None or self.is_stopping:
            state: Any = "stopping" if self.is_stopping else "starting"
            return LabStatus(state, self.asked.scenario, self.asked.seed)
        return lab_of(lab.status())

    def stop(self) -> None:
        """Stops the lab, and waits for its end."""
        self._stopping.set()  # Before the look at `lab`: `live` does both in the other order.
        if self.lab is not None:
            self.lab.stop()
        self.over.wait()

    def _go_on(self) -> None:
        if self.is_stopping:
            raise _Stopped


class OneLab:
    """The lab of a server: there is one at a time, and perhaps a first one. Threads may share it."""

    def __init__(self, first: StartLab | None = None) -> None:
        self._guard = threading.Condition()
        self._first = self._life = None if first is None else _Life(first)
        self._lasts = False

    @classmethod
    def of(cls, lab: LiveLab) -> OneLab:
        """Returns a lab that is open already, and lasts as long as its server."""
        made = cls()
        made._lasts = True
        made._life = _Life(StartLab(""))
        made._life.lab = lab
        return made

    def run(self, open_lab: Open, begun: Callable[[LiveLab, Path], None] = lambda *_: None) -> None:
        """Runs the labs that are asked for, until an exception such as KeyboardInterrupt.

        `begun` is called when the first lab is open. Raises what ends the first lab.
        """
        while True:
            with self._guard:
                # Python does not see a signal that comes just before a wait until the wait ends.
                self._guard.wait_for(self._is_wanted, _TICK_S)
                life = self._life
            if life is None or life.over.is_set():
                continue
            try:
                life.live(open_lab, begun if life is self._first else lambda *_: None)
            except Exception as error:
                if life is self._first:
                    raise
                report_error(f"the lab ended: {error}")  # Requests get it, too.

    def _is_wanted(self) -> bool:
        return self._life is not None and not self._life.over.is_set()

    def start(self, asked: StartLab) -> LabStatus:
        """Starts a lab, and returns it when it is running. Raises RefusedError."""
        with self._guard:
            if self._life is not None and self._is_wanted():
                raise RefusedError(
                    HTTPStatus.CONFLICT,
                    f"there is a lab already: it is {self._life.shown().state}",
                    allowed="one lab at a time; DELETE /lab stops it",
                )
            life = self._life = _Life(asked)
            self._guard.notify_all()
        return life.await_start()

    def show(self) -> LabStatus:
        """Returns the lab. Raises RefusedError without one."""
        return self._current().shown()

    def stop(self) -> None:
        """Stops the lab, and waits for its end. Raises RefusedError if that cannot be."""
        life = self._current()
        if self._lasts:
            raise RefusedError(HTTPStatus.CONFLICT, "the lab ends with its shell")
        life.stop()

    @property
    def lab(self) -> LiveLab:
        """The open lab. Raises RefusedError without one."""
        life = self._current()
        if life.lab is None or life.is_stopping:
            raise RefusedError(HTTPStatus.CONFLICT, f"the lab is {life.shown().state}")
        return life.lab

    def change(self, link: str, change: Any) -> dict[str, Any]:
        """Executes a LinkChange. Returns the link, and the change in words. Raises RefusedError."""
        lab = self.lab
        done = _done(lab, command_of(link, change))
        links = lab_of(lab.status()).links
        return {**msgspec.to_builtins(links.get(link, {})), "done": done}

    def change_whole(self, command: Command) -> Done:
        """Executes a command to the whole lab. Raises RefusedError."""
        lab = self.lab
        if not command.begins_anew:
            return Done(_done(lab, command))
        try:
            stays = lab.begin_anew()
        except ValueError as error:
            raise refused(HTTPStatus.UNPROCESSABLE_ENTITY, error, link_command.RESTORE) from None
        except TimeoutError as error:
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None
        return Done("the lab is as at the scenario's start", stays.split(", ") if stays else [])

    def _current(self) -> _Life:
        life = self._life
        if life is None or life.over.is_set():
            why = (
                "" if life is None or life.ended is None else f": it ended by itself: {life.ended}"
            )
            raise RefusedError(
                HTTPStatus.NOT_FOUND, f"there is no lab{why}", allowed="POST /lab starts one"
            )
        return life


def _done(lab: LiveLab, command: Command) -> str:
    try:
        return lab.obey(command)
    except UnknownLinkError as error:
        raise refused(HTTPStatus.NOT_FOUND, error) from None
    except ValueError as error:
        raise refused(HTTPStatus.UNPROCESSABLE_ENTITY, error) from None


def _refusal(error: Exception) -> RefusedError:
    """Returns why there can be no such lab."""
    if isinstance(error, ValueError):
        fields = (("--origin", "origins"), ("--outside", "outside"))
        field = next((name for word, name in fields if word in str(error)), "scenario")
        return refused(HTTPStatus.UNPROCESSABLE_ENTITY, error, field)
    return refused(HTTPStatus.SERVICE_UNAVAILABLE, error)
