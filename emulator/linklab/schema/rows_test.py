"""Tests that a row is read, written, refused and documented as it states."""

from dataclasses import dataclass

import pytest

from linklab.schema import document
from linklab.schema.document import ScenarioError
from linklab.schema.mapping import Mapping
from linklab.schema.quantities import BOOLEAN, WORDS, count, duration
from linklab.schema.rows import Inner, Listed, Row, Table


@dataclass(frozen=True)
class Clock:
    period_s: float = 2.0
    loud: bool = False


@dataclass(frozen=True)
class Room:
    number: int
    clock: Clock
    name: str | None = None
    doors: tuple[Clock, ...] = ()


def _check(mapping: Mapping, room: Room) -> None:
    if room.number == len(room.doors):
        mapping.fail("number", "is that of its doors")


def _check_doors(mapping: Mapping, doors: list[tuple[Mapping, Clock]]) -> None:
    for item, door in doors:
        if door.loud:
            item.fail("loud", "is what no door is")


CLOCK = Table(
    Clock,
    (
        Row("period", "period_s", duration(1.0, 10.0), "how long it takes"),
        Row("loud", "loud", BOOLEAN, "whether it ticks", unset=False),
    ),
)
ROOM = Table(
    Room,
    (
        Row("name", "name", WORDS, "what it is called", unset=None),
        Row("number", "number", count(1, 9), "where it is", needed=True),
        Inner("clock", CLOCK),
        Row("doors", "doors", Listed(CLOCK, _check_doors), "ways out", default="none"),
    ),
    _check,
)


def read(text: str) -> Room:
    return ROOM.of(Mapping("x.yaml", document.compose(text, "x.yaml", "number"), "", ROOM.keys))


def test_what_is_left_out_is_the_settings_default() -> None:
    assert read("number: 3") == Room(3, Clock())


def test_an_inner_table_shares_the_mapping_and_a_list_has_one_per_entry() -> None:
    room = read("{number: 3, name: hall, period: 5 s, doors: [{period: 1 s}, {}]}")
    assert room == Room(3, Clock(5.0), "hall", (Clock(1.0), Clock(2.0)))
    assert ROOM.write(room) == {
        "name": "hall",
        "number": "3",
        "period": "5 s",
        "doors": [{"period": "1 s"}, {"period": "2 s"}],
    }


def test_what_is_unset_or_unwanted_is_not_written() -> None:
    assert ROOM.write(Room(3, Clock(loud=True)), {"doors"}) == {
        "number": "3",
        "period": "2 s",
        "loud": True,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: hall", "x.yaml:1: 'number' is missing; needed: number; optional: name, period, "),
        ("number: 10", "x.yaml:1: number: '10' is out of range; allowed: 1 to 9"),
        ("number: 3\nperiod: 11 s", "x.yaml:2: period: '11 s' is out of range; allowed: 1 s"),
        ("number: 1\ndoors: [{}]", "x.yaml:1: number: is that of its doors"),
        ("number: 2\ndoors:\n- {}\n- {loud: true}", "x.yaml:4: doors[1].loud: is what no door is"),
    ],
)
def test_refusals_have_line_and_key(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(text)
    assert str(caught.value).startswith(said)


def test_defaults_in_words() -> None:
    assert {row.key: ROOM.default(row) for row in ROOM.flat} == {
        "name": "",
        "number": "",
        "period": "2 s",
        "loud": "",
        "doors": "none",
    }
