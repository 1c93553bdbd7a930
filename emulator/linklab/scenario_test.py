import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from linklab import scenario
from linklab.core.link_kinds import LTE, WIFI
from linklab.links import stack
from linklab.models.between_runs import BetweenRunsSettings
from linklab.models.carriers import CarrierSettings
from linklab.models.events import Event
from linklab.models.rrc import RrcSettings
from linklab.models.wifi import WifiSettings
from linklab.scenario import (
    ClientSettings,
    LinkSettings,
    Payload,
    Scenario,
    ScenarioError,
    TcpSettings,
)
from linklab.scenario.tcp import Ends

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
        events=(Event("wifi", 2.0, down_rate_bps=10_000), Event("wifi", 5.0, carrier="down")),
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
    with pytest.raises(ScenarioError, match=r"events\[0\].link: unknown value 'lte'; allowed: b,"):
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
        ("down: 40 Mbit/s", "down: 0 Mbit/s", "6: links.lte.down: …allowed: at least 1 kbit/s"),
        ("down: 40 Mbit/s", "down: 11 Gbit/s", "6: links.lte.down: …allowed: at most 10 Gbit/s"),
        ("down: 40 Mbit/s", "down: [1]", "6: links.lte.down: must be a single value"),
        ("down: 40 Mbit/s", "down:", "6: links.lte.down: has no value"),
        ("down: 40 Mbit/s", "dwon: 40 Mbit/s", "6: links.lte: unknown key 'dwon' (did you"),
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
        ("size: 1 MB", "size: 1 MB, seed: -1", "2: payload.seed: …allowed: 0 to"),
        ("size: 1 MB", "size: 1 MB, sha256: abc", "2: payload.sha256: …allowed: 64 digits of 0-9"),
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
        (
            "40 ms\n",
            "40 ms\n    rrc: {tail: 11 s, inactive: 11 s}\n",
            "9: …rrc.inactive: …below 11 s",
        ),
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
    with pytest.raises(ScenarioError, match=r"missing.yaml: there is no such scenario in /"):
        scenario.find("./missing.yaml")
    file.write_bytes(b"name: \xff\n")
    with pytest.raises(ScenarioError, match="not UTF-8"):
        scenario.load(file)


def test_older_run_directories_have_keys_that_are_not_used_any_more(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    now = scenario.to_yaml(scenario.find("hs-s7"))
    file.write_text(now + "published: [{algorithm: alg3, download: 1 s}]\nfindings: []\n")
    assert scenario.load(file, any_name=True) == scenario.find("hs-s7")
    with pytest.raises(ScenarioError, match="unknown key 'published'"):
        scenario.parse(file.read_text())


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


def test_a_nat_is_refused_on_a_link_of_ipv6_alone() -> None:
    nat = FAMILIES.replace("ip: 6}", "ip: 6, impair_up: {nat_udp: 30 s}}")
    with pytest.raises(ScenarioError, match=r"^<text>:6: .*a NAT translates IPv4 only"):
        scenario.parse(nat)


# --- The canonical form loads to the same scenario.

WHOLE = """\
name: whole
title: "One: 'line' # no comment, größer"
description: "Two\\nlines"
source: "- [x]"
payload: {size: 1234567 B, seed: 9223372036854775807, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}
step: 21 ms
sample: 501 ms
network: {ip: both}
tcp: {congestion_control: {client: reno, server: bbr}, ecn: accurate, rmem_max: 4097 B,
      wmem_max: 17 MiB, metrics_save: true, mptcp: true, mptcp_scheduler: blest}
client: {upper_limit: 1234567 B, padding: 12.3 %, overlap: 45.6 %, window: 1.234567 s,
         first_request: 7 B, segment: 8 kB}
energy: galaxy-s7
clients: [tested, {algorithm: alg1, added_rtt: 7 ms}]
traffic:
  - {link: wifi, direction: up, bulk: {connections: 2, congestion_control: reno}, from: 1 s, to: 2 s}
  - {link: lte, web: {page: 3 B, pause: 4 s, connections: 5, congestion_control: lia}}
  - {link: lte, call: {rate: 64 kbit/s, packet: 160 B}}
links:
  wifi:
    {down: 12.345678 Mbit/s, up: 1.234567 Mbit/s, rtt: 12.345678 ms, jitter: 1.2345 ms,
     loss: 0.123456789 %, loss_burst: 1.5, ip: 4, bandwidth: 19.999999999 Gbit/s,
     between_runs: 1.5 %, on_off: {rate: 1.5 Mbit/s, on: 1 ms, off: 86400 s},
     queue_down: {discipline: codel, size: 98765 B, target: 5.5 ms, interval: 101 ms, ecn: true},
     queue_up: 1514 B, stations: {count: 3, begins: 0.026 /s, ends: 0.06 /s},
     radio: {standard: n, width: 40 MHz, streams: 2, loss: 0.2 %, edge_loss: 1.5 %, edge_snr: 9.5 dB,
             loss_burst: 2.5, handover: full-scan, hysteresis: 6.5 dB, power: -17.5 dBm,
             loss_1m: 47.5 dB, exponent: 3.6,
             access_points: [{name: ap1, x: -1.5 m, y: 2.5 m}, {name: ap2, signal: -60.5 dBm}],
             path: [{at: 0 s, x: 1 m, y: 0 m}, {at: 1.5 s, x: 2 m, y: -3 m}]}}
  lte:
    {down: 7 Gbit/s, up: 1 kbit/s, rtt: 0 s, queue_down: {discipline: red},
     carriers: {count: 3, first: 41 %, delay: 2.6 s, sigma: 0.31, slow: 11 %, never: 1 %,
                trigger: 9001 B, trigger_time: 51 ms, idle: 1.29 s, key: connection},
     rrc: {promotion: 261 ms, inactivity: 101 ms, drx_cycle: 41 ms, tail: 11.3 s}}
events:
  - {at: 1.5 s, link: wifi, for: 1 ms, carrier: down, down: 1 kbit/s, up: 2 kbit/s, rtt: 11 ms,
     loss: 100 %, fade: 50.5 %, cap: 3 kbit/s, cross: 0 bit/s, outage: true}
  - {after: 12345 B, link: lte, cross: 7 bit/s}
"""
"""No key has its default."""


def is_within(part: Any, whole: Any) -> bool:
    """Tells whether a document has all that another one says."""
    if isinstance(part, dict):
        return all(key in whole and is_within(one, whole[key]) for key, one in part.items())
    if isinstance(part, list):
        return len(part) == len(whole) and all(map(is_within, part, whole))
    return bool(part == whole)


def test_the_canonical_form_has_every_key_and_loads_to_the_same_scenario() -> None:
    read = scenario.parse(WHOLE)
    written = scenario.to_yaml(read)
    assert is_within(yaml.load(WHOLE, yaml.BaseLoader), yaml.load(written, yaml.BaseLoader))
    assert scenario.parse(written) == read
    assert scenario.to_yaml(scenario.parse(written)) == written


WORDS = st.sampled_from(
    [
        *("name", "links", "wifi", "lte", "payload", "80 Mbit/s", "", "~", "<<", "*a", "&a", "'"),
        *("{", "}", "[", "]", ": ", "\n", "  ", "- ", "\t", "%"),
        *("!!binary x", "!!python/object:os.system"),
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
