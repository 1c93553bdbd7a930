from dataclasses import dataclass

import pytest

from linklab import scenario
from linklab.queues import registry
from linklab.queues.discipline import AnyDiscipline, Discipline
from linklab.queues.drop_tail import DropTail
from linklab.scenario import Scenario, ScenarioError, to_yaml
from linklab.schema.quantities import duration
from linklab.schema.rows import Row, Table

LINK = "down: 80 Mbit/s, up: 20 Mbit/s, rtt: 10 ms"


@dataclass(frozen=True)
class Delayed:
    """A discipline with a key."""

    target_s: float = 0.005


DELAYED = Discipline(
    "delayed",
    "delayed",
    Table(Delayed, (Row("target", "target_s", duration(0.001, 1.0), "what it aims at"),)),
    options=lambda settings, queue_bytes: b"",
    default_bytes=7_000_000,
)


@pytest.fixture(autouse=True)
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A discipline with a key beside the one that there is."""
    monkeypatch.setitem(registry._BY_NAME, "delayed", DELAYED)
    monkeypatch.setitem(registry._OF_SETTINGS, Delayed, DELAYED)


def parsed(queue: str) -> Scenario:
    return scenario.parse(
        f"name: a\npayload: {{size: 1 B}}\nlinks:\n  wifi: {{{LINK}, {queue}}}\n", "a.yaml"
    )


@pytest.mark.parametrize(
    ("text", "settings", "written"),
    [
        ("", DropTail(), "queue_down: 4 MB"),
        ("queue: 3 MB", DropTail(), "queue: 3 MB"),
        ("queue: {discipline: drop-tail}", DropTail(), "queue_down: 4 MB"),
        ("queue: delayed", Delayed(), "discipline: delayed"),
        ("queue: {discipline: delayed}", Delayed(), "discipline: delayed"),
        ("queue: {discipline: delayed, target: 20 ms}", Delayed(0.02), "target: 20 ms"),
    ],
)
def test_a_link_chooses_a_discipline(text: str, settings: object, written: str) -> None:
    read = parsed(text)
    assert read.links["wifi"].discipline_down == settings
    assert read.links["wifi"].discipline_up == settings
    canonical = to_yaml(read)
    assert written in canonical
    assert scenario.parse(canonical, "again.yaml") == read


@pytest.mark.parametrize(
    ("text", "down", "up"),
    [
        ("", (4_000_000, DropTail()), (1_000_000, DropTail())),
        ("queue: {discipline: delayed}", (7_000_000, Delayed()), (7_000_000, Delayed())),
        (
            "queue: {discipline: delayed, size: 9 MB}, queue_up: 2 MB",
            (9_000_000, Delayed()),
            (2_000_000, DropTail()),
        ),
        (
            "queue_down: {discipline: drop-tail, size: 1 MB}, queue_up: {discipline: delayed}",
            (1_000_000, DropTail()),
            (7_000_000, Delayed()),
        ),
    ],
)
def test_each_direction_has_its_queue(
    text: str, down: tuple[int, object], up: tuple[int, object]
) -> None:
    read = parsed(text)
    link = read.links["wifi"]
    assert (link.queue_down_bytes, link.discipline_down) == down
    assert (link.queue_up_bytes, link.discipline_up) == up
    assert scenario.parse(to_yaml(read), "again.yaml") == read


@pytest.mark.parametrize("one", registry.DISCIPLINES, ids=lambda one: one.name)
def test_every_discipline_is_written_as_it_is_read(one: AnyDiscipline) -> None:
    read = parsed(f"queue: {{discipline: {one.name}}}")
    assert read.links["wifi"].discipline_down == one.facing(one.table.settings(), "down")
    assert scenario.parse(to_yaml(read), "again.yaml") == read


@pytest.mark.parametrize(
    ("text", "down", "up"),
    [
        ("queue: cake", "dual-dsthost", "dual-srchost"),
        ("queue: {discipline: cake, isolation: flows}", "flows", "flows"),
        ("queue: {discipline: cake, isolation: flows}, queue_up: cake", "flows", "dual-srchost"),
    ],
)
def test_cake_shares_each_direction_between_the_hosts_at_home(
    text: str, down: str, up: str
) -> None:
    link = parsed(text).links["wifi"]
    assert (link.discipline_down.isolation, link.discipline_up.isolation) == (down, up)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("fifo", "queue: unknown value 'fifo'; allowed: a size such as '250 kB', or one of "),
        ("cakes", "queue: unknown value 'cakes' (did you mean 'cake'?); allowed: "),
        ("9", "queue: '9' has no unit; allowed: a size such as '250 MB'"),
        ("{discipline: fifo}", "queue.discipline: unknown value 'fifo'; allowed: drop-tail, "),
        ("{size: 1 MB}", "queue: 'discipline' is missing; needed: discipline; optional: size, "),
        ("{discipline: drop-tail, target: 1 ms}", "queue: …allowed: discipline, size"),
        ("[drop-tail]", "queue: must be a single value"),
        ("{discipline: drop-tail, size: 1 B}", "queue.size: …allowed: 1514 B"),
        ("{discipline: delayed, target: 0 s}", "queue.target: '0 s' is out of range"),
        ("{discipline: codel, interval: 1 min}", "queue.interval: '1 min' is out of range"),
        ("{discipline: fq_codel, flows: 0}", "queue.flows: …allowed: 1 to 65536"),
        ("{discipline: pie, ecn: maybe}", "queue.ecn: 'maybe' is neither; allowed: true, false"),
        ("{discipline: red, min: 9 kB, max: 4 kB}", "queue.min: 9 kB is not less than the max of"),
        ("{discipline: red, min: 9 kB}", "queue.min: goes with a max, which is missing"),
        ("{discipline: dualpi2, alpha: 3}", "queue.alpha: …allowed: a number"),
    ],
)
def test_what_is_no_discipline_is_refused(text: str, error: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parsed(f"queue: {text}")
    place, _, allowed = error.partition("…")
    assert str(refused.value).startswith(f"a.yaml:4: links.wifi.{place}")
    assert allowed in str(refused.value)
