from dataclasses import replace

import pytest

from linklab import scenario
from linklab.core.link_state import LinkState
from linklab.links.stack import base_state, models
from linklab.models.events import Event

TEXT = """\
name: events
payload: {size: 1 MB}
links:
  wifi: {down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms, jitter: 2 ms, loss: 1 %}
  lte: {down: 40 Mbit/s, up: 10 Mbit/s, rtt: 40 ms}
events:
  - {at: 2 s, link: wifi, carrier: down}
  - {at: 5 s, link: wifi, carrier: up, down: 30 Mbit/s}
  - {at: 2 s, link: lte, rtt: 60 ms, loss: 0.5 %}
"""
WIFI = LinkState(True, 60_000_000, 20_000_000, 0.005, 0.002, 0.01)
LTE = LinkState(True, 40_000_000, 10_000_000, 0.02, 0.0, 0.0)


def test_links_are_their_settings_and_their_own_events() -> None:
    made = models(scenario.parse(TEXT), 1)
    assert {name: model.at(0.0) for name, model in made.items()} == {"wifi": WIFI, "lte": LTE}
    assert {model.next_s() for model in made.values()} == {2.0}
    assert made["wifi"].at(2.0) == replace(WIFI, up=False)
    assert made["lte"].at(2.0) == replace(LTE, delay_s=0.03, loss_ratio=0.005)
    assert made["wifi"].at(5.0) == replace(WIFI, down_rate_bps=30_000_000)
    assert [event.kind for event in made["wifi"].begun()] == ["carrier-down", "carrier-up"]
    assert made["wifi"].begun() == []


def test_static_links_are_never_asked_again() -> None:
    made = models(scenario.find("static-80-50"), 1)
    assert {model.next_s() for model in made.values()} == {float("inf")}
    assert not any(model.wants_load or model.wants_connections for model in made.values())


def test_a_link_can_be_changed_while_it_runs() -> None:
    wifi = models(scenario.parse(TEXT), 1)["wifi"]
    wifi.at(0.5)
    wifi.change(Event("wifi", down_rate_bps=1_000_000), 0.7)
    assert wifi.next_s() == 0.7
    assert wifi.at(0.7).down_rate_bps == 1_000_000
    with pytest.raises(ValueError, match="no access points"):
        wifi.change(Event("wifi", handover="next"), 0.8)


def test_a_handover_is_an_event_of_the_radio() -> None:
    radio = (
        "rtt: 10 ms, radio: {standard: ac, handover: full-scan, access_points: "
        "[{name: ap1, signal: -50 dBm}, {name: ap2, signal: -55 dBm}]}, jitter"
    )
    text = TEXT.replace("rtt: 10 ms, jitter", radio, 1).replace("carrier: down", "handover: ap2")
    wifi = models(scenario.parse(text), 1)["wifi"]
    assert wifi.at(0.0).access_point == "ap1"
    between = wifi.at(2.0)
    assert (between.access_point, between.up) == ("", False)
    assert wifi.next_s() <= 3.5
    assert wifi.at(3.5).access_point == "ap2"
    wifi.change(Event("wifi", handover="ap1"), 4.0)
    assert wifi.at(4.0).access_point == ""


def test_another_link_or_layer_leaves_the_randomness_of_the_others() -> None:
    lte = "rtt: 40 ms, between_runs: 20 %, trace: {file: lte-driving, start: random}"
    text = TEXT.replace("rtt: 40 ms", lte, 1)
    more = text.replace("rtt: 10 ms", "rtt: 10 ms, between_runs: 30 %", 1).replace(
        "start: random}", "start: random}, rrc: {}", 1
    )
    one, other = (models(scenario.parse(one), 7)["lte"].at(0.5) for one in (text, more))
    assert one.down_rate_bps == other.down_rate_bps != 40_000_000
    assert models(scenario.parse(text), 8)["lte"].at(0.5).down_rate_bps != one.down_rate_bps


def test_the_base_is_the_settings() -> None:
    assert base_state(scenario.parse(TEXT).links["lte"]) == LTE
