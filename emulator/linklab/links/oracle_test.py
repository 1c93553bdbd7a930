import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab import scenario
from linklab.links import oracle
from linklab.links.stack import models
from linklab.models.layer import NO_LOAD
from linklab.scenario import Payload, Scenario

G = 1448 / 1514 * 16384 / 16406 * 16384 / 16393


def make(wifi: str, lte: str, *events: str, size: str = "1 MB") -> Scenario:
    lines = [
        "name: oracle",
        f"payload: {{size: {size}}}",
        "links:",
        f"  wifi: {{up: 1 Mbit/s, {wifi}}}",
        f"  lte: {{up: 1 Mbit/s, {lte}}}",
        "events:" if events else "",
        *(f"  - {{{event}}}" for event in events),
    ]
    return scenario.parse("\n".join(lines))


SLOW = "down: 8 Mbit/s, rtt: 0 s"  # 1 MB/s on the wire, G MB/s of payload


def test_two_links_without_delay() -> None:
    one = make(SLOW, SLOW)
    assert oracle.oracle_s(one) == pytest.approx(0.5 / G, rel=1e-12)
    assert oracle.single_link_s(one, "wifi") == pytest.approx(1 / G, rel=1e-12)


def test_three_round_trips_come_before_the_first_byte() -> None:
    one = make("down: 8 Mbit/s, rtt: 10 ms", "down: 8 Mbit/s, rtt: 100 ms")
    assert oracle.single_link_s(one, "wifi") == pytest.approx(0.03 + 1 / G, rel=1e-12)
    assert oracle.single_link_s(one, "lte") == pytest.approx(0.3 + 1 / G, rel=1e-12)
    # Wi-Fi works alone from 0.03 to 0.3 s and delivers 0.27 G MB, then both share the rest.
    assert oracle.oracle_s(one) == pytest.approx(0.3 + (1 - 0.27 * G) / (2 * G), rel=1e-12)


def test_a_small_payload_is_over_before_the_second_link_begins() -> None:
    one = make("down: 8 Mbit/s, rtt: 10 ms", "down: 8 Mbit/s, rtt: 2 s")
    assert oracle.oracle_s(one) == pytest.approx(0.03 + 1 / G, rel=1e-12)


def test_a_lost_carrier_delivers_nothing() -> None:
    one = make(
        SLOW,
        SLOW,
        "at: 0.25 s, link: wifi, carrier: down",
        "at: 0.5 s, link: wifi, carrier: up",
    )
    # Without the outage 1/(2G) = 0.524 s; wifi misses 0.25 s, which both then make up for.
    assert oracle.oracle_s(one) == pytest.approx(0.5 / G + 0.125, rel=1e-12)


def test_a_client_that_starts_later_is_not_measured_by_what_was_before() -> None:
    one = make(
        "down: 8 Mbit/s, rtt: 10 ms",
        SLOW,
        "at: 0 s, link: wifi, down: 1 Mbit/s",
        "at: 5 s, link: wifi, down: 8 Mbit/s",
        "at: 5 s, link: lte, carrier: down",
    )
    assert oracle.oracle_s(one, 1, 5.0) == pytest.approx(0.03 + 1 / G, rel=1e-12)
    assert oracle.oracle_s(one) < 1
    later = make(SLOW, SLOW, "at: 4000 s, link: lte, down: 16 Mbit/s")
    assert oracle.oracle_s(later, 1, 5000.0) == pytest.approx(1 / (3 * G), rel=1e-9)


def test_handshakes_go_on_after_an_outage_and_with_another_rtt() -> None:
    events = (
        "at: 0.1 s, link: wifi, carrier: down",  # one of three round trips done
        "at: 1 s, link: wifi, carrier: up, rtt: 50 ms",
    )
    one = make("down: 8 Mbit/s, rtt: 100 ms", SLOW, *events)
    assert oracle.single_link_s(one, "wifi") == pytest.approx(1.1 + 1 / G, rel=1e-12)


def test_never() -> None:
    one = make(
        SLOW, SLOW, "at: 0.1 s, link: wifi, carrier: down", "at: 0.1 s, link: lte, carrier: down"
    )
    assert oracle.oracle_s(one) == math.inf
    assert oracle.single_link_s(one, "lte") == math.inf


def test_links_that_always_change_are_watched_as_long_as_asked() -> None:
    slow = "down: 20 kbit/s, rtt: 0 s, on_off: {rate: 19 kbit/s}"
    one = make(slow, slow, size="20 MB")
    assert oracle.oracle_s(one) == math.inf
    least_s = oracle.oracle_s(one, horizon_s=8000.0)
    assert 20e6 * 8 / 40e3 < least_s < 20e6 * 8 / 38e3 * 1.1


@given(st.integers(1, 50), st.integers(1, 9))
def test_random_links_are_those_of_the_seed(seed: int, size_mb: int) -> None:
    """The judge adds up what each link's model says at each of its changes."""
    links = "down: 8 Mbit/s, rtt: 0 s, on_off: {rate: 1 Mbit/s, on: 1 s, off: 1 s}"
    one = make(links, links, size=f"{size_mb} MB")
    each = {name: _arrivals(one, seed, name, size_mb * 1e6 / G) for name in one.links}
    for name, arrivals in each.items():
        assert oracle.single_link_s(one, name, seed) == pytest.approx(arrivals[-1][0], rel=1e-6)
    both_s = oracle.oracle_s(one, seed)
    assert oracle.carried_bytes(one, both_s, seed) == pytest.approx(size_mb * 1e6, rel=1e-6)
    times, carried = zip(*each["wifi"], strict=True)
    other, more = zip(*each["lte"], strict=True)
    arrived = np.interp(both_s, times, carried) + np.interp(both_s, other, more)
    assert arrived * G == pytest.approx(size_mb * 1e6, rel=1e-6)


def _arrivals(one: Scenario, seed: int, link: str, size: float) -> list[tuple[float, float]]:
    """Returns times, and the bytes that have arrived by then over a link, up to `size`."""
    model = models(one, seed)[link]
    found = [(0.0, 0.0)]
    while found[-1][1] < size * (1 - 1e-9):
        t_s, sent = found[-1]
        rate = model.at(t_s, NO_LOAD).rate_bps("down") / 8
        until_s = min(model.next_s(), t_s + (size - sent) / rate)
        found.append((until_s, sent + rate * (until_s - t_s)))
    return found


def test_done_exactly_when_the_links_go_down() -> None:
    size_bytes = 100_000
    done_s = size_bytes / (2e6 * G)
    late = f"{done_s * 1.001:.6f} s"
    early = f"{done_s * 0.999:.6f} s"
    for at, expected in ((late, pytest.approx(done_s)), (early, math.inf)):
        events = [f"at: {at}, link: {link}, carrier: down" for link in ("wifi", "lte")]
        assert oracle.oracle_s(make(SLOW, SLOW, *events, size="100 kB")) == expected


def test_loss_and_jitter_do_not_move_the_bound() -> None:
    steady = make("down: 8 Mbit/s, rtt: 10 ms", SLOW)
    lossy = make("down: 8 Mbit/s, rtt: 10 ms, loss: 5 %, jitter: 2 ms", SLOW)
    assert oracle.oracle_s(steady) == oracle.oracle_s(lossy)


BULK = "{link: wifi, bulk: {connections: 3}}"


@pytest.mark.parametrize(
    ("flows", "wifi_bps"),
    [
        ([BULK], 2e6),  # An equal share of 8 Mbit/s among four.
        (["{link: wifi, bulk: {}}", "{link: wifi, bulk: {}, from: 900 s}"], 4e6),
        (["{link: wifi, direction: up, bulk: {}}"], 8e6),
        # 1200 bytes of payload are 1242 in a frame.
        (["{link: wifi, call: {rate: 4 Mbit/s}}"], 8e6 - 4e6 * 1242 / 1200),
        (["{link: wifi, call: {rate: 90 Mbit/s}}"], 0.0),
    ],
)
def test_others_leave_what_is_not_theirs(flows: list[str], wifi_bps: float) -> None:
    one = make(SLOW, SLOW)
    text = scenario.to_yaml(one) + "traffic:\n" + "".join(f"  - {flow}\n" for flow in flows)
    beside = scenario.parse(text)
    assert oracle.oracle_s(beside) == pytest.approx(8e6 / (G * (8e6 + wifi_bps)), rel=1e-9)
    assert oracle.single_link_s(beside, "lte") == oracle.single_link_s(one, "lte")


def test_others_come_and_go() -> None:
    text = (
        scenario.to_yaml(make(SLOW, SLOW))
        + "traffic:\n  - {link: wifi, bulk: {}, from: 0.1 s, to: 0.3 s}"
    )
    # 0.2 s of half of Wi-Fi are missing, which both links make up for.
    assert oracle.oracle_s(scenario.parse(text)) == pytest.approx(0.5 / G + 0.05, rel=1e-9)


def test_pages_take_their_mean_rate() -> None:
    pages = "traffic:\n  - {link: wifi, web: {page: 300 kB, pause: 1 s}}"
    beside = scenario.parse(scenario.to_yaml(make(SLOW, SLOW)) + pages)
    left = 2e6 * G - 300e3 * math.exp(0.5)
    assert oracle.oracle_s(beside) == pytest.approx(1e6 / left, rel=1e-9)


MBITS = st.integers(1, 1000)


@given(MBITS, MBITS, st.integers(0, 200), st.integers(0, 200), st.floats(0.01, 5), MBITS)
def test_two_links_are_never_worse_than_one_and_more_is_never_slower(
    wifi: int, lte: int, wifi_rtt: int, lte_rtt: int, at_s: float, later: int
) -> None:
    one = make(
        f"down: {wifi} Mbit/s, rtt: {wifi_rtt} ms",
        f"down: {lte} Mbit/s, rtt: {lte_rtt} ms",
        f"at: {at_s:.6f} s, link: wifi, down: {later} Mbit/s",
        size="10 MB",
    )
    both = oracle.oracle_s(one)
    assert both <= min(oracle.single_link_s(one, link) for link in ("wifi", "lte")) + 1e-9
    assert both <= oracle.oracle_s(replace(one, payload=Payload(11_000_000)))
    faster = replace(one.links["wifi"], down_rate_bps=(wifi + 1) * 1_000_000)
    assert oracle.oracle_s(replace(one, links={**one.links, "wifi": faster})) <= both + 1e-9
