"""Tests of view.py and plan.py."""

import json
from typing import Any

import msgspec
import pytest

from linklab import scenario
from linklab.core.impairments import Impairments
from linklab.core.link_state import DIRECTIONS
from linklab.core.records import EventRecord, LinkRecord, Record
from linklab.core.records_test import sampled
from linklab.metrics.manifest import new_metrics
from linklab.realtime.plan import AHEAD_S, LinkPlan
from linklab.realtime.view import MOST_MARKS, MOST_SAMPLES, Cursor, PageView
from linklab.runs.job_test import JOB
from linklab.scenario import Scenario

TEXT = """name: seen
title: Two links
payload: {size: 10 MB}
links:
  wifi: {down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}
  lte: {down: 40 Mbit/s, up: 10 Mbit/s, rtt: 40 ms}
events:
  - {at: 1 s, link: wifi, for: 2 s, outage: true}
  - {after: 5 MB, link: lte, down: 4 Mbit/s, loss: 1 %}
"""


class Seen:
    """A view, and what it is told."""

    def __init__(self, number: int = 1) -> None:
        self.scenario = scenario.parse(TEXT)
        self.metrics = new_metrics("label", JOB, self.scenario, 0.0)
        self.view = PageView(number, "label", "alg3", 1, self.scenario, self.metrics)

    def take(self, t_s: float, record: Record) -> None:
        self.metrics.record(t_s, record)
        self.view.take(record)

    def link(self, t_s: float, link: str = "wifi", **state: Any) -> None:
        settings = self.scenario.links[link]
        values = {
            "up": True,
            "down_rate_bps": settings.down_rate_bps,
            "up_rate_bps": settings.up_rate_bps,
            "delay_s": settings.rtt_s / 2,
            "jitter_s": 0.0,
            "loss_ratio": 0.0,
            **state,
        }
        self.take(t_s, LinkRecord(t_s=t_s, late_s=0.0, link=link, **values))

    def queues(self, t_s: float, sent_bytes: int, queue_bytes: int = 0, lost: int = 0) -> None:
        for link in self.scenario.links:
            for direction in DIRECTIONS:
                counters = {"queue_bytes": queue_bytes, "lost_packets": lost}
                self.take(t_s, sampled(t_s, link, sent_bytes, direction, **counters))


def test_a_reader_gets_all_once_and_then_what_is_new() -> None:
    seen = Seen()
    seen.link(0.0)
    seen.link(0.0, "lte")
    for number in range(1, 5):
        seen.queues(number / 2, number * 1000)
    cursor, news = seen.view.since(Cursor())
    assert news["run"]["title"] == "Two links"
    assert [one["t_s"] for one in news["samples"]] == [0.5, 1.0, 1.5, 2.0]
    seen.queues(2.5, 9000)
    seen.take(2.6, EventRecord(2.6, "wifi", "live", "carrier down"))
    after, news = seen.view.since(cursor)
    assert "run" not in news
    assert [one["t_s"] for one in news["samples"]] == [2.5]
    assert news["marks"] == [{"t_s": 2.6, "link": "wifi", "kind": "live", "detail": "carrier down"}]
    _, news = seen.view.since(after)
    assert (news["samples"], news["marks"]) == ([], [])
    _, news = Seen(2).view.since(after)
    assert news["run"]


def test_a_new_start_of_the_scenario_is_as_a_new_run() -> None:
    seen = Seen()
    seen.link(0.0)
    seen.queues(0.5, 1000)
    cursor, _ = seen.view.since(Cursor())
    seen.take(4.0, EventRecord(4.0, "", "restored"))
    seen.queues(4.0, 7000)
    seen.queues(4.5, 9500)
    seen.take(4.6, EventRecord(4.6, "wifi", "live", "carrier down"))
    now = seen.view.now()
    assert now["t_s"] == pytest.approx(0.6)
    assert now["links"]["wifi"]["bytes"] == {"down": 2500, "up": 2500}
    _, news = seen.view.since(cursor)
    assert news["run"]
    assert [one["t_s"] for one in news["samples"]] == [0.0, 0.5]
    assert [round(one["t_s"], 6) for one in news["marks"]] == [0.6]


def test_what_a_sample_says() -> None:
    seen = Seen()
    seen.link(0.0)
    seen.link(0.0, "lte")
    seen.queues(0.5, 0)
    seen.queues(1.0, 1_000_000, queue_bytes=75_000, lost=3)
    (wifi, lte) = seen.view.since(Cursor())[1]["samples"][-1]["links"]
    # 75 kB wait 10 ms down at 60 Mbit/s and 30 ms up at 20 Mbit/s.
    assert wifi == [60_000_000, 8_000_000, 0.01, 0.05, 75_000, 0.0, 3]
    assert lte[:3] == [40_000_000, 8_000_000, 0.04]


def test_what_a_link_is_now_in_the_units_of_scenarios() -> None:
    seen = Seen()
    seen.link(1.0, loss_ratio=0.02, delay_s=0.045, queue_bytes=30_000)
    seen.take(1.0, EventRecord(1.0, "wifi", "live", "rtt 90 ms, loss 2 % for 3 s"))
    now = seen.view.now()["links"]["wifi"]
    assert now["values"] == {
        "down": (60_000_000, "60 Mbit/s"),
        "up": (20_000_000, "20 Mbit/s"),
        "rtt": (0.09, "90 ms"),
        "jitter": (0.0, "0 s"),
        "loss": (0.02, "2 %"),
        "queue": (30_000, "30 kB"),
    }
    assert now["by_hand"] == ["rtt 90 ms", "loss 2 % for 3 s"]
    assert now["impaired"] == {"impair_down": {}, "impair_up": {}}


def test_how_a_link_is_impaired_now() -> None:
    seen = Seen()
    seen.link(1.0, impair_up=Impairments(loss_ratio=0.02, in_order=False))
    for words in ("impair_up.loss 1 %, impair_up.in_order false", "impair_up.loss 2 %"):
        seen.take(1.0, EventRecord(1.0, "wifi", "live", words))
    now = seen.view.now()["links"]["wifi"]
    assert now["impaired"] == {"impair_down": {}, "impair_up": {"loss": "2 %", "in_order": "false"}}
    assert now["by_hand"] == ["impair_up.in_order false", "impair_up.loss 2 %"]


def test_memory_is_bounded_and_a_slow_reader_gets_the_newest() -> None:
    seen = Seen()
    seen.link(0.0)
    for number in range(1, 2 * MOST_SAMPLES):
        seen.queues(number / 2, number)
        seen.take(number / 2, EventRecord(number / 2, "wifi", "loss"))
    _, news = seen.view.since(Cursor())
    assert len(news["samples"]) == MOST_SAMPLES
    assert len(news["marks"]) == MOST_MARKS
    assert news["samples"][-1]["t_s"] == MOST_SAMPLES - 0.5
    assert len(json.dumps(news, default=msgspec.to_builtins)) < 200_000


def test_words_of_the_lab_cannot_turn_the_text() -> None:
    seen = Seen()
    seen.take(1.0, EventRecord(1.0, "wifi", "refused", "\u202eevil\x1b[2J"))
    assert seen.view.since(Cursor())[1]["marks"][0]["detail"] == "\\u202eevil\\x1b[2J"


def test_the_plan_has_the_events_and_grows_with_time(small: Scenario) -> None:
    plan = LinkPlan(scenario.parse(TEXT), 1)
    plan.extend(0.0)
    first, rates = plan.since(0)
    assert (first, len(rates)) == (0, AHEAD_S * 2)
    assert [one[0] for one in rates[:8]] == [60_000_000] * 2 + [0] * 4 + [60_000_000] * 2
    plan.extend(10.0)
    first, rates = plan.since(len(rates))
    assert (first, len(rates)) == (AHEAD_S * 2, 20)
    assert plan.since(10_000) == (10_000, [])
    plan.extend(3600.0)
    first, rates = plan.since(0)
    assert (len(rates), first + len(rates)) == (400, (3600 + AHEAD_S) * 2)
