from dataclasses import dataclass

import pytest

from linklab import scenario
from linklab.queues import registry
from linklab.queues.discipline import Discipline
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
)


@pytest.fixture(autouse=True)
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A discipline with a key beside the one that there is."""
    monkeypatch.setitem(registry._BY_NAME, "delayed", DELAYED)
    monkeypatch.setitem(registry._OF_SETTINGS, Delayed, DELAYED)


def parsed(discipline: str) -> Scenario:
    chosen = f", queue_discipline: {discipline}" if discipline else ""
    return scenario.parse(
        f"name: a\npayload: {{size: 1 B}}\nlinks:\n  wifi: {{{LINK}{chosen}}}\n", "a.yaml"
    )


@pytest.mark.parametrize(
    ("text", "settings", "written"),
    [
        ("", DropTail(), None),
        ("drop-tail", DropTail(), None),
        ("{drop-tail: {}}", DropTail(), None),
        ("delayed", Delayed(), "queue_discipline: delayed"),
        ("{delayed: {}}", Delayed(), "queue_discipline: delayed"),
        ("{delayed: {target: 20 ms}}", Delayed(0.02), "target: 20 ms"),
    ],
)
def test_a_link_chooses_a_discipline(text: str, settings: object, written: str | None) -> None:
    read = parsed(text)
    assert read.links["wifi"].queue_discipline == settings
    canonical = to_yaml(read)
    assert ("queue_discipline" in canonical) is (written is not None)
    assert (written or "") in canonical
    assert scenario.parse(canonical, "again.yaml") == read


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("fifo", "a.yaml:4: links.wifi.queue_discipline: unknown value 'fifo'; allowed: drop-tail"),
        ("{fifo: {}}", "a.yaml:4: links.wifi.queue_discipline: unknown key 'fifo'"),
        ("{}", "a.yaml:4: links.wifi.queue_discipline: 0 disciplines; needed: one of drop-tail"),
        ("{drop-tail: {}, delayed: {}}", "a.yaml:4: links.wifi.queue_discipline: 2 disciplines"),
        ("[drop-tail]", "a.yaml:4: links.wifi.queue_discipline: must be a single value"),
        (
            "{delayed: {target: 0 s}}",
            "a.yaml:4: links.wifi.queue_discipline.delayed.target: '0 s' is out of range",
        ),
    ],
)
def test_what_is_no_discipline_is_refused(text: str, error: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parsed(text)
    assert str(refused.value).startswith(error)
