"""Tests a worker's run in its process. Whole runs in a guest: tests/campaign_test.py."""

import io
import signal
import sys
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from linklab.campaign import machine, wire_format, work
from linklab.campaign.wire_format import Reply
from linklab.places import choice
from linklab.places.choice import Environment
from linklab.places.guest import kernel
from linklab.runs import runner
from linklab.runs.runner import RunRequest
from linklab.scenario import find


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs fail when they begin, and say with which time limit."""

    def begin(*words: Any) -> None:
        raise RuntimeError(f"begun with {words[-1]} s")

    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(machine, "facts", dict)
    monkeypatch.setattr(choice, "choose", lambda *_: Environment("guest", "virtual", ""))
    monkeypatch.setattr(work, "obstacle", lambda _: None)
    monkeypatch.setattr(kernel, "ensure", lambda: None)
    monkeypatch.setattr(
        runner, "watchdog_s", lambda _, __, limit_s: 120.0 if limit_s is None else limit_s
    )
    monkeypatch.setattr(runner, "prepare", lambda *_, **__: None)
    monkeypatch.setattr(runner, "begin", begin)


def failures(monkeypatch: pytest.MonkeyPatch, *limits_s: float | None) -> list[str | None]:
    """Sends parcels with these time limits. Returns the failures that come back."""
    given, answer = io.BytesIO(), io.BytesIO()
    for limit_s in limits_s:
        parcel = wire_format.wrap(RunRequest(find("static-80-50"), "alg3", 1), limit_s, {})
        wire_format.send(given, msgspec.msgpack.encode(parcel))
    given.seek(0)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=given))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=answer))
    assert work.main() == 0
    answer.seek(0)
    replies = iter(lambda: wire_format.receive(answer), None)
    return [msgspec.msgpack.decode(one, type=Reply).failure for one in replies]


def test_a_run_may_take_as_long_as_asked_for(begun: None, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = failures(monkeypatch, None, 0.0, 7.0)
    assert limits == [f"begun with {limit_s} s" for limit_s in (120.0, 0.0, 7.0)]


def test_a_process_with_older_code_makes_no_run_and_ends(
    begun: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kept process would go on with the modules that it has loaded."""
    now = iter([{"code": "old"}, {"code": "old"}, {"code": "new"}])
    monkeypatch.setattr(machine, "facts", lambda: next(now))
    assert failures(monkeypatch, 1.0, 2.0, 3.0) == ["begun with 1.0 s"]
