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


@pytest.mark.parametrize(("asked_s", "limit_s"), [(None, 120.0), (0.0, 0.0), (7.0, 7.0)])
def test_a_run_may_take_as_long_as_asked_for(
    monkeypatch: pytest.MonkeyPatch, asked_s: float | None, limit_s: float
) -> None:
    def begin(*words: Any) -> None:
        raise RuntimeError(f"begun with {words[-1]} s")

    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(machine, "facts", dict)
    monkeypatch.setattr(choice, "choose", lambda *_: Environment("guest", "virtual", ""))
    monkeypatch.setattr(work, "obstacle", lambda _: None)
    monkeypatch.setattr(kernel, "ensure", lambda: None)
    monkeypatch.setattr(runner, "watchdog_s", lambda *_: 120.0)
    monkeypatch.setattr(runner, "prepare", lambda *_: None)
    monkeypatch.setattr(runner, "begin", begin)
    parcel = wire_format.wrap(RunRequest(find("static-80-50"), "alg3", 1), asked_s, {})
    answer = io.BytesIO()
    given = io.BytesIO(msgspec.msgpack.encode(parcel))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=given))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=answer))
    assert work.main() == 0
    reply = msgspec.msgpack.decode(answer.getvalue(), type=Reply)
    assert reply.failure == f"begun with {limit_s} s"
