"""Tests of by_hand.py: a player obeys commands, and a second one plays what was made of them."""

import math
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab import scenario
from linklab.commands import late_events
from linklab.core import units
from linklab.core.impairments import Impairments
from linklab.core.link_state import DIRECTIONS, LinkState
from linklab.core.records import FILES, EventRecord, QueueRecord, line
from linklab.core.records_test import sampled
from linklab.lab.player import control
from linklab.lab.player.control import Command
from linklab.links import stack
from linklab.models.events import Event
from linklab.realtime.by_hand import Executed, changes_of, events_of, merged, saved, zero_s
from linklab.scenario import Scenario
from linklab.traces.library import TRACES

TEXT = """name: walked
payload: {size: 1 MB}
links:
  wifi: {down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms, jitter: 1 ms}
  lte: {down: 40 Mbit/s, up: 10 Mbit/s, rtt: 40 ms, trace: {file: TRACE}}
events:
  - {at: 1 s, link: wifi, down: 30 Mbit/s, for: 2 s}
  - {after: 500 kB, link: lte, loss: 1 %}
  - {at: 2 s, link: wifi, jitter: 5 ms}
"""


@pytest.fixture(scope="module")
def short_trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The first 20 s of a trace: to scale a whole one takes a tenth of a second."""
    lines = (TRACES / "lte-walking.csv").read_text().splitlines(keepends=True)
    file = tmp_path_factory.mktemp("traces") / "short.csv"
    file.write_text("".join(lines[:200]))
    return str(file)


def walked(trace: str = "lte-walking") -> Scenario:
    return scenario.parse(TEXT.replace("TRACE", trace))


def test_the_changes_of_a_run_are_those_that_were_executed(tmp_path: Path) -> None:
    commands = [
        Command(link="wifi", carrier="down", duration_s=3.0),
        Command(next=True),
        Command(link="wifi", handover="next"),
        Command(link="lte", rtt_s=0.08),
    ]
    for command in commands:
        control.send(tmp_path, command)
    records = [
        EventRecord(0.1, "wifi", "live", "carrier down for 3 s", 1),
        EventRecord(0.1, "wifi", "carrier-down"),
        EventRecord(0.7, "", "next"),
        EventRecord(0.7, "wifi", "refused", "no access points"),
        EventRecord(1.3, "lte", "live", "rtt 80 ms", 4),
        EventRecord(3.1, "wifi", "live-end", "carrier down for 3 s"),
        EventRecord(3.2, "lte", "live", "of a hostile program", 99),
    ]
    (tmp_path / FILES[EventRecord]).write_bytes(b"".join(map(line, records)))
    assert changes_of(tmp_path) == [Executed(0.1, commands[0]), Executed(1.3, commands[3])]
    with (tmp_path / FILES[EventRecord]).open("ab") as file:
        file.write(line(EventRecord(1.0, "", "restored")))
    assert changes_of(tmp_path) == [Executed(0.3, commands[3])]


def test_a_restored_link_ends_its_changes_and_no_others() -> None:
    found = events_of(
        [
            Executed(1.0, Command(link="wifi", down_rate_bps=10**7)),
            Executed(1.0, Command(link="lte", loss_ratio=0.1)),
            Executed(2.0, Command(link="wifi", outage=True, duration_s=0.5)),
            Executed(4.0, Command(link="wifi", rtt_s=0.2)),
            Executed(4.0, Command(link="wifi", restore=True)),
            Executed(6.0, Command(link="wifi", carrier="down")),
        ]
    )
    assert found == [
        Event("wifi", 1.0, duration_s=3.0, down_rate_bps=10**7),
        Event("lte", 1.0, loss_ratio=0.1),
        Event("wifi", 2.0, duration_s=0.5, outage=True),
        Event("wifi", 6.0, carrier="down"),
    ]


def test_what_is_saved_is_a_scenario_with_both_kinds_of_events(tmp_path: Path) -> None:
    changes = [
        Executed(0.1, Command(link="wifi", queue_bytes=20_000)),
        Executed(1.0, Command(link="wifi", down_rate_bps=10**7, duration_s=0.3)),
    ]
    text = saved(walked(), changes, "by-me", "by me", tmp_path)
    file = tmp_path / "by-me.yaml"
    file.write_text(text)
    loaded = scenario.load(file)
    assert (loaded.name, loaded.title, loaded.links) == ("by-me", "by me", walked().links)
    own = walked().events
    assert loaded.events == (own[1], events_of(changes)[0], own[0], events_of(changes)[1], own[2])


def test_a_users_trace_is_found_from_where_the_scenario_is_written(tmp_path: Path) -> None:
    trace = tmp_path / "my.csv"
    trace.write_bytes((TRACES / "lte-walking.csv").read_bytes())
    below = tmp_path / "below"
    below.mkdir()
    (below / "by-me.yaml").write_text(saved(walked(str(trace)), [], "by-me", "", below))
    assert "../my.csv" in (below / "by-me.yaml").read_text()
    assert scenario.load(below / "by-me.yaml").links["lte"].models
    assert str(trace) in saved(walked(str(trace)), [], "by-me", "")


def test_a_name_that_no_scenario_has_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'\.\./me' is no name; allowed: up to 64 of a-z"):
        saved(walked(), [], "../me", "")


LOOKS = st.integers(1, 40).map(lambda number: number * control.PERIOD_S)
COMMANDS = st.one_of(
    st.builds(Command, restore=st.just(True)),
    st.builds(
        Command,
        carrier=st.sampled_from(["up", "down"]),
        duration_s=st.none() | st.floats(0.001, 3.0),
    ),
    st.builds(
        Command,
        down_rate_bps=st.integers(1000, 10**8),
        loss_ratio=st.none() | st.floats(0.0, 0.5),
        duration_s=st.none() | st.floats(0.001, 3.0),
    ),
    st.builds(
        Command, rtt_s=st.floats(0.05, 0.2), jitter_s=st.floats(0.0, 0.02), outage=st.booleans()
    ),
    st.builds(Command, queue_bytes=st.integers(2000, 10**7)),
    st.builds(
        Command,
        impair_up=st.builds(Impairments, loss_ratio=st.floats(0.0, 0.5), bleach_ecn=st.booleans()),
        impair_down=st.builds(Impairments, delay_s=st.floats(0.001, 0.5)),
        duration_s=st.none() | st.floats(0.001, 3.0),
    ),
)


@given(st.lists(st.tuples(LOOKS, COMMANDS), max_size=12))
def test_a_second_lab_has_the_same_states_at_the_same_nanoseconds(
    given_: list[tuple[float, Command]],
) -> None:
    """Live the link is asked at its own times and obeys at the looks; played it has events."""
    base = scenario.parse(TEXT.replace("trace: {file: TRACE}", "loss: 0 %"))
    changes = [
        Executed(at_s, _of_wifi(command))
        for at_s, command in sorted(given_, key=lambda one: one[0])
    ]
    live = stack.models(base, 1)["wifi"]
    shown = {0: live.at(0.0)}
    left = list(changes)
    while left or math.isfinite(live.next_s()):
        due_s = live.next_s()
        if left and left[0].at_s < due_s:
            due_s, command = left[0].at_s, left[0].command
            del left[0]
            if command.restore:
                live.restore()
            else:
                live.change(command.event(), due_s)
        shown[round(due_s * 1e9)] = live.at(due_s)
    made = scenario.parse(saved(base, changes, "by-me", ""))
    assert made.events == merged(base, changes)
    played_model = stack.models(made, 1)["wifi"]
    played = {0: played_model.at(0.0)}
    while math.isfinite(played_model.next_s()):
        due_s = played_model.next_s()
        played[round(due_s * 1e9)] = played_model.at(due_s)
    assert _changes(shown) == _changes(played)


def _of_wifi(command: Command) -> Command:
    return msgspec.structs.replace(command, link="wifi")


def _changes(states: dict[int, LinkState]) -> list[tuple[int, LinkState]]:
    found: list[tuple[int, LinkState]] = []
    for t_ns, state in sorted(states.items()):
        if not found or found[-1][1] != state:
            found.append((t_ns, state))
    return found


def _sampled(run_dir: Path, first_traffic: int) -> None:
    """Writes samples of an idle lab, and of traffic from one sample on."""
    records = [
        sampled(0.5 * number, link, 42 + max(0, number - first_traffic) * 100_000, direction)
        for number in range(1, 300)
        for link in ("wifi", "lte")
        for direction in DIRECTIONS
    ]
    (run_dir / FILES[QueueRecord]).write_bytes(b"".join(map(line, records)))


@pytest.mark.parametrize(("first_traffic", "zero"), [(60, 30.0), (240, 116.5)])
def test_without_a_download_time_0_is_the_first_traffic_or_change(
    tmp_path: Path, first_traffic: int, zero: float
) -> None:
    _sampled(tmp_path, first_traffic)
    changes = [Executed(at_s, Command(link="wifi", loss_ratio=0.1)) for at_s in (116.5, 143.0)]
    assert zero_s(tmp_path, changes) == zero
    made = scenario.parse(saved(walked(), changes, "by-me", "", from_s=zero))
    expected = [round(one - zero, 9) for one in (116.5, 143.0)]
    assert [one.at_s for one in made.events if one.at_s is not None][-2:] == expected


def test_times_are_written_as_people_write_them() -> None:
    changes = [
        Executed(1243 * 0.1, Command(link="wifi", outage=True)),
        Executed(1249 * 0.1, Command(link="wifi", restore=True)),
    ]
    text = saved(walked(), changes, "by-me", "", from_s=3 * 0.1)
    assert "{at: 124 s, link: wifi, for: 600 ms, outage: true}" in text


WORKLOADS = (
    "",
    "workload: {upload: {}}",
    "workload: {page: {}}",
    "workload: {paced: {rate: 1 Mbit/s, every: 2 s}}",
    "workload: {rounds: {answer: 1 kB, request: 1 kB, think: 100 ms}}",
    "workload: {player: {rate: 1 Mbit/s}}",
    "workload: {player: {length: 5 s}}",
)


@given(
    st.lists(st.tuples(st.integers(1, 1200), COMMANDS), min_size=1, max_size=8),
    st.sampled_from(WORKLOADS),
    st.booleans(),
    st.integers(0, 1300),
    st.integers(1, 3),
)
def test_all_that_is_saved_happens_before_the_earliest_end(
    short_trace: str,
    given_: list[tuple[int, Command]],
    workload: str,
    plays: bool,
    looks: int,
    seed: int,
) -> None:
    """The earliest end is the oracle's, which knows nothing of how a payload was chosen."""
    model = f"trace: {{file: {short_trace}}}" if plays else "loss: 0 %"
    text = TEXT.replace("trace: {file: TRACE}", model).replace("name: walked", workload)
    base = scenario.parse(f"name: walked\n{text}")
    changes = [
        Executed(number * control.PERIOD_S, _of_wifi(command))
        for number, command in sorted(given_, key=lambda one: one[0])
    ]
    from_s = looks * control.PERIOD_S
    made = scenario.parse(saved(base, changes, "by-me", "", seed=seed, from_s=from_s))
    own = saved(base, [], "by-me", "", seed=seed, from_s=from_s)
    by_hand = [one for one in made.events if one not in scenario.parse(own).events]
    assert late_events.after(replace(made, events=tuple(by_hand)), late_events.least_s(made)) == []
    for one in made.events:
        if one.at_s is not None:
            assert len(units.format_duration(one.at_s)) <= len("1234.567 ms")


@given(st.lists(st.tuples(LOOKS, COMMANDS), min_size=1, max_size=8), st.integers(0, 45))
def test_a_scenario_that_begins_later_goes_on_as_the_lab_did(
    short_trace: str, given_: list[tuple[float, Command]], looks: int
) -> None:
    base = scenario.parse(TEXT.replace("TRACE", short_trace))
    changes = [
        Executed(at_s, _of_wifi(command))
        for at_s, command in sorted(given_, key=lambda one: one[0])
    ]
    from_s = looks * control.PERIOD_S
    whole = stack.models(scenario.parse(saved(base, changes, "by-me", "")), 1)
    cut = stack.models(scenario.parse(saved(base, changes, "by-me", "", from_s=from_s)), 1)
    for number in range(100):
        t_s = number * 0.05 + 0.0137  # Between the events, since times are rounded.
        for name in base.links:
            assert cut[name].at(t_s) == whole[name].at(t_s + from_s)
