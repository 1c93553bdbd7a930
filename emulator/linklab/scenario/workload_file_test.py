from dataclasses import replace
from pathlib import Path

import pytest

from linklab import scenario
from linklab.scenario import ScenarioError, ships, workload_names
from linklab.scenario.workload import MediaPlayer, Page, Rounds, Workload

LINKS = "links:\n  wifi: {down: 6 Mbit/s, up: 2 Mbit/s, rtt: 20 ms}\n"


def read(workload: str) -> scenario.Scenario:
    return scenario.parse(f"name: x\npayload: {{size: 1 MB}}\nworkload: {workload}\n{LINKS}")


def test_a_workload_over_a_scenario_s_links() -> None:
    links, page = scenario.find("mptcp-wglb"), scenario.find("mptcp-wglb+large-page")
    assert page.name == "mptcp-wglb+large-page"
    assert page.title == "a large page; MPTCP study, good Wi-Fi and bad LTE"
    assert page.workload == Workload(page=Page())
    assert page.payload.size_bytes == 10_500_000
    same = {"name", "title", "description", "source", "payload", "workload"}
    assert replace(page, **{key: getattr(links, key) for key in same}) == links
    assert scenario.parse(scenario.to_yaml(page)) == page


def test_a_workload_without_a_payload_takes_the_scenario_s() -> None:
    video = scenario.find("greenbag-drops-2+greenbag-110s")
    assert video.payload == scenario.find("greenbag-drops-2").payload
    assert video.workload.player is not None
    # 110 % of both links, 6.6 Mbit/s.
    assert video.workload.player.mean_rate_bps(video.payload.size_bytes) == 6_600_000


@pytest.mark.parametrize("name", workload_names())
def test_every_workload_that_ships(name: str) -> None:
    one = scenario.find(f"mptcp-wglg+{name}")
    assert one.workload.name != "file"
    assert one.title
    assert ships(one.name)


def test_files_of_a_user_s(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("name: own\nworkload: {paced: {rate: 1 Mbit/s}}\n")
    base = tmp_path / "base.yaml"
    base.write_text(f"name: base\npayload: {{size: 1 MB}}\n{LINKS}")
    assert scenario.find(f"{base}+music").name == "base+music"
    assert scenario.find(str(base)).workload == Workload()
    assert scenario.find(f"{base}+{own}").workload.name == "paced"
    own.write_text("name: other\nworkload: {paced: {rate: 1 Mbit/s}}\n")
    with pytest.raises(ScenarioError, match="own.yaml:1: name: 'other' differs from the file's"):
        scenario.find(f"mptcp-wglg+{own}")


def test_what_is_not_there() -> None:
    with pytest.raises(ScenarioError, match=r"'lage-page' \(did you mean 'large-page'\?\)"):
        scenario.find("mptcp-wglg+lage-page")
    with pytest.raises(ScenarioError, match="no scenario is called 'mptcp'"):
        scenario.find("mptcp+large-page")
    assert not ships("mptcp+large-page")
    assert not ships("mptcp-wglg+cinema")
    assert ships("mptcp-wglg")


@pytest.mark.parametrize(
    ("workload", "why"),
    [
        ("{}", ":3: workload: 0 workloads; needed: one of player, page, rounds, paced, upload"),
        ("{page: {}, paced: {rate: 1 Mbit/s}}", ":3: workload: 2 workloads; needed: one of"),
        ("{film: {}}", ":3: workload: unknown key 'film'; allowed: player, page"),
        ("{player: {}}", ":3: workload.player: needs either rate or length"),
        ("{player: {rate: 1 Mbit/s, length: 3 s}}", "needs either rate or length"),
        ("{player: {rate: 1}}", "workload.player.rate: '1' has no unit"),
        ("{player: {rate: 1 Mbit/s, start: 30 MB}}", ":3: workload.player.start: 30 MB is"),
        ("{player: {rate: 1 Mbit/s, high: 1 MB}}", "low: 4 MB is more than high; allowed: up to 1"),
        (
            "{player: {rate: 1 Mbit/s, segment: 1 MB, segment_length: 2 s}}",
            "segment_length: it and segment exclude each other",
        ),
        ("{page: {objects: 0}}", "workload.page.objects: '0' is out of range; allowed: 1 to 10000"),
        ("{rounds: {answer: 1 kB}}", "request"),
        ("{paced: {}}", "rate"),
    ],
)
def test_errors_say_where_and_what_is_allowed(workload: str, why: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(workload)
    assert why in str(caught.value)


ROUNDS = "{rounds: {answer: 1 MB, request: 1 kB}}"


@pytest.mark.parametrize(("name", "workload"), [("rounds", ROUNDS), ("upload", "{upload: {}}")])
def test_what_h2o_could_not_take_is_refused(tmp_path: Path, name: str, workload: str) -> None:
    """In one file, in a workload's with a payload, and where a workload takes a scenario's."""
    large = "payload:\n  size: 2000001 kB"
    why = f"payload.size: 2000001 kB is too large for {name}; allowed with it: 1 B to 2 GB"
    (tmp_path / "a.yaml").write_text(f"name: a\n{large}\nworkload: {workload}\n{LINKS}")
    (tmp_path / "b.yaml").write_text(f"name: b\n{large}\nworkload: {workload}\n")
    (tmp_path / "c.yaml").write_text(f"name: c\n{large}\n{LINKS}")
    (tmp_path / "d.yaml").write_text(f"name: d\nworkload: {workload}\n")
    a, b, c, d = (str(tmp_path / f"{one}.yaml") for one in "abcd")
    for file, said in ((a, f"{a}:3: "), (f"{c}+{b}", f"{b}:3: "), (f"{c}+{d}", f"{c}+{d}: ")):
        with pytest.raises(ScenarioError) as caught:
            scenario.find(file)
        assert str(caught.value) == said + why
    assert scenario.find(c).workload == Workload()  # A download may be as large as that.
    assert scenario.load(a, any_name=True).workload.name == name  # A run was, with another server.


def test_a_workload_may_send_so_much() -> None:
    for workload in (ROUNDS, "{upload: {}}"):
        text = f"name: x\npayload: {{size: 2 GB}}\nworkload: {workload}\n{LINKS}"
        assert scenario.parse(text).payload.size_bytes == 2_000_000_000


@pytest.mark.parametrize("key", ["answer", "request"])
def test_a_message_and_its_answer_find_room_in_a_guest(key: str) -> None:
    largest = "{rounds: {answer: 50 MB, request: 50 MB}}"
    assert read(largest).workload.rounds == Rounds(
        answer_bytes=50_000_000, request_bytes=50_000_000
    )
    with pytest.raises(ScenarioError, match=f"{key}: '50001 kB' is out of range; allowed: 1 B to"):
        read(largest.replace(f"{key}: 50 MB", f"{key}: 50001 kB"))


def test_a_file_s_download_says_nothing_of_a_workload() -> None:
    assert "\nworkload:" not in scenario.to_yaml(scenario.find("hs-s7"))
    video = read("{player: {length: 10 s, segment: 100 kB}}")
    assert video.workload == Workload(player=MediaPlayer(length_s=10.0, segment_bytes=100_000))
    assert scenario.parse(scenario.to_yaml(video)) == video
