import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab import scenario
from linklab.core.frames import ack_bytes, goodput_ratio
from linklab.core.link_state import LinkState
from linklab.links import full_load
from linklab.links.full_load import Span, spans
from linklab.links.stack import ScenarioLink, models
from linklab.models.layer import Load
from linklab.scenario import Scenario
from linklab.scenario.workload import Upload, Workload


def make(lte: str, *events: str) -> Scenario:
    listed = "".join(f"  - {{{event}}}\n" for event in events)
    return scenario.parse(
        "name: full\npayload: {size: 10 MB}\nlinks:\n"
        "  wifi: {down: 8 Mbit/s, up: 1 Mbit/s, rtt: 0 s}\n"
        f"  lte: {{down: 80 Mbit/s, up: 1 Mbit/s, {lte}}}\n"
        + (f"events:\n{listed}" if events else "")
    )


def history(one: Scenario, until_s: float = 20.0) -> list[Span]:
    return list(itertools.takewhile(lambda span: span.start_s < until_s, spans(one, 1, one.links)))


def test_handshakes_come_first_and_then_the_whole_rate() -> None:
    first, rest = history(make("rtt: 100 ms"))
    assert first.start_s == 0
    assert first.end_s == pytest.approx(0.3)
    assert first.payload_bytes_per_s["wifi"] == pytest.approx(1e6 * goodput_ratio())
    assert first.payload_bytes_per_s["lte"] == 0
    assert rest.end_s == math.inf
    assert rest.payload_bytes_per_s["lte"] == pytest.approx(1e7 * goodput_ratio())


def test_an_upload_fills_the_links_upwards() -> None:
    up = replace(make("rtt: 100 ms, rrc: {}"), workload=Workload(upload=Upload()))
    last = history(up)[-1]
    assert last.payload_bytes_per_s["wifi"] == pytest.approx(1e6 / 8 * goodput_ratio())
    assert last.payload_bytes_per_s["lte"] == pytest.approx(1e6 / 8 * goodput_ratio())
    # The radio wakes for what the client sends, and then three round trips.
    begins = min(span.start_s for span in history(up) if span.payload_bytes_per_s["lte"] > 0)
    assert begins == pytest.approx(0.26 + 0.3, abs=0.05)


def test_nothing_is_sent_before_the_client_starts() -> None:
    one = make("rtt: 100 ms, rrc: {}")
    history = list(
        itertools.takewhile(lambda span: span.start_s < 9, spans(one, 1, one.links, 5.0))
    )
    before = [span for span in history if span.end_s <= 5]
    assert before[-1].end_s == 5
    assert all(not any(span.payload_bytes_per_s.values()) for span in before)
    assert all(span.states["lte"].rrc == "idle" for span in before), "its radio sleeps"
    # It is awake after 260 ms, and then come three round trips.
    begins = min(span.start_s for span in history if span.payload_bytes_per_s["lte"] > 0)
    assert begins == pytest.approx(5 + 0.26 + 0.3, abs=0.05)


def test_spans_follow_each_other_without_a_gap() -> None:
    seen = history(make("rtt: 100 ms, carriers: {count: 3}, rrc: {}"), 5.0)
    assert seen[0].start_s == 0
    assert all(one.end_s == two.start_s for one, two in itertools.pairwise(seen))
    assert all(span.end_s > span.start_s for span in seen)


def test_a_full_link_brings_up_its_carriers_and_wakes_its_radio() -> None:
    lte = "rtt: 100 ms, carriers: {count: 2, delay: 1 s, sigma: 0, slow: 0 %}, rrc: {}"
    states = [(span.start_s, span.states["lte"]) for span in history(make(lte), 5.0)]
    assert states[0][1].rrc == "promotion"  # The first packet waits from the start
    connected_s = next(t for t, state in states if state.rrc == "connected")
    assert connected_s == pytest.approx(0.26)
    both_s = next(t for t, state in states if state.carriers == 2)
    assert both_s == pytest.approx(connected_s + 0.3 + 0.05 + 1.0, abs=0.03)


def test_nothing_passes_in_an_outage_and_handshakes_wait_for_its_end() -> None:
    one = make("rtt: 100 ms", "at: 0 s, link: lte, outage: true, for: 1 s")
    rates = {span.start_s: span.payload_bytes_per_s["lte"] for span in history(one)}
    assert [t for t, rate in rates.items() if rate > 0] == [pytest.approx(1.3)]


def test_what_an_outage_loses_keeps_no_radio_awake() -> None:
    lte = "rtt: 100 ms, rrc: {tail: 1 s}"
    one = make(lte, "at: 2 s, link: lte, outage: true, for: 2 s")
    modes = [span.states["lte"].rrc for span in history(one) if span.start_s < 4]
    assert modes[-1] == "idle"
    rates = {span.start_s: span.payload_bytes_per_s["lte"] for span in history(one)}
    assert min(t for t, rate in rates.items() if t > 3 and rate > 0) == pytest.approx(
        4.28, abs=0.03
    )


@pytest.mark.parametrize("direction", ["down", "up"])
def test_a_handshake_waits_until_both_directions_pass(direction: str) -> None:
    outage = f"at: 0 s, link: lte, impair_{direction}: {{loss: 100 %}}, for: 1 s"
    rates = {
        span.start_s: span.payload_bytes_per_s["lte"]
        for span in history(make("rtt: 100 ms", outage))
    }
    assert [t for t, rate in rates.items() if rate > 0] == [pytest.approx(1.3)]


@given(st.integers(1, 100), st.integers(1, 100), st.booleans())
def test_a_packet_back_acknowledges_two(down: int, up: int, is_upload: bool) -> None:
    """Models see it as load."""
    one = make(
        "rtt: 0 s",
        f"at: 0 s, link: lte, down: {down} Mbit/s, up: {up} Mbit/s",
        "at: 9 s, link: lte, rtt: 1 s",
    )
    if is_upload:
        one = replace(one, workload=Workload(upload=Upload()))
    seen: list[Load] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(full_load, "models", lambda *asked: _watched(patch, models(*asked), seen))
        history(one)
    last = seen[-1]
    data, answers = (last.down_bytes, last.up_bytes), (last.down_packets, last.up_packets)
    if is_upload:
        data, answers = data[::-1], answers[::-1]
    assert data[0] == pytest.approx((up if is_upload else down) * 1e6 / 8 * 9, abs=1)
    assert answers[0] == pytest.approx(data[0] / 1514, abs=1)
    assert answers[1] == pytest.approx(answers[0] / 2, abs=1)
    assert data[1] == pytest.approx(answers[1] * ack_bytes(one.links["lte"].families), rel=0.01)


def _watched(
    patch: pytest.MonkeyPatch, made: dict[str, ScenarioLink], seen: list[Load]
) -> dict[str, ScenarioLink]:
    at = made["lte"].at

    def watched(t_s: float, load: Load) -> LinkState:
        seen.append(load)
        return at(t_s, load)

    patch.setattr(made["lte"], "at", watched)
    return made


def test_bytes_received_trigger_events() -> None:
    one = make("rtt: 0 s", "after: 5 MB, link: lte, carrier: down")
    down_s = next(span.start_s for span in history(one) if not span.states["lte"].up)
    arrives_s = 5e6 / (11e6 * goodput_ratio())
    assert arrives_s <= down_s <= arrives_s + 0.0201
