"""Tests that the run directory's page lists the fields of its main files."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from linklab.core.records import (
    BurstRecord,
    LinkRecord,
    QueueRecord,
    RoundTripRecord,
    SojournRecord,
    TrafficRecord,
)
from linklab.runs.queue_figures import QueueFigures
from linklab.runs.run_figures import LinkFigures, RunFigures
from linklab.runs.shares import ClientFigures, ShareFigures
from linklab.runs.traffic_figures import TrafficFigures

PAGE = Path(__file__).parents[2] / "handbook" / "reference" / "run-directory.md"


def fields(kind: Any) -> list[str]:
    if dataclasses.is_dataclass(kind):
        return [one.name for one in dataclasses.fields(kind)]
    return [one.encode_name for one in msgspec.structs.fields(kind)]


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        ("## Fields of summary.json\n", RunFigures),
        ("| field of a link | meaning |\n", LinkFigures),
        ("## Fields of links.jsonl\n", LinkRecord),
        ("| field of a queue | meaning |\n", QueueFigures),
        ("## Fields of queues.jsonl\n", QueueRecord),
        ("## Fields of sojourns.jsonl\n", SojournRecord),
        ("## Fields of bursts.jsonl\n", BurstRecord),
        ("## Fields of round-trips.jsonl\n", RoundTripRecord),
        ("| field of a client | meaning |\n", ClientFigures),
        ("| field of a share | meaning |\n", ShareFigures),
        ("| field of a flow | meaning |\n", TrafficFigures),
        ("## Fields of traffic.jsonl\n", TrafficRecord),
    ],
)
def test_a_table_has_the_fields_of_the_type(before: str, kind: Any) -> None:
    rest = PAGE.read_text().partition(before)[2]
    table = re.search(r"(?:^\|.*\n)+", rest, re.M)
    assert table
    rows = [line.split("|")[1] for line in table[0].splitlines()]
    assert re.findall(r"`(\w+)`", "".join(rows)) == fields(kind)
