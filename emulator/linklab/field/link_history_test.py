import msgspec
import pytest

from linklab.core.frames import FRAME_BYTES
from linklab.core.records import ClientRecord
from linklab.field import link_history
from linklab.field import simulated_for_test as simulated
from linklab.field.link_history import LinkHistory
from linklab.field.simulated_for_test import SimulatedLink


def of(link: SimulatedLink, end_s: float = 10.0) -> LinkHistory:
    return link_history.of_records(simulated.records([link], end_s), link.name, link.device, end_s)


def test_spans_that_touch_are_one() -> None:
    assert link_history.merged([(3, 4), (1, 2), (2, 2.5), (1.5, 1.7), (6, 6)]) == ((1, 2.5), (3, 4))
    assert link_history.covered_s([(1, 2.5), (3, 4)], 2, 3.25) == 0.75


def test_what_came_is_counted_in_packets_where_the_kernel_did() -> None:
    exact = of(SimulatedLink())
    assert exact.is_exact
    assert exact.carried_bytes == pytest.approx(20e6 * 9.88 / 8, abs=3 * FRAME_BYTES)
    coarse = of(SimulatedLink(counts_segments=False))
    assert not coarse.is_exact
    assert coarse.carried_bytes == pytest.approx(20e6 * 9.88 / 8, abs=2 * FRAME_BYTES)


def test_counts_go_on_over_connections_of_which_each_begins_anew() -> None:
    counted = [(0.1, 10, 1), (0.2, 30, 2), (0.3, 5, 0), (0.4, 40, 7), (0.5, 2, 1)]
    records = [
        ClientRecord(round(t_s * 1e9), "sample", "lte", segments=segments, out_of_order=late)
        for t_s, segments, late in counted
    ]
    samples = link_history.of_records(records, "lte", "rmnet0", 1.0).samples
    assert [one.carried_bytes // FRAME_BYTES for one in samples] == [10, 30, 35, 70, 72]
    assert [one.out_of_order for one in samples] == [1, 2, 2, 9, 10]


def test_a_body_may_come_a_round_trip_after_it_was_asked_for() -> None:
    """The client reads late what came in time: its word counts only where it is sooner."""
    found = of(SimulatedLink(rtt_s=0.2, asked=((1.0, 3.0), (2.5, 4.0), (4.0, 5.0))))
    assert found.asked == ((1.0, 5.0),)
    assert found.coming == ((1.2, 4.0), (4.2, 5.0))


def test_a_link_that_is_known_to_be_gone_is_waited_for() -> None:
    events: list[tuple[float, dict[str, object]]] = [
        (1.0, {"event": "failover", "reason": "slow"}),
        (2.0, {"event": "failover", "reason": "lost"}),
        (2.5, {"event": "ban", "error": "no route"}),
        (3.0, {"event": "connected", "tcp_ns": 10**8, "tls_ns": 10**8}),
        (7.0, {"event": "ban", "error": "no answer in time"}),
    ]
    records = [
        msgspec.convert({"t_ns": round(t_s * 1e9), "link": "wifi", **one}, ClientRecord)
        for t_s, one in events
    ]
    found = link_history.of_records(records, "wifi", "wlan0", 9.0)
    assert found.asked == ((2.0, 3.0), (7.0, 9.0))
    assert found.failures == ((2.5, "no route"), (7.0, "no answer in time"))
    assert found.connections == (link_history.Connection(2.8, 3.0, 0.1),)
