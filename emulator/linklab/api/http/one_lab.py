"""Holds the one lab of the HTTP API: starts, shows, changes and stops it.

A lab lives in a thread of its own, because its process ends with the thread that started it.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Any, Final, Literal

from linklab.api.errors import UsageError
from linklab.api.live_lab import LabRequest, OpenLab, opened
from linklab.api.progress import Tell
from linklab.core.errors import LinklabError
from linklab.realtime.messages import (
    LabStatus,
    Link,
    RefusedError,
    StartLab,
    command_of,
    lab_of,
    refused,
)

_TICK_S: Final = 0.5

Open = Callable[[LabRequest, Tell, Callable[[], None]], AbstractContextManager[OpenLab]]
"""A function that opens a lab."""


class OneLab:
    """Starts and stops labs, one at a time. `how` is what all labs have in common. Threads may
    share it. Its methods raise RefusedError."""

    def __init__(self, how: LabRequest, open_lab: Open = opened) -> None:
        self._how = how
        self._open = open_lab
        self._guard = threading.Lock()
        self._lab: _LabThread | None = None
        self._is_closed = False

    def start(self, asked: StartLab) -> LabStatus:
        """Starts a lab, and returns it when it is running."""
        wanted = dataclasses.replace(
            self._how,
            scenario=asked.scenario,
            origins=tuple(asked.origins),
            outside=asked.outside,
            seed=asked.seed,
        )
        with self._guard:
            if self._is_closed:
                raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "the server ends")
            if self._lab is not None and self._lab.is_alive():
                raise RefusedError(
                    HTTPStatus.CONFLICT,
                    f"there is a lab already: it is {self._lab.state}",
                    allowed="one lab at a time; DELETE /lab stops it",
                )
            lab = self._lab = _LabThread(wanted, self._open)
            lab.start()
        lab.settled.wait()
        if lab.refusal is not None:
            raise lab.refusal
        return lab.shown()

    def show(self) -> LabStatus:
        """Returns the lab."""
        return self._current().shown()

    def change(self, name: str, change: Any) -> Link:
        """Executes a LinkChange, and returns the link."""
        lab = self._current()
        try:
            lab.open.link(name)
        except UsageError as error:
            raise RefusedError(HTTPStatus.NOT_FOUND, str(error), "name") from None
        command = command_of(name, change)
        try:
            lab.open.send(command)
        except RuntimeError as error:
            lab.running()
            raise refused(HTTPStatus.UNPROCESSABLE_ENTITY, error) from None
        return lab.running().links[name]

    def stop(self) -> None:
        """Stops the lab, and waits for its end."""
        self._current().stop()

    def close(self) -> None:
        """Stops the lab if there is one. Then none can be started."""
        with self._guard:
            self._is_closed = True
            lab = self._lab
        if lab is not None:
            lab.stop()

    def _current(self) -> _LabThread:
        with self._guard:
            lab = self._lab
        if lab is None or not lab.is_alive():
            why = "" if lab is None or lab.ended is None else f": it ended by itself: {lab.ended}"
            raise RefusedError(
                HTTPStatus.NOT_FOUND, f"there is no lab{why}", allowed="POST /lab starts one"
            )
        return lab


class _Stopped(Exception):
    """The lab is stopped while it starts."""


class _LabThread(threading.Thread):
    """Opens a lab and keeps it until it is stopped or ends by itself.

    `settled` is set when it is running or refused. `ended` says why it ended by itself.
    """

    def __init__(self, wanted: LabRequest, open_lab: Open) -> None:
        super().__init__(daemon=True)
        self._wanted = wanted
        self._open = open_lab
        self._stopping = threading.Event()
        self._lab: OpenLab | None = None
        self.settled = threading.Event()
        self.refusal: RefusedError | None = None
        self.ended: str | None = None

    @property
    def state(self) -> Literal["starting", "running", "stopping"]:
        """What the lab is doing."""
        if self._stopping.is_set():
            return "stopping"
        return "starting" if self._lab is None else "running"

    @property
    def open(self) -> OpenLab:
        """The lab. Raises RefusedError unless it is running."""
        if self.state != "running" or self._lab is None:
            raise RefusedError(HTTPStatus.CONFLICT, f"the lab is {self.state}")
        return self._lab

    def shown(self) -> LabStatus:
        """Returns the lab, whatever it is doing."""
        if self.state != "running":
            return LabStatus(self.state, str(self._wanted.scenario), self._wanted.seed)
        return self.running()

    def running(self) -> LabStatus:
        """Returns the lab with its links. Raises RefusedError unless it is running."""
        try:
            status = self.open.status()
        except RuntimeError as error:
            raise RefusedError(HTTPStatus.CONFLICT, str(error)) from None
        return lab_of(status)

    def stop(self) -> None:
        """Stops the lab, and waits for its end."""
        self._stopping.set()
        self.join()

    def run(self) -> None:
        try:
            with self._open(self._wanted, lambda _: self._go_on(), self._go_on) as lab:
                self._lab = lab
                self.settled.set()
                while self.ended is None and not self._stopping.wait(_TICK_S):
                    self.ended = lab.why_ended()
        except _Stopped:
            self.refusal = RefusedError(HTTPStatus.CONFLICT, "the lab was stopped while it started")
        except (LinklabError, OSError) as error:
            is_asked_wrong = isinstance(error, ValueError)
            self.refusal = refused(
                HTTPStatus.UNPROCESSABLE_ENTITY
                if is_asked_wrong
                else HTTPStatus.SERVICE_UNAVAILABLE,
                error,
                _field_of(str(error)) if is_asked_wrong else None,
            )
        finally:
            self.settled.set()

    def _go_on(self) -> None:
        if self._stopping.is_set():
            raise _Stopped


def _field_of(error: str) -> str:
    """Returns the field of StartLab that an error of `opened` is about."""
    return next(
        (
            field
            for word, field in (("--origin", "origins"), ("--outside", "outside"))
            if word in error
        ),
        "scenario",
    )
