import pytest

from linklab.scenario.traffic import Bulk, Call, TrafficFlow, Web
from linklab.traffic.counted import RunTimes, record

SECOND = 1_000_000_000
TIMES = RunTimes(3 * SECOND, 20.0)
CALL = Call(80_000, 100)
"""100 packets a second."""


def test_a_flow_that_lasts_ends_with_the_run() -> None:
    found = record(TrafficFlow(link="wifi", bulk=Bulk()), 1, TIMES, {"bytes": 0}, {"bytes": 5})
    assert (found.from_s, found.to_s, found.t_s, found.received_bytes) == (0.0, 20.0, 20.0, 5)
    assert found.sent_packets is found.lost_packets is found.pages is None


def test_a_flow_that_ended_before_keeps_its_end() -> None:
    flow = TrafficFlow(link="wifi", direction="up", bulk=Bulk(), from_s=1.0, to_s=4.0)
    found = record(flow, 2, TIMES, {"bytes": 7}, {"bytes": 0})
    assert (found.from_s, found.to_s, found.received_bytes) == (1.0, 4.0, 7)


def test_a_flow_that_never_began_takes_no_time() -> None:
    flow = TrafficFlow(link="wifi", bulk=Bulk(), from_s=30.0, to_s=40.0)
    found = record(flow, 1, TIMES, {"bytes": 0}, {"bytes": 0})
    assert found.from_s == found.to_s == 20.0


@pytest.mark.parametrize(
    ("numbered", "packets", "lost"),
    [
        (2000, 2000, 0),
        (1990, 1990, 0),  # The last ones are under way.
        (1990, 1980, 10),
        (1000, 1000, 501),  # Nothing after 10 s: those sent before 15 s are lost.
        (0, 0, 1501),
    ],
)
def test_a_packet_is_lost_when_a_later_one_came_or_after_five_seconds(
    numbered: int, packets: int, lost: int
) -> None:
    sender = {"sent": 2000, "start_ns": 3 * SECOND}
    receiver = {"bytes": 1, "packets": packets, "numbered": numbered}
    flow = TrafficFlow(link="wifi", direction="up", call=CALL)
    found = record(flow, 1, TIMES, receiver, sender)
    assert (found.sent_packets, found.lost_packets) == (2000, lost)


def test_a_call_that_the_sender_never_learned_of_sent_nothing() -> None:
    flow = TrafficFlow(link="wifi", call=CALL)
    receiver = {"bytes": 0, "packets": 0, "numbered": 0}
    found = record(flow, 1, TIMES, {"sent": 0, "start_ns": 0}, receiver)
    assert (found.sent_packets, found.lost_packets) == (0, 0)


@pytest.mark.parametrize("direction", ["down", "up"])
def test_times_of_pages_are_those_of_the_other_end(direction: str) -> None:
    flow = TrafficFlow(link="wifi", direction=direction, web=Web())  # type: ignore[arg-type]
    own = {"bytes": 3, "pages": 2, "page_p50_ns": SECOND, "page_p95_ns": SECOND}
    other = own if direction == "down" else {**own, "bytes": 0}
    server = {"bytes": 0} if direction == "down" else {"bytes": 3}
    found = record(flow, 1, TIMES, server, other)
    assert (found.received_bytes, found.pages, found.page_p50_s) == (3, 2, 1.0)
