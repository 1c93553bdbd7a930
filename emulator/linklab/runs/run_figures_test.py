import json
from typing import Any

import msgspec
import pytest

from linklab import scenario
from linklab.links import oracle
from linklab.runs import run_figures
from linklab.runs.run_figures import ClientSummary, FigureError, LinkFigures
from linklab.scenario import Scenario


@pytest.fixture(scope="module")
def hs() -> Scenario:
    return scenario.find("hs-s7")


def client(**changes: Any) -> bytes:
    document: dict[str, Any] = {
        "algorithm": "alg3",
        "size_bytes": 250_000_000,
        "outcome": "complete",
        "download_ns": 16_000_000_000,
        "links": {
            "lte": {
                "bytes": 100_000_000,
                "finish_ns": 15_500_000_000,
                "requests": 90,
                "rtt_min_ns": 50_000_000,
                "wasted_bytes": 0,
            },
            "wifi": {
                "bytes": 150_000_000,
                "finish_ns": 16_000_000_000,
                "requests": 120,
                "rtt_min_ns": 15_000_000,
                "wasted_bytes": 7,
            },
        },
    }
    return json.dumps(document | changes).encode()


def parsed(content: bytes) -> ClientSummary:
    return msgspec.json.decode(content, type=ClientSummary)


def test_figures_of_one_run(hs: Scenario) -> None:
    figures = run_figures.figures(hs, 1, parsed(client()))
    assert figures.download_s == 16.0
    assert figures.goodput_bps == 125e6
    assert figures.oracle_s == oracle.oracle_s(hs)
    assert figures.efficiency == pytest.approx(oracle.oracle_s(hs) / 16.0)
    assert figures.link_delta_s == 0.5
    assert list(figures.links) == ["wifi", "lte"]
    assert figures.links["wifi"] == LinkFigures(150_000_000, 0.6, 16.0, 0.015, 7, 120)


def test_what_an_earlier_call_brought_is_no_goodput_of_this_one(hs: Scenario) -> None:
    resumed = parsed(client(resumed_bytes=200_000_000))
    figures = run_figures.figures(hs, 1, resumed)
    assert (figures.goodput_bps, figures.efficiency) == (25e6, None)
    assert figures.carried_bytes == 50_000_000


def test_the_oracle_of_a_slow_run_looks_as_far_as_the_run(hs: Scenario) -> None:
    slow = scenario.parse(
        "name: slow\npayload: {size: 10 MB}\nlinks:\n"
        "  wifi: {down: 20 kbit/s, up: 20 kbit/s, rtt: 10 ms, on_off: {rate: 19 kbit/s}}\n"
    )
    figures = run_figures.peer_figures(slow, 1, 4363.0, {"wifi": 10_500_000})
    assert figures.oracle_s is not None
    assert figures.efficiency is not None
    assert 0.9 < figures.efficiency < 1
    over_at_once = run_figures.peer_figures(slow, 1, 5.0, {"wifi": 9_000}, is_whole=False)
    assert (over_at_once.oracle_s, over_at_once.efficiency) == (None, None)


def test_a_single_link_has_no_delta(hs: Scenario) -> None:
    document = json.loads(client())
    del document["links"]["lte"]
    figures = run_figures.figures(hs, 1, parsed(json.dumps(document).encode()))
    assert figures.link_delta_s is None
    assert figures.links["wifi"].share == 1.0


def test_a_link_that_received_nothing_has_no_finish(hs: Scenario) -> None:
    document = json.loads(client())
    document["links"]["lte"] |= {"bytes": 0, "finish_ns": 0, "rtt_min_ns": 0}
    figures = run_figures.figures(hs, 1, parsed(json.dumps(document).encode()))
    assert figures.link_delta_s is None
    assert figures.links["lte"].finish_s is None
    assert figures.links["lte"].rtt_min_s is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outcome": "failed", "error": "reset"}, "the download is failed: reset"),
        ({"outcome": "interrupted"}, "interrupted: no reason given"),
        ({"size_bytes": 5}, "5 bytes downloaded instead of 250000000"),
        ({"sha256": "0" * 64}, "SHA-256 is 0000"),
        ({"download_ns": 0}, "a download of 0.0 s"),
    ],
)
def test_a_run_without_figures_says_why(
    hs: Scenario, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(FigureError, match=message):
        run_figures.figures(hs, 1, parsed(client(**changes)))


def test_keys_of_later_versions_are_ignored() -> None:
    assert parsed(client(failovers=2)).algorithm == "alg3"


def test_figures_of_a_peer(hs: Scenario) -> None:
    figures = run_figures.peer_figures(hs, 1, 20.0, {"lte": 104, "wifi": 156})
    assert figures.goodput_bps == 100e6
    assert figures.link_delta_s is None
    assert figures.links["wifi"] == LinkFigures(bytes=150_000_000, share=0.6)
    with pytest.raises(FigureError, match="no link received anything"):
        run_figures.peer_figures(hs, 1, 20.0, {"lte": 0})


def test_link_delta_is_between_the_first_end_and_the_last() -> None:
    assert run_figures.link_delta_s([13.25, None, 18.5, 14.0]) == 5.25
    assert run_figures.link_delta_s([13.19, None]) is None


def test_links_of_a_run_outside_the_lab_come_last(hs: Scenario) -> None:
    figures = run_figures.peer_figures(hs, 1, 20.0, {"usb": 50, "wifi": 50})
    assert list(figures.links) == ["wifi", "usb"]


@pytest.mark.parametrize(
    ("name", "is_told"),
    [
        ("hs-s7+greenbag-40s", False),
        ("hs-s7+messages", False),
        ("hs-s7+music", False),
        ("hs-s7+small-page", True),
        ("hs-s7", True),
    ],
)
def test_what_takes_its_own_time_has_no_efficiency(name: str, is_told: bool) -> None:
    figures = run_figures.peer_figures(scenario.find(name), 1, 200.0, {"wifi": 1_000_000})
    assert (figures.efficiency is not None) == is_told
    assert figures.efficiency_text.startswith(", efficiency ") == is_told
