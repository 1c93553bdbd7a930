"""Tests what a report's page says of others on a client's links."""

from dataclasses import replace
from pathlib import Path

import pytest

from linklab.commands.report_test import HOSTILE, change, made, page, words
from linklab.report.tables_test import CALL
from linklab.runs.shares import ClientFigures, ShareFigures
from linklab.scenario import Scenario

pytestmark = pytest.mark.usefixtures("no_library")


def shared(
    runs: Path, small: Scenario, seed: int, rival_bps: float, who: str = "curl-wifi"
) -> None:
    run_dir = made(runs, "alg3", seed, small, 2.0)
    first = ClientFigures(1, "alg3", 2.0, 4e6, {"wifi": 1_000_000})
    second = ClientFigures(2, who, 5.0, rival_bps, {"wifi": 1_000_000})
    rates = {first.title: 4e6, second.title: rival_bps}
    traffic = [replace(CALL, flow=1, link="wifi", lost_ratio=0.015)]
    change(
        run_dir, traffic=traffic, clients=[first, second], shares={"wifi": ShareFigures(rates, 0.9)}
    )


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
