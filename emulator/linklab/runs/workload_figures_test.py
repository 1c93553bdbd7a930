import json
from typing import Any

import msgspec
import pytest

from linklab.runs.applications import APPLICATIONS
from linklab.runs.run_figures import FigureError
from linklab.runs.workload_figures import FIGURES, WorkloadSummary, checked, in_words, of_workload

PLAYED = {"startup_s": 1.5, "interruptions": 2, "interrupted_s": 3.25, "playback_s": 44.0}


def summary(**changes: Any) -> bytes:
    content = {
        "workload": "player",
        "outcome": "complete",
        "duration_ns": 10,
        "bytes": 1000,
        "figures": PLAYED,
        "further": 1,
    }
    return json.dumps({**content, **changes}).encode()


def parsed(content: bytes) -> WorkloadSummary:
    return msgspec.json.decode(content, type=WorkloadSummary)


def test_the_figures_of_a_player() -> None:
    assert checked(parsed(summary()), "player", 1000) == PLAYED
    assert in_words("interruptions", 2.0) == "interruptions of playing: 2"
    assert FIGURES["late"].text(2.5) == "2.5"
    assert FIGURES["late"].text(1_234_567) == "1234567"
    assert in_words("startup_s", 1.5) == "time until playing begins: 1.500 s"


def test_every_workload_has_figures() -> None:
    assert {one.workload for one in FIGURES.values()} == set(APPLICATIONS)
    assert of_workload("file") == {}
    for key, one in FIGURES.items():
        assert key.endswith("_s") == (one.unit == "s")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"outcome": "failed", "error": "silence"}, "the player is failed: silence"),
        ({"outcome": "failed"}, "no reason given"),
        ({"workload": "page"}, "the workload was page instead of player"),
        ({"bytes": 999}, "999 bytes arrived instead of 1000"),
        ({"figures": {"interruptions": 1}}, "workload.json has no startup_s, interrupted_s"),
        ({"figures": None}, "workload.json has no startup_s, interruptions"),
    ],
)
def test_what_yields_no_figures(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(FigureError, match=why):
        checked(parsed(summary(**changes)), "player", 1000)
