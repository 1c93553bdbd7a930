import itertools
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import UNSET

from linklab.core.impairments import Impairments
from linklab.core.link_state import Direction, LinkState
from linklab.lab.kernel.rtnetlink import Interface
from linklab.lab.network.hosts import LabError
from linklab.lab.network.lab import Lab
from linklab.lab.player import control, player
from linklab.lab.player.control import Command, Inbox
from linklab.lab.player.player import Player
from linklab.lab.shaping.tc import Counters, ShapingError
from linklab.links.stack import ScenarioLink
from linklab.models.events import Event, Events
from linklab.models.layer import NO_LOAD, Layer, Load, Steps

FAST = LinkState(
    up=True,
    down_rate_bps=80_000_000,
    up_rate_bps=20_000_000,
    delay_s=0.005,
    jitter_s=0.0,
    loss_ratio=0.0,
)


class Link:
    """A link that passes every state on to `on_apply`, and counts how often it was read."""

    def __init__(self, device: str, on_apply: Callable[["Link", LinkState], None]) -> None:
        self.state = FAST
        self.shaper = "hfsc"
        self.followed: list[tuple[int, LinkState]] = []
        self.applied: list[LinkState] = []
        self.path = SimpleNamespace(device=device, client_network="10.1.0.0/24", families=(4,))
        self.reads = 0
        self.own: dict[str, int] = {}
        self.waits: dict[str, list[list[int]] | None] = {"down": None, "up": None}
        self._count = itertools.count(1)
        self._on_apply = on_apply

    def apply(self, state: LinkState) -> None:
        self.applied.append(state)
        self._on_apply(self, state)
        self.state = state

    def follow(self, states: list[tuple[int, LinkState]]) -> None:
        self.followed += states

    def counters(self) -> dict[Direction, tuple[Counters, int]]:
        read = Counters(next(self._count), 0, 7, 1514, 1)
        return {"down": (read, 3), "up": (read, 0)}

    def own_counters(self, direction: str) -> dict[str, int]:
        return self.own

    def sojourns(self, direction: str) -> list[list[int]] | None:
        return self.waits[direction]

    def queue_counters(self, direction: str) -> Counters:
        self.reads += 1
        return Counters(1000 * self.reads, self.reads, 0, 5000 if direction == "down" else 60, 1)


class Stage:
    """A lab of fake links, and the pipe whose reading end stands for the client's process."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.on_apply: Callable[[Link, LinkState], None] = lambda link, state: None
        self.links = {
            name: Link(device, lambda link, state: self.on_apply(link, state))
            for name, device in (("wifi", "wlan0"), ("lte", "rmnet0"))
        }
        self.client_interface = lambda device: Interface(1, 6, 9, 9)
        self.reader, self._writer = os.pipe()

    def end_client(self) -> None:
        os.write(self._writer, b".")

    def player(self, *events: Event, layers: dict[str, Layer] | None = None, **more: Any) -> Player:
        """A player of events, and of a further layer for each link that has one."""
        client = SimpleNamespace(pid=os.getpid(), interface=self.client_interface)
        lab = SimpleNamespace(links=self.links, client=client, families=(4,))
        own = layers or {}
        models = {
            name: ScenarioLink(
                FAST,
                [own[name]] if name in own else [],
                Events(event for event in events if event.link == name),
            )
            for name in self.links
        }
        for model in models.values():
            model.at(0.0)
        return Player(cast(Lab, lab), models, self.run_dir, **more)

    def play(self, *events: Event, **more: Any) -> float:
        """Plays until the client ends; returns the seconds that it took."""
        playing = self.player(*events, **more)
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
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """On a machine that may be as late as it wants."""
    monkeypatch.setattr(player, "MAX_LATE_S", 60.0)
    made = Stage(tmp_path)
    yield made
    made.close()


def rate(link: str, at_s: float, down_rate_bps: int) -> Event:
    return Event(link, at_s, down_rate_bps=down_rate_bps)


def test_changes_are_applied_in_order_and_never_early(stage: Stage) -> None:
    begun = time.monotonic()
    seen: list[tuple[float, int]] = []

    def note(_: Link, state: LinkState) -> None:
        seen.append((time.monotonic() - begun, state.down_rate_bps))
        if len(seen) == 3:
            stage.end_client()

    stage.on_apply = note
    took_s = stage.play(rate("wifi", 0.04, 4000), rate("lte", 0.02, 2000), rate("wifi", 0.03, 3000))
    assert [rate for _, rate in seen] == [2000, 3000, 4000]
    assert all(at >= due for (at, _), due in zip(seen, (0.02, 0.03, 0.04), strict=True))
    assert took_s >= 0.04
    assert [state.down_rate_bps for state in stage.links["wifi"].applied] == [3000, 4000]


def test_the_kernel_gets_rates_that_are_known_ahead(stage: Stage) -> None:
    """Only the end of a rate's table, or what is more than a rate, wakes the player."""
    wifi = stage.links["wifi"]
    wifi.shaper = "link"
    stage.on_apply = lambda link, state: stage.end_client()
    changes = [rate("wifi", 0.01 * step, 1_000_000 + step) for step in range(1, 4)]
    playing = stage.player(*changes, Event("wifi", 0.04, carrier="down"), rate("wifi", 0.5, 5))
    playing.start()
    planned = [(at_ns - playing.start_ns, state.down_rate_bps) for at_ns, state in wifi.followed]
    rates = [(10_000_000 * step, 1_000_000 + step) for step in range(1, 4)]
    assert planned == [*rates, (40_000_000, 1_000_003)]
    assert wifi.state == FAST
    playing.play([stage.reader])
    playing.stop()
    assert [state.up for state in wifi.applied] == [False]
    written = [line for line in stage.lines("links.jsonl") if line["link"] == "wifi"]
    assert [(line["t_s"], line["down_rate_bps"]) for line in written] == [
        (0.0, 80_000_000),
        *((at_ns / 1e9, rate_bps) for at_ns, rate_bps in planned),
    ]
    assert [line["late_s"] for line in written[:4]] == [0.0] * 4


def test_the_last_frames_of_the_client_are_let_out(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    playing = stage.player()
    playing.start()
    waiting = iter([2, 1])

    def counted(direction: str) -> Counters:
        assert direction == "up"
        return Counters(0, 0, 0, 0, next(waiting, 0))

    for link in stage.links.values():
        monkeypatch.setattr(link, "queue_counters", counted)
    began_s = playing.now_s()
    playing.let_out()
    assert playing.now_s() - began_s >= 0.002
    assert next(waiting, 0) == 0
    playing.stop()


def test_every_state_is_written_with_its_time_and_lateness(stage: Stage) -> None:
    def late(_: Link, __: LinkState) -> None:
        time.sleep(0.01)  # The player gets late.
        stage.end_client()

    stage.on_apply = late
    stage.play(Event("wifi", 0.01, carrier="down"))
    first, second, third = stage.lines("links.jsonl")
    assert (first["t_s"], first["late_s"], first["link"], first["up"]) == (0, 0, "wifi", True)
    assert (second["link"], second["down_rate_bps"]) == ("lte", 80_000_000)
    assert (third["t_s"], third["link"], third["up"]) == (0.01, "wifi", False)
    assert 0.01 <= third["late_s"] < 60
    unset = {one.name for one in fields(LinkState) if one.default is UNSET}
    assert set(third) == {"t_s", "late_s", "link", *LinkState.__slots__} - unset
    assert stage.lines("events.jsonl") == [
        {"t_s": 0.01, "link": "wifi", "kind": "carrier-down", "detail": ""}
    ]


def test_a_change_that_comes_too_late_is_an_error_unless_allowed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(player, "MAX_LATE_S", 0.005)

    def late(_: Link, __: LinkState) -> None:
        time.sleep(0.01)  # The player gets late.
        stage.end_client()

    stage.on_apply = late
    with pytest.raises(LabError, match=r"cannot keep up: wifi changed \d+\.\d+ s late at 0.010 s"):
        stage.play(rate("wifi", 0.01, 4000))
    stage.play(rate("lte", 0.01, 4000), may_be_late=True)


def test_queues_are_sampled_all_the_time_and_at_the_end(stage: Stage) -> None:
    stage.on_apply = lambda link, state: stage.end_client()
    stage.links["lte"].own = {"marked_packets": 2}
    took_s = stage.play(rate("wifi", 0.045, 4000), sample_s=0.01)
    lines = stage.lines("queues.jsonl")
    assert len(lines) == 5 * 4  # At 10, 20, 30 and 40 ms and at the end; two links, two directions
    wifi_down = lines[::4]
    assert [line["sent_bytes"] for line in wifi_down] == [1, 2, 3, 4, 5]
    assert all(line["t_s"] >= 0.01 * n for n, line in enumerate(wifi_down[:4], 1))
    assert wifi_down[4]["t_s"] >= took_s
    assert {(line["link"], line["direction"]) for line in lines[:4]} == {
        ("wifi", "down"),
        ("wifi", "up"),
        ("lte", "down"),
        ("lte", "up"),
    }
    assert (wifi_down[0]["queue_bytes"], wifi_down[0]["dropped_packets"]) == (1514, 7)
    assert wifi_down[0]["lost_packets"] == 3
    assert [line.get("discipline") for line in lines[:3]] == [None, None, {"marked_packets": 2}]
    assert not (stage.run_dir / "sojourns.jsonl").exists()  # Nothing counted them.


def test_how_long_packets_waited_is_written_at_the_end(stage: Stage) -> None:
    stage.links["lte"].waits["down"] = [[0, 3, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0]]
    stage.on_apply = lambda link, state: stage.end_client()
    took_s = stage.play(rate("wifi", 0.01, 4000))
    (line,) = stage.lines("sojourns.jsonl")
    assert line.pop("t_s") >= took_s
    assert line == {
        "link": "lte",
        "direction": "down",
        "scalable": False,
        "buckets": [0, 3, 0, 1],
    }


def test_who_waits_for_what_never_comes_is_not_waited_for(stage: Stage) -> None:
    for link in stage.links.values():
        link.counters = lambda: {"down": (Counters(9, 0, 0, 0, 0), 0)}  # type: ignore[method-assign]
    with pytest.raises(LabError, match=r"^no link has carried anything for 0 s: the client waits"):
        stage.play(sample_s=0.01, patience_s=0.045)
    assert (
        len(stage.lines("queues.jsonl")) == 2 * 7
    )  # At 10 ms it had carried something, and at the end


def test_the_packets_of_other_hosts_do_not_keep_a_client_waiting(stage: Stage) -> None:
    with pytest.raises(LabError, match="the client waits"):
        stage.play(sample_s=0.01, patience_s=0.045, is_shared=True)
    sent = itertools.count()
    stage.client_interface = lambda device: Interface(1, 6, 9, next(sent))
    stage.on_apply = lambda link, state: stage.end_client()
    took_s = stage.play(rate("wifi", 0.1, 4000), sample_s=0.01, patience_s=0.02, is_shared=True)
    assert took_s > 0.1


def test_while_something_passes_nobody_is_hurried(stage: Stage) -> None:
    stage.on_apply = lambda link, state: stage.end_client()
    assert stage.play(rate("wifi", 0.1, 4000), sample_s=0.01, patience_s=0.02) > 0.1


def test_others_are_called_at_whole_multiples_of_their_period(stage: Stage) -> None:
    looks: list[float] = []

    def look(now_s: float) -> None:
        looks.append(now_s)
        if len(looks) == 4:
            stage.end_client()

    playing = stage.player()
    playing.start()
    playing.play_until(0.025)  # A client that starts later.
    playing.every(0.02, look)
    assert playing.play([stage.reader]) == [stage.reader]
    playing.stop()
    numbers = [int(now_s / 0.02) for now_s in looks]
    assert numbers[0] >= 2
    assert numbers == sorted(set(numbers))


class Watching:
    """A layer that wants to be asked every 10 ms and keeps the loads it is told."""

    wants_connections = False

    def __init__(self, *, wants_load: bool) -> None:
        self.wants_load = wants_load
        self.loads: list[Load] = []
        self._steps = Steps(0.01)
        self._now_s = 0.0

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        self.loads.append(load)
        self._now_s = t_s
        return replace(state, down_rate_bps=1000 + len(self.loads))

    def next_s(self) -> float:
        return self._steps.after(self._now_s)


def test_a_model_is_told_what_its_link_carried_if_it_wants_to_know(stage: Stage) -> None:
    curious, blind = Watching(wants_load=True), Watching(wants_load=False)
    stage.on_apply = lambda link, state: stage.end_client() if len(link.applied) == 3 else None
    stage.play(layers={"wifi": curious, "lte": blind})
    told = curious.loads[1:4]
    assert [load.down_bytes for load in told] == [1000, 3000, 5000]
    assert [load.up_bytes for load in told] == [2000, 4000, 6000]
    assert (told[0].down_backlog_bytes, told[0].up_backlog_bytes) == (5000, 60)
    assert all(load == NO_LOAD for load in blind.loads)
    assert stage.links["lte"].reads == 0


def test_payload_is_counted_over_all_links_where_an_event_waits_for_it(stage: Stage) -> None:
    event = Event("wifi", after_bytes=3000, down_rate_bps=4000)
    stage.on_apply = lambda link, state: stage.end_client()
    stage.play(event, counts_payload=True)
    (state,) = stage.links["wifi"].applied
    assert state.down_rate_bps == 4000
    # Down 1000 and up 2000 on Wi-Fi, 1000 on LTE: 2000 so far at the first look.
    assert stage.lines("links.jsonl")[-1]["t_s"] == pytest.approx(0.04)


def test_commands_are_obeyed_and_written_down(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "PERIOD_S", 0.01)
    asked: list[bool] = []
    for command in (
        Command(next=True),
        Command(link="nfc", carrier="down"),
        Command(link="lte", handover="next"),
        Command(link="wifi", carrier="down"),
    ):
        control.send(stage.run_dir, command)
    stage.on_apply = lambda link, state: stage.end_client()
    stage.play(inbox=Inbox(stage.run_dir), on_next=lambda: asked.append(True))
    assert asked == [True]
    assert [state.up for state in stage.links["wifi"].applied] == [False]
    assert [
        (line["link"], line["kind"], line["detail"]) for line in stage.lines("events.jsonl")
    ] == [
        ("", "next", ""),
        ("", "refused", "no link is 'nfc'"),
        ("lte", "refused", "no access points: a handover needs a scenario with a radio"),
        ("wifi", "live", "carrier down"),
        ("wifi", "carrier-down", ""),
    ]


def test_the_end_of_what_somebody_did_is_written_down_and_not_that_of_the_scenarios_events(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "PERIOD_S", 0.01)
    control.send(stage.run_dir, Command(link="wifi", rtt_s=0.05, duration_s=0.02))
    control.send(stage.run_dir, Command(link="lte", loss_ratio=0.5))

    def apply(link: Link, _: LinkState) -> None:
        if len(link.applied) == 2:
            stage.end_client()

    stage.on_apply = apply
    stage.play(Event("lte", at_s=0.0, duration_s=0.005, rtt_s=0.1), inbox=Inbox(stage.run_dir))
    said = [(one["link"], one["kind"], one["detail"]) for one in stage.lines("events.jsonl")]
    assert [one for one in said if one[1].startswith("live")] == [
        ("wifi", "live", "rtt 50 ms for 20 ms"),
        ("lte", "live", "loss 50 %"),
        ("wifi", "live-end", "rtt 50 ms for 20 ms"),
    ]


def test_a_change_that_the_kernel_lacks_is_refused_and_the_lab_goes_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "PERIOD_S", 0.01)
    control.send(stage.run_dir, Command(link="wifi", impair_up=Impairments(bleach_ecn=True)))
    control.send(stage.run_dir, Command(link="wifi", rtt_s=0.05))

    def apply(_: Link, state: LinkState) -> None:
        if state.impairments("up").bleach_ecn:
            raise ShapingError("this kernel lacks header filters")
        if state.delay_s == 0.025:
            stage.end_client()

    stage.on_apply = apply
    stage.play(inbox=Inbox(stage.run_dir))
    assert stage.links["wifi"].applied[1:] == [FAST, replace(FAST, delay_s=0.025)]
    said = [(one["kind"], one["detail"]) for one in stage.lines("events.jsonl")]
    assert said[0] == ("refused", "this kernel lacks header filters")
    assert [one for one in said if one[0].startswith("live")] == [("live", "rtt 50 ms")]


def test_what_the_kernel_lacks_of_the_scenario_ends_the_lab(stage: Stage) -> None:
    def apply(_: Link, state: LinkState) -> None:
        raise ShapingError("this kernel lacks header filters")

    stage.on_apply = apply
    with pytest.raises(ShapingError):
        stage.play(Event("wifi", at_s=0.01, impair_up=Impairments(bleach_ecn=True)))


def test_a_restored_link_is_as_the_scenario_says_and_no_other_link_is(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "PERIOD_S", 0.01)
    for command in (
        Command(link="wifi", down_rate_bps=5_000_000),
        Command(link="lte", rtt_s=0.5),
        Command(link="wifi", carrier="down", duration_s=60.0),
        Command(link="wifi", restore=True),
    ):
        control.send(stage.run_dir, command)

    def apply(_: Link, state: LinkState) -> None:
        if len(stage.links["wifi"].applied) == 4:
            stage.end_client()

    stage.on_apply = apply
    own = Event("wifi", at_s=0.005, down_rate_bps=7_000_000)
    stage.play(own, inbox=Inbox(stage.run_dir))
    assert stage.links["wifi"].state == replace(FAST, down_rate_bps=7_000_000)
    assert stage.links["lte"].state.delay_s == 0.25
    said = stage.lines("events.jsonl")
    assert [(one["command"], one["detail"]) for one in said if one["kind"] == "live"] == [
        (1, "down 5 Mbit/s"),
        (2, "rtt 500 ms"),
        (3, "carrier down for 60 s"),
        (4, "as the scenario says"),
    ]
    ended = [(one["link"], one["detail"]) for one in said if one["kind"] == "live-end"]
    assert ended == [("wifi", "down 5 Mbit/s"), ("wifi", "carrier down for 60 s")]


def test_nothing_stays_open(stage: Stage) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    class Nosy(Watching):
        wants_connections = True

        def next_s(self) -> float:
            return math.inf

    before = descriptors()
    stage.end_client()
    stage.play(layers={"wifi": Nosy(wants_load=True)})
    assert descriptors() == before
