import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from linklab import player
from linklab.lab import Lab
from linklab.linkmodel import Change, LinkState
from linklab.player import Player
from linklab.shaping import GATE_OPEN_S, QueueStatistics

FAST = LinkState(
    up=True, down_rate_bps=80_000_000, up_rate_bps=20_000_000,
    delay_s=0.005, jitter_s=0.0, loss_ratio=0.0,
)  # fmt: skip
PERIOD_S = 0.025


class Queue:
    """A rate queue that notes when its gate was worked, in seconds since it was made."""

    def __init__(self) -> None:
        self.changes = 0
        self.gate_period_s: float | None = None
        self.opened: list[float] = []
        self.closed: list[float] = []
        self._begun = time.monotonic()
        self._count = itertools.count(1)

    def set_period(self, period_s: float | None) -> None:
        self.changes += 1
        self.gate_period_s = period_s

    def open_gate(self) -> None:
        self.opened.append(time.monotonic() - self._begun)

    def close_gate(self) -> None:
        self.closed.append(time.monotonic() - self._begun)

    def statistics(self) -> QueueStatistics:
        return QueueStatistics(next(self._count), 0, 7, 1514, 1)


class Link:
    """A link that passes every state on to `on_apply`."""

    def __init__(self, on_apply: Callable[["Link", LinkState], None]) -> None:
        self.state = FAST
        self.applied: list[LinkState] = []
        self.queues = {"down": Queue(), "up": Queue()}
        lost = QueueStatistics(0, 0, 3, 0, 0)
        self.delays = dict.fromkeys(self.queues, SimpleNamespace(statistics=lambda: lost))
        self._on_apply = on_apply

    def apply(self, state: LinkState) -> None:
        self.applied.append(state)
        self._on_apply(self, state)
        self.state = state


class Stage:
    """A lab of fake links, and the pipe whose reading end stands for the client's process."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.on_apply: Callable[[Link, LinkState], None] = lambda link, state: None
        self.links = {
            name: Link(lambda link, state: self.on_apply(link, state)) for name in ("wifi", "lte")
        }
        self.reader, self._writer = os.pipe()

    def end_client(self) -> None:
        os.write(self._writer, b".")

    def play(self, *changes: tuple[float, str, LinkState]) -> float:
        """Plays until the client ends; returns the seconds that it took."""
        lab = cast(Lab, SimpleNamespace(links=self.links))
        playing = Player(lab, [Change(*change) for change in changes], self.run_dir)
        playing.start()
        try:
            assert playing.play([self.reader]) == [self.reader]
            return playing.now_s()
        finally:
            playing.stop()

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.run_dir / name).read_text().splitlines()]

    def close(self) -> None:
        os.close(self.reader)
        os.close(self._writer)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.close()


def test_changes_are_applied_in_order_and_never_early(stage: Stage) -> None:
    begun = time.monotonic()
    seen: list[tuple[float, int]] = []

    def note(_: Link, state: LinkState) -> None:
        seen.append((time.monotonic() - begun, state.down_rate_bps))
        if len(seen) == 4:
            stage.end_client()

    stage.on_apply = note
    one, two, three, four = (replace(FAST, down_rate_bps=rate) for rate in (1, 2, 3, 4))
    took_s = stage.play(
        (0.04, "wifi", four), (0.02, "lte", two), (0.02, "wifi", three), (0.0, "wifi", one)
    )
    assert [rate for _, rate in seen] == [1, 2, 3, 4]
    dues = (0.0, 0.02, 0.02, 0.04)
    assert all(at >= due for (at, _), due in zip(seen, dues, strict=True))
    assert took_s >= 0.04
    assert stage.links["wifi"].applied == [one, three, four]


def test_every_state_is_written_with_its_time_and_lateness(stage: Stage) -> None:
    down = replace(FAST, up=False)

    def late(_: Link, __: LinkState) -> None:
        time.sleep(0.01)
        stage.end_client()

    stage.on_apply = late
    stage.play((0.01, "wifi", down))
    first, second, third = stage.lines("links.jsonl")
    assert (first["t_s"], first["late_s"], first["link"], first["up"]) == (0, 0, "wifi", True)
    assert (second["link"], second["down_rate_bps"]) == ("lte", 80_000_000)
    assert (third["t_s"], third["link"], third["up"]) == (0.01, "wifi", False)
    assert 0.01 <= third["late_s"] < 5
    assert set(third) == {
        "t_s", "late_s", "link", "up", "down_rate_bps", "up_rate_bps", "delay_s", "jitter_s",
        "loss_ratio",
    }  # fmt: skip


def test_queues_are_sampled_all_the_time_and_at_the_end(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(player, "SAMPLE_PERIOD_S", 0.01)
    stage.on_apply = lambda link, state: stage.end_client()
    took_s = stage.play((0.045, "wifi", FAST))
    lines = stage.lines("queues.jsonl")
    assert len(lines) == 5 * 4  # At 10, 20, 30 and 40 ms and at the end; two links, two directions
    wifi_down = lines[::4]
    assert [line["sent_bytes"] for line in wifi_down] == [1, 2, 3, 4, 5]
    assert all(line["t_s"] >= 0.01 * n for n, line in enumerate(wifi_down[:4], 1))
    assert wifi_down[4]["t_s"] >= took_s
    assert {(line["link"], line["direction"]) for line in lines[:4]} == {
        ("wifi", "down"), ("wifi", "up"), ("lte", "down"), ("lte", "up"),
    }  # fmt: skip
    assert (wifi_down[0]["queue_bytes"], wifi_down[0]["dropped_packets"]) == (1514, 7)
    assert wifi_down[0]["lost_packets"] == 3


def gated(stage: Stage, *changes: tuple[float, str, LinkState]) -> Queue:
    """The Wi-Fi downlink's queue after 110 ms in which a change at 0 s made it very slow."""
    queue = stage.links["wifi"].queues["down"]

    def on_apply(_: Link, state: LinkState) -> None:
        if state.down_rate_bps == 1:
            queue.set_period(PERIOD_S)
        elif state.down_rate_bps == 2:
            queue.set_period(None)
        elif state.down_rate_bps == 3:
            stage.end_client()

    stage.on_apply = on_apply
    slow = replace(FAST, down_rate_bps=1)
    end = replace(slow, down_rate_bps=3)
    stage.play((0.0, "wifi", slow), *changes, (0.115, "lte", end))
    return queue


def test_a_gate_opens_once_in_every_period_and_closes_again(stage: Stage) -> None:
    queue = gated(stage)
    assert len(queue.opened) == len(queue.closed) == 4  # At 25, 50, 75 and 100 ms
    for number, (opened, closed) in enumerate(zip(queue.opened, queue.closed, strict=True), 1):
        assert opened >= number * PERIOD_S
        assert closed >= number * PERIOD_S + GATE_OPEN_S
    assert stage.links["wifi"].queues["up"].opened == []
    assert stage.links["lte"].queues["down"].opened == []


def test_a_change_of_something_else_does_not_open_the_gate_more_often(stage: Stage) -> None:
    lossy = replace(FAST, down_rate_bps=0, loss_ratio=0.01)
    queue = gated(stage, (0.03, "wifi", lossy), (0.06, "wifi", lossy))
    assert len(queue.opened) == 4


@pytest.mark.parametrize(("at_s", "closed"), [(0.055, 1), (0.065, 2)])
def test_a_gate_rests_once_the_rate_is_up_again(stage: Stage, at_s: float, closed: int) -> None:
    """Whether it was open then, which the change of rate itself sees to, or closed."""
    queue = gated(stage, (at_s, "wifi", replace(FAST, down_rate_bps=2)))
    assert (len(queue.opened), len(queue.closed)) == (2, closed)


def test_a_link_that_is_slow_from_the_start_has_its_gate_worked(stage: Stage) -> None:
    queue = stage.links["lte"].queues["up"]
    queue.gate_period_s = PERIOD_S
    stage.on_apply = lambda link, state: stage.end_client()
    stage.play((0.06, "wifi", FAST))
    assert len(queue.opened) == 2


def test_only_what_is_readable_is_returned(stage: Stage) -> None:
    idle, writer = os.pipe()
    lab = cast(Lab, SimpleNamespace(links=stage.links))
    playing = Player(lab, [], stage.run_dir)
    try:
        playing.start()
        stage.end_client()
        assert playing.play([idle, stage.reader]) == [stage.reader]
    finally:
        playing.stop()
        os.close(idle)
        os.close(writer)


def test_nothing_stays_open(stage: Stage) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = descriptors()
    stage.end_client()
    stage.play()
    assert descriptors() == before
