from typing import Any

import pytest

from linklab.core.records import TrafficRecord
from linklab.runs import traffic_figures
from linklab.runs.traffic_figures import NAMES, TrafficFigures


def figures(**more: Any) -> TrafficFigures:
    values: dict[str, Any] = {
        "t_s": 10.0,
        "flow": 2,
        "link": "wifi",
        "direction": "up",
        "kind": "call",
        "from_s": 2.0,
        "to_s": 10.0,
        "received_bytes": 1_000_000,
        **more,
    }
    (found,) = traffic_figures.of_records([TrafficRecord(**values)])
    return found


def test_goodput_is_over_the_time_that_the_flow_had() -> None:
    found = figures(kind="bulk")
    assert (found.flowed_s, found.goodput_bps) == (8.0, 1e6)
    assert found.title == "2 bulk up wifi"
    assert found.words == "1.00 Mbit/s"
    assert found.flat() == {"goodput_bps": 1e6}


def test_a_flow_that_did_not_begin_has_no_goodput() -> None:
    found = figures(from_s=10.0, received_bytes=0)
    assert (found.flowed_s, found.goodput_bps) == (0.0, None)
    assert found.words == "had not begun"


def test_a_call_has_delays_and_loss() -> None:
    found = figures(
        sent_packets=200, lost_packets=3, delay_p50_s=0.01, delay_p95_s=0.02, delay_p99_s=0.03
    )
    assert found.lost_ratio == pytest.approx(0.015)
    assert found.words == "1.00 Mbit/s, delay 10.0 20.0 30.0 ms (p50 p95 p99), 1.50 % lost"
    assert list(found.flat()) == [name for name in NAMES if "page" not in name]


def test_a_call_that_sent_nothing_lost_nothing() -> None:
    assert figures(sent_packets=0, lost_packets=0).lost_ratio is None


def test_pages_have_times() -> None:
    found = figures(kind="web", pages=4, page_p50_s=1.0, page_p95_s=2.0, page_p99_s=2.0)
    assert found.words == "1.00 Mbit/s, 4 pages in 1000.0 2000.0 2000.0 ms (p50 p95 p99)"
    assert figures(kind="web", pages=0).words == "1.00 Mbit/s, 0 pages"
