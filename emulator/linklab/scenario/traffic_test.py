import math

import pytest

from linklab import scenario
from linklab.scenario import Scenario, ScenarioError, to_yaml
from linklab.scenario.traffic import MOST_FLOWS, Bulk, Call, TrafficFlow, Web


def parsed(traffic: str) -> Scenario:
    link = "down: 80 Mbit/s, up: 20 Mbit/s, rtt: 10 ms"
    return scenario.parse(
        f"name: a\npayload: {{size: 1 B}}\nlinks:\n  wifi: {{{link}}}\ntraffic: {traffic}\n",
        "a.yaml",
    )


@pytest.mark.parametrize(
    ("text", "flow"),
    [
        ("{link: wifi, bulk: {}}", TrafficFlow(link="wifi", bulk=Bulk(1, None))),
        (
            "{link: wifi, direction: up, bulk: {connections: 4, congestion_control: bbr}}",
            TrafficFlow(link="wifi", direction="up", bulk=Bulk(4, "bbr")),
        ),
        (
            "{link: wifi, web: {page: 1 MB, pause: 5 s, connections: 2}, from: 1 s, to: 9 s}",
            TrafficFlow(link="wifi", web=Web(1_000_000, 5.0, 2), from_s=1.0, to_s=9.0),
        ),
        ("{link: wifi, web: {}}", TrafficFlow(link="wifi", web=Web(2_311_000, 30.0, 6))),
        (
            "{link: wifi, call: {rate: 64 kbit/s, packet: 160 B}}",
            TrafficFlow(link="wifi", call=Call(64_000, 160)),
        ),
    ],
)
def test_a_flow_is_read_and_written(text: str, flow: TrafficFlow) -> None:
    read = parsed(f"[{text}]")
    assert read.traffic == (flow,)
    assert scenario.parse(to_yaml(read), "again.yaml") == read


def test_a_flow_tells_its_kind_its_control_and_its_end() -> None:
    bulk, call = parsed(
        "[{link: wifi, bulk: {congestion_control: reno}}, {link: wifi, call: {rate: 1 Mbit/s}, to: 3 s}]"
    ).traffic
    assert (bulk.kind, bulk.congestion_control, bulk.end_s) == ("bulk", "reno", math.inf)
    assert (call.kind, call.congestion_control, call.end_s) == ("call", None, 3.0)
    assert call.call is not None
    assert call.call.interval_s == pytest.approx(0.0096)


def test_a_flow_is_described_in_words() -> None:
    flows = parsed(
        "[{link: wifi, bulk: {connections: 4}, from: 2 s}, {link: wifi, call: {rate: 64 kbit/s}}, "
        "{link: wifi, direction: up, web: {}, from: 1 s, to: 3 s}]"
    ).traffic
    assert [flow.words for flow in flows] == [
        "bulk of 4 connections down wifi from 2 s",
        "call of 64 kbit/s down wifi",
        "web up wifi from 1 s to 3 s",
    ]


def test_a_scenario_without_traffic_is_written_as_ever() -> None:
    read = parsed("[]")
    assert read.shared_links == frozenset()
    assert "traffic" not in to_yaml(read)
    assert parsed("[{link: wifi, bulk: {}}]").shared_links == {"wifi"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("5", ": must be a list"),
        ("[{bulk: {}}]", "[0]: 'link' is missing"),
        ("[{link: lte, bulk: {}}]", "[0].link: unknown value 'lte'; allowed: wifi"),
        ("[{link: wifi}]", "[0]: sends nothing; needed: one of bulk, web, call"),
        ("[{link: wifi, bulk: {}, web: {}}]", "[0]: …needed: one of bulk, web, call"),
        ("[{link: wifi, quic: {}}]", "[0]: unknown key 'quic'"),
        ("[{link: wifi, direction: both, bulk: {}}]", "[0].direction: unknown value 'both'"),
        ("[{link: wifi, bulk: {connections: 0}}]", "[0].bulk.connections: '0' is out of range"),
        ("[{link: wifi, bulk: {rate: 1 Mbit/s}}]", "[0].bulk: unknown key 'rate'"),
        ("[{link: wifi, bulk: {congestion_control: prague}}]", "[0].bulk.congestion_control"),
        ("[{link: wifi, call: {}}]", "[0].call: 'rate' is missing"),
        ("[{link: wifi, call: {rate: 1 Mbit/s, packet: 9 kB}}]", "[0].call.packet: '9 kB' is out"),
        ("[{link: wifi, call: {rate: 50 Mbit/s, packet: 100 B}}]", "[0].call.rate: 50 Mbit/s in"),
        ("[{link: wifi, bulk: {}, from: 5 s, to: 5 s}]", "[0].to: …allowed: above 5 s"),
        ("[{link: wifi, web: {pause: 0 s}}]", "[0].web.pause: '0 s' is out of range"),
    ],
)
def test_bad_flows_are_refused(text: str, error: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parsed(text)
    place, _, allowed = error.partition("…")
    assert str(refused.value).startswith(f"a.yaml:5: traffic{place}")
    assert allowed in str(refused.value)


def test_a_scenario_has_a_limited_number_of_flows() -> None:
    flow = "{link: wifi, bulk: {}}"
    assert len(parsed(f"[{', '.join([flow] * MOST_FLOWS)}]").traffic) == MOST_FLOWS
    with pytest.raises(ScenarioError, match="a.yaml:5: traffic: 17 flows; allowed: up to 16"):
        parsed(f"[{', '.join([flow] * (MOST_FLOWS + 1))}]")


def test_no_access_point_has_the_name_of_the_other_host() -> None:
    link = "down: 1 Mbit/s, up: 1 Mbit/s, rtt: 0 s"
    radio = "radio: {standard: ac, access_points: [{name: other}, {name: ap2}]}"
    text = f"name: a\npayload: {{size: 1 B}}\nlinks:\n  wifi: {{{link}, {radio}}}\n"
    with pytest.raises(ScenarioError, match="other"):
        scenario.parse(text, "a.yaml")
