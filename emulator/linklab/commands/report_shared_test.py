"""Tests what a report's page says of others on a client's links."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from linklab.commands.report_test import HOSTILE, made, page, words
from linklab.report import vega
from linklab.runs import summary
from linklab.runs.shares import ClientFigures, ShareFigures
from linklab.runs.traffic_figures import TrafficFigures
from linklab.scenario import Scenario


@pytest.fixture(autouse=True)
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library takes seconds to bundle, and is not what is tested."""
    monkeypatch.setattr(vega, "javascript", lambda: "/* vega */")


CALL = TrafficFigures(
    flow=1,
    link="wifi",
    direction="up",
    kind="call",
    flowed_s=2.0,
    goodput_bps=1e6,
    lost_ratio=0.015,
    delay_p50_s=0.01,
    delay_p95_s=0.02,
    delay_p99_s=0.03,
)


def shared(
    runs: Path, small: Scenario, seed: int, rival_bps: float, who: str = "curl-wifi"
) -> None:
    run_dir = made(runs, "alg3", seed, small, 2.0)
    first = ClientFigures(1, "alg3", 2.0, 4e6, {"wifi": 1_000_000})
    second = ClientFigures(2, who, 5.0, rival_bps, {"wifi": 1_000_000})
    rates = {first.title: 4e6, second.title: rival_bps}
    figures = replace(
        summary.read(run_dir),
        traffic=[CALL],
        clients=[first, second],
        shares={"wifi": ShareFigures(rates, 0.9)},
    )
    (run_dir / summary.FILE).write_bytes(msgspec.json.encode(figures))


def test_others_on_the_links_are_shown_as_medians(tmp_path: Path, small: Scenario) -> None:
    for seed, rival_bps in ((1, 4e6), (2, 12e6), (3, 2e6)):
        shared(tmp_path / "runs", small, seed, rival_bps)
    said = words(page(tmp_path / "runs"))
    assert "alg3 1 call up wifi 1.00 Mbit/s 10.0 ms 20.0 ms 30.0 ms 1.50 % - - -" in said
    assert "alg3 wifi client 1 alg3 2.00 s 4.00 Mbit/s 50.0 % 0.900" in said
    assert "alg3 wifi client 2 curl-wifi 5.00 s 4.00 Mbit/s 50.0 %" in said


def test_a_client_alone_has_no_such_tables(tmp_path: Path, small: Scenario) -> None:
    made(tmp_path / "runs", "alg3", 1, small, 2.0)
    said = words(page(tmp_path / "runs"))
    assert "Traffic of others" not in said
    assert "Shares of the links" not in said


def test_a_name_with_html_stays_a_name(tmp_path: Path, small: Scenario) -> None:
    shared(tmp_path / "runs", small, 1, 1e6, HOSTILE)
    text = page(tmp_path / "runs")
    assert HOSTILE not in text
    assert "<img src=x" not in text
