import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from linklab import scenario
from linklab.core.impairments import Impairments
from linklab.links import oracle
from linklab.models.trace import Trace
from linklab.queues.codel import CoDel
from linklab.queues.fq_codel import FqCoDel
from linklab.report import listing, publication
from linklab.scenario import Scenario
from linklab.scenario.clients import Downloader
from linklab.scenario.finding import SCENARIOS
from linklab.scenario.traffic import Bulk, Call, TrafficFlow

TEXT = """\
name: small
title: Paper, two links
source: 'Paper, 4.2, figure 3'
payload: {size: 1.25 MB}
links:
  wifi: {down: 8 Mbit/s, up: 1 Mbit/s, rtt: 0 s, loss: 1 %, on_off: {rate: 1 Mbit/s},
         radio: {standard: g, access_points: [{name: ap1}]}, stations: {count: 2}}
  lte: {down: 2 Mbit/s, up: 1 Mbit/s, rtt: 50 ms, between_runs: 5 %, carriers: {count: 2},
        rrc: {}, trace: {file: lte-walking}}
events:
  - {at: 9 s, link: wifi, for: 1 s, carrier: down}
"""

STATED = publication.parse(
    "name: x\ntitle: t\nsource: s\nstatements:\n"
    "  - {metric: download, source: table 1, within: 5 %,\n"
    "     values: {ts: {alg3: 1.5 s, naive: 2 s}}}\n"
    "  - {metric: energy, source: figure 3, each: [ts], of: alg3, to: [naive], ratio: 92 %,\n"
    "     within: 5 %}\n",
    "x.yaml",
).statements


@pytest.fixture
def small() -> Scenario:
    return scenario.parse(TEXT)


@pytest.mark.parametrize(
    ("source", "whose"),
    [
        ("thesis 5.2.2, tables 5.6 and 5.12", "thesis"),
        ("eMPTCP, 4.3, figure 8", "eMPTCP"),
        ("MPTCP study, table 1", "MPTCP study"),
        ("Own design: links of ours", "Own design"),
        ("", "Own design"),
        ("802.11", "Own design"),
    ],
)
def test_a_publication_is_the_source_up_to_the_place_in_it(
    small: Scenario, source: str, whose: str
) -> None:
    assert listing.publication(replace(small, source=source)) == whose


def test_a_line_for_each_below_its_publication(small: Scenario) -> None:
    other = replace(small, name="a-longer-name", title="Mine " + "and " * 30, source="")
    huge = replace(small, name="b", payload=replace(small.payload, size_bytes=256_000), source="")
    assert listing.overview([other, small, huge]).splitlines() == [
        "Publications: Paper",
        "  small          1.25 MB *Two links",
        "",
        "Own designs",
        "  a-longer-name  1.25 MB *Mine and and and and and and and and and and and and…",
        "  b               256 kB *Paper, two links",
        "",
        "* plays a trace that linklab generated. No trace that ships was recorded.",
    ]
    timed = listing.overview([other, small], {"a-longer-name": 2.5, "small": math.inf})
    assert "  small          1.25 MB     never *Two links" in timed.splitlines()
    assert "  a-longer-name  1.25 MB    2.50 s *Mine and" in timed
    assert all(len(line) <= listing.WIDTH for line in timed.splitlines())
    assert listing.overview([]) == ""


def test_the_traces_header_tells_whether_it_is_generated(small: Scenario, tmp_path: Path) -> None:
    """Not its name or place: of two copies with one name, the imported one has no mark."""
    link = small.links["lte"]
    trace = next(one for one in link.models if isinstance(one, Trace))
    copy = tmp_path / trace.file.name
    for content, is_marked in (
        (trace.file.read_text(), True),
        ("# imported from: ucc x.csv\nt,down_mbit\n0,1\n1,2\n", False),
    ):
        copy.write_text(content)
        models = tuple(replace(trace, file=copy) if one is trace else one for one in link.models)
        other = replace(small, links={**small.links, "lte": replace(link, models=models)})
        assert ("* plays a trace" in listing.overview([other])) == is_marked
        assert ("its trace is generated" in " ".join(listing.details(other).split())) == is_marked
        (read,) = listing.to_json([other])
        assert read["links"]["lte"]["plays_generated_trace"] == is_marked  # type: ignore[index]


def test_what_ships_is_sorted_by_its_folder() -> None:
    listed = [scenario.find(name) for name in ("wifi-gone", "tm", "emptcp-on-off")]
    assert [listing.group(one) for one in listed] == ["own", "publications", "publications"]
    headings = [block.splitlines()[0] for block in listing.overview(listed).split("\n\n")]
    assert headings[:3] == ["Publications: eMPTCP", "Publications: thesis", "Own designs"]


def test_every_scenario_that_ships_has_a_group_and_a_name_of_its_own() -> None:
    assert {listing.group(one) for one in scenario.list_all()} <= set(listing.GROUPS)
    files = list(SCENARIOS.rglob("*.yaml"))
    assert len({file.stem for file in files}) == len(files) == len(scenario.names_in())


def test_details_say_everything(small: Scenario) -> None:
    text = listing.details(replace(small, description="word " * 40), STATED)
    assert all(len(line) <= listing.WIDTH for line in text.splitlines())
    joined = " ".join(text.split())
    for words in (
        "small Paper, two links source Paper, 4.2, figure 3 about word word",
        "payload 1.25 MB",
        "Wi-Fi 8 Mbit/s down, 1 Mbit/s up, RTT 0 s, loss 1 %, at times 1 Mbit/s at most, 802.11g, "
        "1 access point, 2 other stations",
        "LTE 2 Mbit/s down, 1 Mbit/s up, RTT 50 ms, ±5 % between runs, trace lte-walking, "
        "2 carriers, RRC, its trace is generated",
        "events 1",
        f"oracle {oracle.oracle_s(small):.2f} s; Wi-Fi alone "
        f"{oracle.single_link_s(small, 'wifi'):.2f} s, LTE alone",
        "published download (table 1): alg3 1.5 s, naive 2 s ratio of energy (figure 3): alg3 to "
        "naive 92 %",
    ):
        assert words in joined


def test_details_name_others_on_the_links(small: Scenario) -> None:
    flows = (
        TrafficFlow(link="wifi", call=Call(64_000)),
        TrafficFlow(link="lte", direction="up", bulk=Bulk(2)),
    )
    text = listing.details(
        replace(small, traffic=flows, clients=(Downloader(), Downloader("alg3", 0.04)))
    )
    joined = " ".join(text.split())
    assert "others call of 64 kbit/s down wifi bulk of 2 connections up lte" in joined
    assert "clients tested, alg3 (rtt + 40 ms)" in joined
    assert "others" not in listing.details(small)


def test_json_is_complete_and_stable(small: Scenario) -> None:
    (listed,) = json.loads(
        json.dumps(listing.to_json([small], stated={"small": STATED[1:]}), allow_nan=False)
    )
    assert list(listed) == [
        *("name", "title", "description", "group", "publication", "source", "file"),
        *("payload_bytes", "workload", "oracle_s", "links", "events", "published"),
    ]
    assert (listed["publication"], listed["payload_bytes"], listed["events"]) == (
        "Paper",
        1250000,
        1,
    )
    assert listed["links"]["wifi"] == {
        "kind": "wifi",
        "down_rate_bps": 8_000_000,
        "up_rate_bps": 1_000_000,
        "rtt_s": 0.0,
        "loss_ratio": 0.01,
        "ip": [4],
        "models": ["on_off", "radio", "stations"],
        "plays_generated_trace": False,
    }
    assert listed["links"]["lte"]["models"] == ["between_runs", "trace", "carriers", "rrc"]
    assert listed["published"] == [
        {"what": "download", "who": "naive", "value": "2 s", "source": "table 1"},
        {"what": "ratio of energy", "who": "alg3 to naive", "value": "92 %", "source": "figure 3"},
    ]
    assert listed["oracle_s"] is None
    for seconds, written in ((2.5, 2.5), (math.inf, None)):
        assert listing.to_json([small], {"small": seconds})[0]["oracle_s"] == written


def test_oracles_tell_how_far_they_are(small: Scenario) -> None:
    told: list[int] = []
    times = listing.oracles([small, replace(small, name="other")], told.append)
    assert times == {"small": oracle.oracle_s(small), "other": oracle.oracle_s(small)}
    assert told == [1, 2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "RTT 50 ms, ±5 % between runs, trace lte-walking, 2 carriers, RRC, its trace is"),
        ({"discipline_down": CoDel(), "discipline_up": CoDel()}, "RTT 50 ms, queues codel, ±5 %"),
        ({"discipline_up": CoDel(0.02)}, "RTT 50 ms, queue up codel, ±5 %"),
        (
            {"discipline_down": FqCoDel(), "discipline_up": CoDel()},
            "RTT 50 ms, queue down fq_codel, queue up codel, ±5 %",
        ),
        ({"ip": (4,)}, "RTT 50 ms, IPv4, "),
        ({"families": (4, 6)}, "RTT 50 ms, IPv4 and IPv6, "),
        (
            {"impair_up": Impairments(loss_ratio=0.02, loss_burst_packets=3.0, bleach_ecn=True)},
            "RRC, impaired uplink (loss: 2 %, loss_burst: 3, bleach_ecn: true), its trace",
        ),
    ],
)
def test_a_link_says_what_is_not_usual(
    small: Scenario, changes: dict[str, Any], words: str
) -> None:
    lte = replace(small.links["lte"], **changes)
    text = listing.details(replace(small, links={**small.links, "lte": lte}))
    assert words in " ".join(text.split())


def test_a_link_of_another_name_says_its_kind(small: Scenario) -> None:
    named = replace(
        small, links={"home": small.links["wifi"], "lte": small.links["lte"]}, events=()
    )
    said = listing.details(named)
    assert "  home       Wi-Fi, 8 Mbit/s down" in said
    assert "home alone" in said
    assert "  LTE        LTE" not in said
