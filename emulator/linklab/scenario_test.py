import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from linklab import scenario
from linklab.core import limits
from linklab.core.frames import FRAME_BYTES
from linklab.core.limits import MIN_RATE_BPS
from linklab.core.link_kinds import KINDS, LTE, WIFI, LinkKind, devices, in_order
from linklab.links import stack
from linklab.models.between_runs import MAX_RELATIVE_SD, BetweenRunsSettings
from linklab.models.carriers import CarrierSettings
from linklab.models.events import Event
from linklab.models.on_off import OnOffSettings
from linklab.models.roaming import HANDOVERS, AccessPoint, RoamingSettings, Waypoint
from linklab.models.rrc import RrcSettings
from linklab.models.stations import StationSettings
from linklab.models.wifi import WifiSettings
from linklab.queues.registry import DISCIPLINES
from linklab.scenario import (
    ClientSettings,
    LinkSettings,
    Payload,
    Scenario,
    ScenarioError,
    TcpSettings,
)
from linklab.scenario.link import keys_of
from linklab.scenario.tcp import CONGESTION_CONTROLS, ECN, Ends

ALL_KINDS = ", ".join(KINDS)

LTE_KEYS = keys_of(LTE)

SMALL = """\
name: small
payload: {size: 1 MB}
links:
  wifi: {down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}
  lte:
    down: 40 Mbit/s
    up: 10 Mbit/s
    rtt: 40 ms
events:
  - {at: 2 s, link: wifi, down: 10 kbit/s}
  - {at: 5 s, link: wifi, carrier: down}
"""


def test_a_small_scenario_and_its_defaults() -> None:
    read = scenario.parse(SMALL)
    assert read == Scenario(
        name="small",
        title="",
        description="",
        source="",
        payload=Payload(size_bytes=1_000_000, seed=1, sha256=None),
        links={
            "wifi": LinkSettings(
                kind=WIFI,
                device="wlan0",
                down_rate_bps=60_000_000,
                up_rate_bps=20_000_000,
                rtt_s=0.01,
                jitter_s=0.0,
                loss_ratio=0.0,
                loss_burst_packets=1.0,
                queue_down_bytes=3_000_000,  # 0.4 s of 60 Mbit/s
                queue_up_bytes=1_000_000,
                bandwidth_bps=78_000_000,
            ),
            "lte": LinkSettings(
                kind=LTE,
                device="rmnet0",
                down_rate_bps=40_000_000,
                up_rate_bps=10_000_000,
                rtt_s=0.04,
                jitter_s=0.0,
                loss_ratio=0.0,
                loss_burst_packets=1.0,
                queue_down_bytes=2_000_000,
                queue_up_bytes=1_000_000,
                bandwidth_bps=52_000_000,
            ),
        },
        events=(
            Event("wifi", 2.0, down_rate_bps=10_000),
            Event("wifi", 5.0, carrier="down"),
        ),
        tcp=TcpSettings(Ends(), "passive", 16 << 20, 16 << 20, False, False),
        client=ClientSettings(1_200_000, 0.1, 0.6, 1.0, 1_000_000),
    )
    assert list(read.links) == ["wifi", "lte"]


def test_the_order_of_links_is_fixed() -> None:
    link = "{down: 1 Mbit/s, up: 1 Mbit/s, rtt: 0 s}"
    text = f"name: a\npayload: {{size: 1 B}}\nlinks: {{lte: {link}, wifi: {link}}}\n"
    assert list(scenario.parse(text).links) == ["wifi", "lte"]


LINK = "down: 1 Mbit/s, up: 1 Mbit/s, rtt: 0 s"


def _with_links(*links: str) -> str:
    return f"name: a\npayload: {{size: 1 B}}\nlinks: {{{', '.join(links)}}}\n"


def test_links_have_names_of_their_own_and_a_kind() -> None:
    text = _with_links(
        f"b: {{{LINK}, kind: lte}}", f"lte: {{{LINK}}}", f"home: {{{LINK}, kind: wifi}}"
    )
    links = scenario.parse(text).links
    assert [(name, link.kind, link.device) for name, link in links.items()] == [
        ("home", WIFI, "wlan0"),
        ("b", LTE, "rmnet0"),
        ("lte", LTE, "rmnet1"),
    ]
    written = scenario.to_yaml(scenario.parse(text))
    assert "home: {kind: wifi, down:" in written
    assert "  lte: {down:" in written


def test_events_name_any_link() -> None:
    text = _with_links(f"b: {{{LINK}, kind: lte}}", f"a: {{{LINK}, kind: lte}}")
    event = "events: [{at: 1 s, link: %s, carrier: down}]\n"
    assert scenario.parse(text + event % "a").events[0].link == "a"
    with pytest.raises(
        ScenarioError, match=r"events\[0\].link: unknown value 'lte'; allowed: b, a$"
    ):
        scenario.parse(text + event % "lte")


def test_a_scenario_has_one_to_eight_links() -> None:
    link = f"{{{LINK}, kind: wifi}}"
    assert len(scenario.parse(_with_links(f"lte: {{{LINK}}}")).links) == 1
    assert len(scenario.parse(_with_links(*(f"l{n}: {link}" for n in range(8)))).links) == 8
    with pytest.raises(ScenarioError, match=r":3: links: 9 links; allowed: 1 to 8$"):
        scenario.parse(_with_links(*(f"l{n}: {link}" for n in range(9))))
    with pytest.raises(ScenarioError, match=r":3: links: 0 links; allowed: 1 to 8$"):
        scenario.parse(_with_links())


def test_a_kind_says_which_models_a_link_may_have() -> None:
    with pytest.raises(ScenarioError, match=r"links.b: unknown key 'stations'; allowed: down"):
        scenario.parse(_with_links(f"b: {{{LINK}, kind: lte, stations: {{count: 1}}}}"))
    link = f"{{{LINK}, kind: lte, carriers: {{count: 3}}}}"
    carriers = scenario.parse(_with_links(f"b: {link}")).links["b"].model(CarrierSettings)
    assert carriers == CarrierSettings(3)


def test_access_points_of_all_links_have_names_of_their_own() -> None:
    link = f"{{{LINK}, kind: wifi, radio: {{standard: ac, access_points: [{{name: %s}}]}}}}"
    assert scenario.parse(_with_links(f"a: {link % 'ap1'}", f"b: {link % 'ap2'}"))
    with pytest.raises(ScenarioError, match=r"links.b.radio.access_points\[0\].name: 'ap1' is"):
        scenario.parse(_with_links(f"a: {link % 'ap1'}", f"b: {link % 'ap1'}"))


def test_a_link_can_have_other_models() -> None:
    lte = scenario.parse(_with_links(f"lte: {{{LINK}, between_runs: 10 %, rrc: {{}}}}")).links[
        "lte"
    ]
    assert lte.models == (BetweenRunsSettings(0.1), RrcSettings())
    assert lte.having(CarrierSettings(2)).models == (
        *lte.models[:1],
        CarrierSettings(2),
        RrcSettings(),
    )
    assert lte.having(BetweenRunsSettings(0.2)).model(BetweenRunsSettings) == BetweenRunsSettings(
        0.2
    )
    assert lte.without(RrcSettings).models == lte.models[:1]
    assert lte.without(CarrierSettings) == lte
    assert lte.model(WifiSettings) is None


def test_queues_of_both_directions() -> None:
    text = SMALL.replace("rtt: 10 ms", "rtt: 10 ms, queue: 500 kB, queue_up: 100 kB")
    wifi = scenario.parse(text).links["wifi"]
    assert (wifi.queue_down_bytes, wifi.queue_up_bytes) == (500_000, 100_000)


def test_anchors_and_merge_keys() -> None:
    text = """\
name: anchors
payload: {size: 1 MB}
links:
  wifi: &link {down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}
  lte: {<<: *link, rtt: 40 ms}
"""
    links = scenario.parse(text).links
    assert (links["lte"].down_rate_bps, links["lte"].rtt_s) == (60_000_000, 0.04)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("down: 40 Mbit/s", "down: 80", "6: links.lte.down: …allowed: a rate such as '80 Mbit/s'"),
        ("down: 40 Mbit/s", "down: 80 ms", "6: links.lte.down: …allowed: a rate such as '80"),
        ("down: 40 Mbit/s", "down: 0 Mbit/s", "6: links.lte.down: …allowed: at least 1 kbit/s"),
        ("down: 40 Mbit/s", "down: -1 Mbit/s", "6: links.lte.down: …allowed: a rate such as '80"),
        ("down: 40 Mbit/s", "down: 11 Gbit/s", "6: links.lte.down: …allowed: at most 10 Gbit/s"),
        ("down: 40 Mbit/s", "down: [1]", "6: links.lte.down: must be a single value"),
        ("down: 40 Mbit/s", "down:", "6: links.lte.down: has no value"),
        (
            "down: 40 Mbit/s",
            "dwon: 40 Mbit/s",
            "6: links.lte: unknown key 'dwon' (did you mean 'down'?)",
        ),
        ("    rtt: 40 ms\n", "", "6: links.lte: …needed: down, up, rtt; optional: "),
        ("rtt: 40 ms\n", "rtt: 40 ms\n    up: 3 Mbit/s\n", "9: links.lte.up: is given twice"),
        ("rtt: 40 ms\n", "rtt: 40 ms\n    loss: 120 %\n", "9: links.lte.loss: …allowed: 0 % to"),
        ("rtt: 40 ms\n", "rtt: 40 ms\n    jitter: 21 ms\n", "9: links.lte.jitter: a jitter of 21"),
        ("rtt: 40 ms\n", "rtt: 40 ms\n    queue: 1513 B\n", "9: links.lte.queue: '1513 B' is out"),
        ("lte:", "nr:", "6: links.nr: …needed: kind, of "),
        ("lte:", "ltr:", "6: links.ltr: 'ltr' (did you mean 'lte'?) has no kind; needed: kind, of"),
        ("lte:", "lte-2:", "5: links: …allowed: up to 12 of a-z and 0-9, a letter first, such as"),
        ("rtt: 40 ms\n", "rtt: 40 ms\n    kind: wifi\n", "9: links.lte.kind: …allowed: lte, or"),
        ("rtt: 40 ms\n", "rtt: 40 ms\n    kind: nr\n", "9: links.lte.kind: …allowed: "),
        ("size: 1 MB", "size: 0 B", "2: payload.size: …allowed: 1 B to 10 GB"),
        ("size: 1 MB", "size: 10001 MB", "2: payload.size: …allowed: 1 B to 10 GB"),
        ("size: 1 MB", "size: 1 MB, seed: -1", "2: payload.seed: …allowed: 0 to"),
        ("size: 1 MB", "size: 1 MB, sha256: abc", "2: payload.sha256: …allowed: 64 digits of 0-9"),
        ("at: 5 s", "at: -5 s", "11: events[1].at: …allowed: a duration such as '10 ms'"),
        ("at: 5 s", "at: 1 s", "11: events[1].at: …allowed: at least 2 s"),
        ("link: wifi, carrier", "link: wlan, carrier", "11: events[1].link: …allowed: wifi, lte"),
        ("carrier: down}", "carrier: off}", "11: events[1].carrier: …allowed: up, down"),
        (", carrier: down}", "}", "11: events[1]: …allowed: any of carrier, down, up, rtt"),
        ("at: 5 s, ", "", "11: events[1]: …allowed: one of at (a time) and after (bytes received)"),
        ("carrier: down}", "jitter: 6 ms}", "11: events[1].jitter: …allowed: a jitter of at most"),
        ("name: small\n", "name: Small\n", "1: name: 'Small' is no name; allowed: "),
        ("name: small\n", "- a\n", "2: not valid YAML: "),
        ("name: small\n", "name: [\n", "3: not valid YAML: "),
        ("size: 1 MB}", "size: 1 MB}\ntcp: {congestion_control: cubik}", "3: …mean 'cubic'"),
        ("name: small\n", "name: small\ntcp: {metrics_save: 1}\n", "2: tcp.metrics_save: '1' is"),
        ("name: small\n", "name: small\nclient: {window: 0 s}\n", "2: client.window: '0 s' is"),
        ("name: small\n", "name: small\npublished: []\n", "2: unknown key 'published'; allowed: "),
        ("40 ms\n", "40 ms\n    on_off: {rate: 1 Mbit/s, on: 0 s}\n", "9: …on_off.on: …1 ms"),
        ("name: small\n", "name: small\ntcp: &t {<<: *t}\n", "2: *t is named within what it"),
        ("name: small\n", "name: small\n? [a]\n: b\n", "2: a key must be a word"),
    ],
)
def test_errors_say_where_what_and_what_is_allowed(old: str, new: str, expected: str) -> None:
    assert old in SMALL
    with pytest.raises(ScenarioError) as caught:
        scenario.parse(SMALL.replace(old, new, 1), "x.yaml")
    place, *words = expected.split("…")
    assert str(caught.value).startswith(f"x.yaml:{place}")
    assert all(one in str(caught.value) for one in words)
    assert "\n" not in str(caught.value)


def test_events_may_come_at_the_same_time_and_the_later_one_counts() -> None:
    both = "  - {at: 6 s, link: wifi, rtt: 50 ms}\n  - {at: 6 s, link: wifi, rtt: 60 ms}\n"
    model = stack.models(scenario.parse(SMALL + both), 1)["wifi"]
    assert model.at(6.0).delay_s == 0.03


def test_jitter_is_checked_against_what_is_in_force_when_the_event_begins() -> None:
    held = "  - {at: 6 s, link: wifi, rtt: 50 ms, for: 2 s}\n"
    at_7 = held + "  - {at: 7 s, link: wifi, jitter: 25 ms, for: 1 s}\n"
    assert scenario.parse(SMALL + at_7).events[-1].jitter_s == 0.025
    with pytest.raises(ScenarioError, match=r"a jitter of 25 ms does not fit"):
        scenario.parse(SMALL + at_7.replace("at: 7 s", "at: 8 s"))


def test_jitter_is_checked_against_the_rtt_in_force() -> None:
    late = "  - {at: 6 s, link: wifi, rtt: 50 ms}\n  - {at: 7 s, link: wifi, jitter: 25 ms}\n"
    assert scenario.parse(SMALL + late).events[-1].jitter_s == 0.025
    shrunk = late + "  - {at: 8 s, link: wifi, rtt: 20 ms}\n"
    with pytest.raises(ScenarioError, match=r":14: events\[4\].rtt: a jitter of 25 ms"):
        scenario.parse(SMALL + shrunk)


def test_a_trace_s_losses_are_checked_against_the_link_s_bursts(tmp_path: Path) -> None:
    trace, file = tmp_path / "tr.csv", tmp_path / "small.yaml"
    file.write_text(
        SMALL.replace("rtt: 40 ms\n", "rtt: 40 ms\n    loss_burst: 5\n    trace: {file: tr.csv}\n")
    )
    trace.write_text("t,down_mbit,loss\n0,10,0.01\n1,10,0.9\n2,10,1\n3,10,0.02\n")
    with pytest.raises(ScenarioError) as caught:
        scenario.load(file)
    assert str(caught.value) == (
        f"{file}:10: links.lte.trace.file: a loss of 0.9 with bursts of 5 packets; "
        "allowed: 0 to 0.833333, else there is no packet between two bursts"
    )
    trace.write_text(trace.read_text().replace("0.9", "0.8"))  # All are lost without bursts.
    scenario.load(file)


def test_events_of_different_links_may_stand_in_any_order() -> None:
    text = SMALL + "  - {at: 1 s, link: lte, carrier: down}\n"
    assert scenario.parse(text).events[-1].at_s == 1.0


def test_several_documents_and_none_are_refused() -> None:
    with pytest.raises(ScenarioError, match="single document"):
        scenario.parse(SMALL + "---\n" + SMALL)
    with pytest.raises(ScenarioError, match="the file is empty"):
        scenario.parse("# nothing\n")
    with pytest.raises(ScenarioError, match="must be a mapping"):
        scenario.parse("- 1\n")


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    with pytest.raises(ScenarioError, match="nested too deeply"):
        scenario.parse("[\n" * 2_000)  # A line each, for which PyYAML takes linear time.


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / "profiles"
    file = directory / "own" / "small.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(SMALL)
    read = scenario.load(file)
    assert read.path == file
    assert scenario.find("small", directory) == read
    assert scenario.find("profiles/own/small.yaml") == read
    assert scenario.list_all(directory) == [read]
    (directory / "early").mkdir()
    (directory / "early" / "zoo.yaml").write_text(SMALL.replace("name: small", "name: zoo"))
    assert scenario.names_in(directory) == ["small", "zoo"], "in the order of names, not of folders"
    (directory / "early" / "zoo.yaml").unlink()

    copy = tmp_path / "scenario.yaml"
    copy.write_text(scenario.to_yaml(read))
    assert scenario.load(copy, any_name=True) == read
    with pytest.raises(ScenarioError, match=r"^scenario.yaml:1: name: 'small' differs"):
        scenario.load(copy)

    with pytest.raises(ScenarioError, match="did you mean 'small'.*; allowed: small"):
        scenario.find("smal", directory)
    with pytest.raises(ScenarioError, match="missing.yaml: there is no such scenario"):
        scenario.find("./missing.yaml")
    file.write_bytes(b"name: \xff\n")
    with pytest.raises(ScenarioError, match="not UTF-8"):
        scenario.load(file)


def test_a_control_character_is_an_error_with_its_line() -> None:
    with pytest.raises(ScenarioError, match=r"^x.yaml:2: not valid YAML: character"):
        scenario.parse("name: a\ntitle: \x01\n", "x.yaml")


SHIPPED = [
    "hs-s6",
    "hs-s7",
    "ls",
    "static-7-66",
    "static-80-50",
    "wifi-collapse",
    "wifi-gone",
    "wifi-outage",
]


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_scenarios_load_and_say_where_they_come_from(name: str) -> None:
    shipped = scenario.find(name)
    assert shipped.title
    assert shipped.source
    assert shipped.payload.sha256
    assert shipped.client == ClientSettings()  # constants are fixed once over all scenarios
    assert shipped.tcp == TcpSettings()
    assert scenario.parse(scenario.to_yaml(shipped)) == shipped


def test_older_run_directories_have_keys_that_are_not_used_any_more(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    now = scenario.to_yaml(scenario.find("hs-s7"))
    file.write_text(now + "published: [{algorithm: alg3, download: 1 s}]\nfindings: []\n")
    assert scenario.load(file, any_name=True) == scenario.find("hs-s7")
    with pytest.raises(ScenarioError, match="unknown key 'published'"):
        scenario.parse(file.read_text())


# --- The canonical form loads to the same scenario.

RATES = st.integers(MIN_RATE_BPS, limits.MAX_RATE_BPS)
TIMES = st.floats(0, limits.MAX_TIME_S)
SHARES = st.floats(0, 1)
NAMES = st.from_regex(re.compile(r"[a-z0-9][a-z0-9-]{0,20}", re.ASCII), fullmatch=True)
QUEUES = st.integers(FRAME_BYTES, limits.MAX_QUEUE_BYTES)
FAMILIES = """\
name: a
payload: {size: 1 MB}
network: {ip: both}
links:
  wifi: {down: 10 Mbit/s, up: 5 Mbit/s, rtt: 20 ms, ip: 4}
  lte: {down: 10 Mbit/s, up: 5 Mbit/s, rtt: 20 ms, ip: 6}
  lte2: {kind: lte, down: 10 Mbit/s, up: 5 Mbit/s, rtt: 20 ms}
"""


def test_a_link_has_the_network_s_families_or_some_of_them() -> None:
    one = scenario.parse(FAMILIES)
    assert one.network.families == (4, 6)
    assert {name: link.families for name, link in one.links.items()} == {
        "wifi": (4,),
        "lte": (6,),
        "lte2": (4, 6),
    }
    assert scenario.parse(scenario.to_yaml(one)) == one
    usual = scenario.parse(re.sub(r"network.*\n|, ip: \d", "", FAMILIES))
    assert {link.families for link in usual.links.values()} == {(4,)}
    assert not re.search(r"network|\bip:", scenario.to_yaml(usual))


@pytest.mark.parametrize(
    ("network", "words"),
    [
        ("", "<text>:6: links.lte.ip: the server has IPv4 only, not IPv6; allowed: 4, or both in"),
        ("network: {ip: 6}", "<text>:5: links.wifi.ip: the server has IPv6 only, not IPv4"),
        ("network: {ip: 5}", "<text>:3: network.ip: unknown value '5'; allowed: 4, 6, both"),
    ],
)
def test_a_family_that_the_server_lacks_is_refused(network: str, words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        scenario.parse(FAMILIES.replace("network: {ip: both}", network))
    assert str(refused.value).startswith(words)


SIZES = st.integers(1, limits.MAX_PAYLOAD_BYTES)
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"], include_characters="\n"),
    max_size=40,
).map(str.strip)
WORDED = TEXTS.filter(bool)


ON_OFF = st.builds(OnOffSettings, RATES, st.floats(0.001, 86_400), st.floats(0.001, 86_400))
CARRIERS = st.builds(
    CarrierSettings,
    count=st.integers(1, 32),
    first_share=st.floats(0.001, 1),
    delay_median_s=st.floats(0.001, 600),
    delay_sigma=st.floats(0, 3),
    slow_probability=SHARES,
    never_probability=SHARES,
    trigger_bytes=st.integers(1, 100_000_000),
    trigger_s=st.floats(0, 10),
    idle_s=st.floats(0.02, 60),
    key=st.sampled_from(["device", "connection"]),
)
RRC = st.builds(
    RrcSettings,
    promotion_s=st.floats(0, 10),
    inactivity_s=st.floats(0.001, 10),
    drx_cycle_s=st.floats(0.01, 10.24),
    tail_s=st.floats(10.5, 600),
)
METRES = st.floats(-1000, 1000)
RADIOS = st.builds(
    WifiSettings,
    standard=st.sampled_from(["n", "ac"]),
    roaming=st.builds(
        RoamingSettings,
        access_points=st.lists(
            st.builds(
                AccessPoint,
                st.from_regex(r"x[a-z0-9]{1,6}", fullmatch=True),
                METRES,
                METRES,
                st.none() | st.floats(-120, 0),
            ),
            min_size=1,
            max_size=3,
            unique_by=lambda point: point.name,
        ).map(tuple),
        path=st.lists(
            st.builds(Waypoint, st.floats(0, 86_400), METRES, METRES),
            min_size=1,
            max_size=3,
            unique_by=lambda point: point.t_s,
        ).map(lambda points: tuple(sorted(points, key=lambda point: point.t_s))),
        handover=st.sampled_from(list(HANDOVERS.values())),
        hysteresis_db=st.floats(0, 30),
        power_dbm=st.floats(-20, 40),
        loss_1m_db=st.floats(0, 100),
        exponent=st.floats(1, 8),
    ),
    width_mhz=st.sampled_from([20, 40]),
    streams=st.integers(1, 2),
    stations=st.builds(
        StationSettings, st.integers(0, 100), st.floats(0.0001, 100), st.floats(0.0001, 100)
    ),
    access=st.none(),
    loss_ratio=st.floats(0, 0.5),
    edge_loss_ratio=st.floats(0, 0.5),
    edge_snr_db=st.floats(-5, 40),
    loss_burst_packets=st.floats(1, 1000),
)


BETWEEN_RUNS = st.builds(BetweenRunsSettings, st.floats(0, MAX_RELATIVE_SD, exclude_min=True))
MODELS_OF = {"wifi": (RADIOS,), "lte": (CARRIERS, RRC)}


@st.composite
def link_settings(draw: st.DrawFn, kind: LinkKind, device: str) -> LinkSettings:
    rtt_s = draw(st.floats(0, limits.MAX_RTT_S))
    return LinkSettings(
        kind=kind,
        device=device,
        down_rate_bps=draw(RATES),
        up_rate_bps=draw(RATES),
        rtt_s=rtt_s,
        jitter_s=draw(st.floats(0, rtt_s / 2)),
        loss_ratio=draw(SHARES),
        loss_burst_packets=1.0,
        queue_down_bytes=draw(QUEUES),
        discipline_down=draw(
            st.sampled_from([one.facing(one.table.settings(), "down") for one in DISCIPLINES])
        ),
        queue_up_bytes=draw(QUEUES),
        bandwidth_bps=draw(RATES),
        models=tuple(
            settings
            for one in (BETWEEN_RUNS, ON_OFF, *MODELS_OF.get(kind.name, ()))
            if (settings := draw(st.none() | one)) is not None
        ),
    )


@st.composite
def links(draw: st.DrawFn) -> dict[str, LinkSettings]:
    kinds = draw(
        st.dictionaries(
            st.from_regex(re.compile("[a-z][a-z0-9]{0,11}", re.ASCII), fullmatch=True),
            st.sampled_from(list(KINDS.values())),
            min_size=1,
            max_size=4,
        )
    )
    names = in_order({name: KINDS.get(name, kind) for name, kind in kinds.items()})
    kinds = {name: KINDS.get(name, kinds[name]) for name in names}
    made = {
        name: draw(link_settings(kind, device))
        for (name, kind), device in zip(kinds.items(), devices(kinds.values()), strict=True)
    }
    points = [point for link in made.values() for point in link.access_points]
    assume(len(points) == len(set(points)))
    return made


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    made = draw(links())
    times = draw(st.lists(TIMES, unique=True, max_size=4).map(sorted))
    rate_events = st.builds(
        Event,
        st.sampled_from(list(made)),
        carrier=st.sampled_from([None, "up", "down"]),
        down_rate_bps=RATES,
        up_rate_bps=st.none() | RATES,
        loss_ratio=st.none() | SHARES,
        duration_s=st.just(math.inf) | st.floats(0.001, 86_400),
        fade_ratio=st.none() | SHARES,
        cap_bps=st.none() | RATES,
        cross_bps=st.none() | RATES,
        outage=st.booleans(),
    )
    events = (
        *(replace(draw(rate_events), at_s=t) for t in times),
        *(replace(draw(rate_events), after_bytes=draw(SIZES)) for _ in times[:2]),
    )
    sizes = st.integers(4096, (1 << 31) - 1)
    controls = st.sampled_from(CONGESTION_CONTROLS)
    return Scenario(
        name=draw(NAMES),
        title=draw(TEXTS),
        description=draw(TEXTS),
        source=draw(TEXTS),
        payload=draw(
            st.builds(
                Payload,
                SIZES,
                st.integers(0, (1 << 63) - 1),
                st.none() | st.from_regex(re.compile("[0-9a-f]{64}"), fullmatch=True),
            )
        ),
        links=made,
        events=events,
        tcp=draw(
            st.builds(
                TcpSettings,
                st.builds(Ends, controls, controls),
                st.sampled_from(list(ECN)),
                sizes,
                sizes,
                st.booleans(),
                st.booleans(),
            )
        ),
        client=draw(st.builds(ClientSettings, SIZES, SHARES, SHARES, st.floats(1e-3, 3600), SIZES)),
    )


@given(scenarios())
def test_the_canonical_form_loads_to_the_same_scenario(one: Scenario) -> None:
    written = scenario.to_yaml(one)
    read = scenario.parse(written)
    assert read == one
    assert scenario.to_yaml(read) == written


WORDS = st.sampled_from(
    [
        "name",
        "links",
        "wifi",
        "lte",
        "<<",
        "*a",
        "&a",
        "80 Mbit/s",
        "payload",
        "",
        "~",
        "{",
        "}",
        "[",
        "]",
        ": ",
        "\n",
        "  ",
        "- ",
        "'",
        "!!binary x",
        "!!python/object:os.system",
        "\t",
        "%",
    ]
)


@given(st.text(max_size=60) | st.lists(WORDS, max_size=25).map("".join))
def test_any_text_is_refused_with_a_place_or_loads(text: str) -> None:
    try:
        scenario.parse(text, "x.yaml")
    except ScenarioError as error:
        assert str(error).startswith("x.yaml:")


@given(st.data())
def test_a_mutated_scenario_is_refused_with_a_place_or_loads(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(SMALL)))
    end = data.draw(st.integers(at, min(len(SMALL), at + 8)))
    text = SMALL[:at] + data.draw(WORDS | st.text(max_size=3)) + SMALL[end:]
    try:
        scenario.parse(text, "x.yaml")
    except ScenarioError as error:
        assert str(error).startswith("x.yaml:")


def test_python_tags_do_nothing() -> None:
    with pytest.raises(ScenarioError):
        scenario.parse("!!python/object/apply:os.system ['true']")


def test_shipped_files_are_plain_yaml() -> None:
    for name in SHIPPED:
        yaml.safe_load(scenario.file_of(name).read_text())


def test_a_directory_may_be_called_with_a_plus(tmp_path: Path) -> None:
    (tmp_path / "x y+z").mkdir()
    file = tmp_path / "x y+z" / "none.yaml"
    with pytest.raises(ScenarioError, match=r"x y\+z/none\.yaml: there is no such scenario"):
        scenario.find(str(file))


@pytest.mark.parametrize("base", ["hs-s7", "x y+z/small.yaml"])
def test_a_workload_s_directory_may_be_called_with_a_plus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str
) -> None:
    monkeypatch.chdir(tmp_path)
    directory = Path("x y+z")
    directory.mkdir()
    (directory / "small.yaml").write_text(SMALL)
    (directory / "sends.yaml").write_text("name: sends\nworkload: {upload: {}}\n")
    for place in (directory, directory.resolve()):
        assert scenario.find(f"{base}+{place}/sends.yaml").name.endswith("+sends")
        with pytest.raises(ScenarioError, match=r"x y\+z/none\.yaml: there is no such workload"):
            scenario.find(f"{base}+{place}/none.yaml")
