import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab import scenario
from linklab.core.link_state import LinkState
from linklab.links.stack import ScenarioLink, base_state, models
from linklab.models.events import Event
from linklab.models.layer import STEP_S, Load
from linklab.models.registry import MODELS

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


LINK = "down: 300 Mbit/s, up: 20 Mbit/s, rtt: 15 ms"
LAYERS = {
    "between_runs": "10 %",
    "trace": "{file: lte-walking}",
    "spread": "{down_p10: 26 Mbit/s, memory: 1 s}",
    "slots": "{}",
    "boost": "{down: 600 Mbit/s, burst: 1 MB}",
    "pauses": "[{name: x, per_minute: 20, median: 1 s, p90: 2 s}]",
    "on_off": "{rate: 1 Mbit/s}",
    "radio": "{standard: ac, access_points: [{name: a}]}",
    "endc": "{down: 30 Mbit/s, up: 10 Mbit/s, rtt: 40 ms, nr: 1 s}",
    "carriers": "{count: 3, slow: 0 %}",
    "rrc": "{}",
}
"""Keys of a link with each model, as tests/named_values_test.py runs them too."""


def history(key: str, settings: str, **changing: object) -> tuple[ScenarioLink, list[object]]:
    """A link with one layer, and its states during 10 s of a load with some values."""
    link = f"{LINK}, {key}: {settings}"
    text = f"name: a\npayload: {{size: 1 MB}}\nlinks: {{other: {{{link}}}}}\n"
    layer = models(scenario.parse(text), 1)["other"]
    states: list[object] = []
    for step in range(500):
        counted = {
            name: value * step if isinstance(value, int) else value
            for name, value in changing.items()
        }
        states += [layer.at(step * STEP_S, Load(**counted)), layer.next_s()]  # type: ignore[arg-type]
    return layer, states


LOADED = dict.fromkeys(("down_bytes", "up_bytes", "down_backlog_bytes"), 1_000_000)
PACKETS = dict.fromkeys(("down_packets", "up_packets"), 100)


@pytest.mark.parametrize("key", LAYERS)
def test_a_layer_wants_the_load_if_it_uses_it_and_else_not(key: str) -> None:
    layer, without = history(key, LAYERS[key])
    _, loaded = history(key, LAYERS[key], **LOADED, **PACKETS)
    assert layer.wants_load == (loaded != without)
    _, connected = history(key, LAYERS[key], connections=frozenset((1, 2)))
    assert not layer.wants_connections
    assert connected == without


def test_every_model_is_asked_whether_it_wants_the_load() -> None:
    assert set(LAYERS) == {one.rows[0].key for one in MODELS}


def test_carriers_by_connection_want_the_connections() -> None:
    settings = "{count: 3, key: connection}"
    layer, without = history("carriers", settings, **LOADED)
    _, connected = history("carriers", settings, **LOADED, connections=frozenset((1,)))
    assert layer.wants_connections
    assert connected != without


def test_a_link_can_be_changed_while_it_runs() -> None:
    wifi = models(scenario.parse(TEXT), 1)["wifi"]
    wifi.at(0.5)
    wifi.change(Event("wifi", down_rate_bps=1_000_000), 0.7)
    assert wifi.next_s() == 0.7
    assert wifi.at(0.7).down_rate_bps == 1_000_000
    with pytest.raises(ValueError, match="no access points"):
        wifi.change(Event("wifi", handover="next"), 0.8)


@given(zero=st.floats(0.0, 1e5), number=st.integers(0, len(LAYERS)))
def test_a_link_that_begins_later_becomes_the_same(zero: float, number: int) -> None:
    """It is asked when it is due. Rounding may not make a time earlier than that."""
    key = [*LAYERS, "loss"][number]
    link = f"{LINK}, {key}: {LAYERS.get(key, '1 %')}"
    event = "{at: 2 s, link: other, carrier: down, for: 3.3 s}"
    text = f"name: a\npayload: {{size: 1 MB}}\nlinks: {{other: {{{link}}}}}\nevents: [{event}]\n"
    seen = []
    for zero_s in (0.0, zero):
        model = models(scenario.parse(text), 1)["other"]
        model.zero_s = zero_s
        states, due_s = [model.at(zero_s)], zero_s
        for _ in range(50):
            before_s, due_s = due_s, model.next_s()
            if math.isinf(due_s):
                break
            assert due_s > before_s or due_s == zero_s
            states.append(model.at(due_s))
        seen.append(states)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("seed", range(20))
def test_a_handover_goes_to_its_target_or_to_the_strongest_other(seed: int) -> None:
    """Random access points, and a handover to one of them or to the next one, planned or by hand."""
    random = Random(seed)
    signals = dict(zip("abcd", random.sample(range(40, 70), random.randint(2, 4)), strict=False))
    points = ", ".join(f"{{name: {name}, signal: -{dbm} dBm}}" for name, dbm in signals.items())
    first = min(signals, key=lambda one: signals[one])
    others = [name for name in signals if name != first]
    next_one = min(others, key=lambda one: signals[one])
    wanted = random.choice(["next", *others])
    radio = (
        "rtt: 10 ms, radio: {standard: ac, handover: full-scan, "
        f"access_points: [{points}]}}, jitter"
    )
    text = TEXT.replace("rtt: 10 ms, jitter", radio, 1)
    if is_planned := random.random() < 0.5:
        text = text.replace("carrier: down", f"handover: {wanted}")
    else:
        text = text.replace("  - {at: 2 s, link: wifi, carrier: down}\n", "")
    wifi = models(scenario.parse(text), 1)["wifi"]
    assert wifi.at(0.0).access_point == first
    if not is_planned:
        wifi.change(Event("wifi", handover=wanted), 2.0)
    between = wifi.at(2.0)
    assert (between.access_point, between.up) == ("", False)
    assert wifi.next_s() <= 3.5
    assert wifi.at(3.5).access_point == (next_one if wanted == "next" else wanted)


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
