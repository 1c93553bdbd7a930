"""Tests what a comparison says of others on a client's links."""

from dataclasses import replace
from typing import Any

from linklab import scenario
from linklab.report import tables
from linklab.report.tables_test import run
from linklab.runs.comparison import Comparison, compare
from linklab.runs.shares import ClientFigures, ShareFigures
from linklab.runs.traffic_figures import TrafficFigures

BULK = TrafficFigures(1, "wifi", "down", "bulk", 6.0, goodput_bps=8e6)
CALL = TrafficFigures(
    flow=2,
    link="lte",
    direction="up",
    kind="call",
    flowed_s=6.0,
    goodput_bps=1e6,
    lost_ratio=0.01,
    delay_p50_s=0.01,
    delay_p95_s=0.02,
    delay_p99_s=0.03,
)


def shared(*call_delays_s: float) -> Comparison:
    """A comparison of one algorithm, with a run for each delay of the call."""
    clients = [
        ClientFigures(1, "alg3", 6.7, 16e6, {"wifi": 9}),
        ClientFigures(2, "curl-wifi", 9.0, 8e6, {"wifi": 9}),
    ]
    rates = {"client 1 alg3": 16e6, "client 2 curl-wifi": 8e6, "flow 1 bulk down wifi": 8e6}
    runs = [
        replace(
            run("static-80-50", 6.7, 6.7, 6.6),
            traffic=[BULK, replace(CALL, delay_p95_s=delay_s)],
            clients=clients,
            shares={"wifi": ShareFigures(rates, 0.889)},
        )
        for delay_s in call_delays_s
    ]
    return compare(scenario.find("static-80-50"), {"alg3": runs})


def test_flows_clients_and_shares_stand_below_the_table() -> None:
    text = tables.render(shared(0.02, 0.04, 0.09))
    assert max(len(line) for line in text.splitlines()) <= 80
    joined = " ".join(text.split())
    assert "alg3, Mbit/s: 1 bulk down wifi 8.00, 2 call up lte 1.00" in joined
    assert "alg3, 95 % of delays, ms: 2 call up lte 40.00" in joined
    assert "alg3, s: client 1 alg3 6.70, client 2 curl-wifi 9.00" in joined
    assert (
        "alg3, shares of wifi: client 1 alg3 50.0 %, client 2 curl-wifi 25.0 %, "
        "flow 1 bulk down wifi 25.0 %; Jain's index 0.889"
    ) in joined


def test_json_has_the_medians_by_title() -> None:
    document: Any = tables.to_json(shared(0.02, 0.04, 0.09))
    (row,) = document["rows"]
    assert row["traffic"]["1 bulk down wifi"] == {"goodput_bps": 8e6}
    assert row["traffic"]["2 call up lte"]["delay_p95_s"] == 0.04
    assert row["clients"]["client 2 curl-wifi"] == {"download_s": 9.0, "goodput_bps": 8e6}
    assert row["shares"]["wifi"]["client 1 alg3"] == 0.5
    assert row["jain"] == {"wifi": 0.889}
