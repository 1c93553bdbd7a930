import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from shlex import split

import msgspec
import pytest

from linklab.core import link_kinds, units
from linklab.core.paths import MULTILINK, REPOSITORY
from linklab.lab.multipath.path_use import PathUse
from linklab.places.guest import locked
from linklab.runs import clients
from linklab.runs.clients import Task, client_of, names, registry
from linklab.scenario import ClientSettings, Scenario
from linklab.scenario.clients import Downloader
from linklab.scenario.workload import MediaPlayer, Upload, Workload

LINKS = ("wifi", "lte")
URL = "https://10.0.0.1/payload.bin"
CHANGES_TCP = ("offloading-ack", "aggregating-ack", "freeze", "loss-fetching", "super-aggregation")
QUIC = ("noq", "noq-bbr3", "tquic", "tquic-bbr", "tquic-wifi", "tquic-lte")
CURL = [*split("curl --silent --show-error --fail --cacert /ca.pem")]


@pytest.fixture
def task(small: Scenario) -> Task:
    client = ClientSettings(
        upper_limit_bytes=3_000_000,
        padding=0.2,
        overlap=0.5,
        window_s=2.0,
        first_request_bytes=2_000_000,
    )
    return Task(
        scenario=replace(small, client=client),
        url=URL,
        ca_file="/ca.pem",
        output="/tmp/x/out",
        run_dir="/run",
        payload="/payload.bin",
        sha256="abcd",
        multilink="/build/multilink",
        wireless="/wireless",
        energy="/run/energy.yaml",
        peers="/peers",
    )


@pytest.mark.parametrize(
    ("size", "ranges"),
    [
        (9_999_999, ["0-9999999"]),
        (10_000_000, ["0-9999999"]),
        (20_000_001, ["0-9999999", "10000000-19999999", "20000000-29999999"]),
    ],
)
def test_curl_in_pieces_asks_for_each_byte_once(
    task: Task, tmp_path: Path, size: int, ranges: list[str]
) -> None:
    file = tmp_path / "its file"
    payload = replace(task.scenario.payload, size_bytes=size)
    task = replace(task, scenario=replace(task.scenario, payload=payload), output=str(file))
    words = client_of("curl-pieces-lte").command(task)
    words[words.index("curl")] = "echo"  # It prints what curl would be called with.
    subprocess.run(words, check=True)
    asked = [line.split() for line in file.read_text().splitlines()]
    assert [line[-2:] for line in asked] == [["--range", one] for one in ranges]
    assert {tuple(line[:-2]) for line in asked} == {(*CURL[1:], "--interface", "rmnet0", URL)}
    words[words.index("echo")] = "false"
    assert subprocess.run(words, check=False).returncode != 0


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo whole >payload.bin; while test -e payload.bin; do sleep 0.1; done", "whole\n"),
        ("exit 1", ""),
    ],
)
def test_tquic_ends_with_the_file(task: Task, tmp_path: Path, script: str, output: str) -> None:
    """The script runs as TQUIC's client, which lives longer than the file takes, or fails."""
    file = tmp_path / "its file"
    words = client_of("tquic").command(replace(task, output=str(file)))
    words = [*words[: words.index("/peers/tquic_client")], "sh", "-c", script]
    subprocess.run(words, check=output != "", timeout=60, cwd=tmp_path)
    assert file.read_text() == output


COMMANDS = Path(__file__).with_name("testdata") / "commands.txt"


def test_what_each_client_is_called_with(task: Task) -> None:
    """For a file, a player and an upload. `make generate` writes the commands: look at their diff."""
    lines = []
    for workload in (Workload(), Workload(player=MediaPlayer(rate_bps=800_000)), UPLOAD):
        scenario = replace(task.scenario, workload=workload)
        one = replace(task, scenario=scenario)
        for name in clients.able(scenario):
            words = (
                word.replace(sys.executable, "python").replace(str(REPOSITORY), "/repository")
                for word in client_of(name).command(one)
            )
            lines.append(f"{workload.name} {name}: {shlex.join(words)}\n")
    text = "".join(lines)
    if os.environ.get("LINKLAB_GENERATE"):
        COMMANDS.write_text(text)
    assert COMMANDS.read_text() == text


def playing(scenario: Scenario) -> Scenario:
    return replace(scenario, workload=Workload(player=MediaPlayer(rate_bps=800_000)))


UPLOAD = Workload(upload=Upload())


def test_who_can_do_a_workload(small: Scenario) -> None:
    player = playing(small)
    every = set(names(LINKS))
    curl = {f"{who}-{link}" for who in ("curl", "curl-pieces") for link in LINKS}
    foreign = {*curl, *CHANGES_TCP, *QUIC, "aria2-2", "aria2-8", "aria2-16"}
    assert every - set(clients.able(player)) == foreign
    assert every - set(clients.able(small)) == {"direct-wifi", "direct-lte"}
    assert clients.chosen("peers", player) == ["direct-wifi", "direct-lte", "mptcp"]
    assert "direct-wifi" not in clients.chosen("peers", small)
    with pytest.raises(ValueError, match="^curl-wifi cannot do the workload of small, player;"):
        clients.chosen("alg3,curl-wifi", player)
    with pytest.raises(ValueError, match="^direct-lte cannot do the workload of small, file; "):
        clients.named("direct-lte", small)


THREE = ("wifi", "lte", "lte2")


def three(small: Scenario) -> Scenario:
    further = replace(small.links["lte"], device="rmnet1", bandwidth_bps=1_000_000)
    return replace(small, links={**small.links, "lte2": further})


def test_commands_of_three_links(task: Task, small: Scenario) -> None:
    task = replace(task, scenario=three(small))
    assert "wlan0,rmnet0,rmnet1" in " ".join(client_of("aria2-2").command(task))
    assert client_of("curl-lte2").command(task)[-4] == "rmnet1"
    words = client_of("alg3").command(task)
    assert "lte2=rmnet1" in words
    assert "lte2=1000000bit/s" in words
    assert "wifi=wlan0" not in client_of("single-lte2").command(task)
    assert client_of("noq").command(task)[-3:] == ["10.1.0.2", "10.2.0.2", "10.3.0.2"]
    assert "10.1.0.2,10.2.0.2,10.3.0.2" in client_of("tquic").command(task)
    assert "10.3.0.2" in client_of("tquic-lte2").command(task)


def test_every_link_has_clients_of_its_own() -> None:
    assert set(names(THREE)) - set(names(THREE[:2])) == {
        *("direct-lte2", "single-lte2", "curl-lte2", "curl-pieces-lte2"),
        *("mptcp-lte2", "mptcp-2016-lte2", "tquic-lte2"),
    }
    over_mptcp = {name for name in names(THREE) if client_of(name).multipath}
    assert over_mptcp == {"mptcp", *clients.multipath(THREE)}
    assert [client_of(name).name for name in names(THREE)] == list(names(THREE))
    with pytest.raises(KeyError):
        client_of("alg4")


def test_groups() -> None:
    thesis = ("single-wifi", "single-lte", "naive", "alg1", "alg2", "alg3")
    assert clients.published(LINKS) == thesis
    assert clients.published(THREE)[:3] == ("single-wifi", "single-lte", "single-lte2")
    assert clients.peers(["b"]) == ("direct-b", "curl-b", "mptcp", "aria2-2", "aria2-8", "aria2-16")
    assert clients.multipath(["a", "b"])[:6] == (
        *("mptcp-a", "mptcp-b", "mptcp-2016-a", "mptcp-2016-b"),
        *("mptcp-2016", "mptcp-backup"),
    )
    for group in clients.GROUPS.values():
        assert set(group(THREE)) <= set(names(THREE))


def test_what_algorithms_need_of_a_scenario(small: Scenario) -> None:
    playing = replace(small, workload=Workload(player=MediaPlayer(rate_bps=5_000_000)))
    for name, scenario, has_energy, needed in (
        ("emptcp-http", small, False, "needs an energy model"),
        ("emptcp-http", small, True, None),
        ("gb-e", playing, False, "needs an energy model"),
        ("gb-e", small, True, "a player as its `workload`"),
        ("gb-e", playing, True, None),
        ("dynsub", small, True, "a player as its `workload`"),
        ("dynsub", playing, False, None),
        ("gb-p", small, False, None),
    ):
        said = clients.misfit(name, scenario, has_energy=has_energy)
        assert said is None if needed is None else needed in str(said)


def test_who_decides_between_kinds_refuses_other_kinds(small: Scenario) -> None:
    ethernet = msgspec.structs.replace(link_kinds.LTE, name="ethernet", title="Ethernet")
    links = {"wifi": small.links["wifi"], "wire": replace(small.links["lte"], kind=ethernet)}
    wired = replace(small, links=links)
    for name, what in (
        ("emptcp-http", "decides between links of the kinds wifi, lte, and there is ethernet"),
        ("emptcp-kernel", "needs one link of Wi-Fi and one of LTE, and there are ethernet, wifi"),
        ("mptcp-mdp", "needs one link of Wi-Fi and one of LTE, and there are ethernet, wifi"),
    ):
        assert clients.misfit(name, small, has_energy=True) is None
        assert clients.misfit(name, wired, has_energy=True) == f"small: {name} {what}"
    for name in ("adaptive-energy", "alg3", "mptcp"):
        assert clients.misfit(name, wired, has_energy=True) is None


def test_names_and_aliases(small: Scenario) -> None:
    def named(text: str, *others: str) -> str:
        return clients.named(text, small, others)

    assert named("alg1") == named("static-limit") == "alg1"
    assert named("link-bdp-plain") == "alg3-plain"
    with pytest.raises(ValueError, match="'alg2-rescue': algorithms of publications run as pub"):
        named("alg2-rescue")
    assert named("mine", "mine") == "mine"
    assert named("to-the-rescue", "to-the-rescue") == "to-the-rescue"
    assert not set(clients.ALIASES) & set(names(LINKS))
    assert set(clients.ALIASES.values()) <= set(names(LINKS))
    with pytest.raises(ValueError, match=r"'statc-limit' \(did you mean 'static-limit'\?\); for"):
        named("statc-limit")


def test_a_name_has_to_be_known_to_all_the_scenarios(small: Scenario) -> None:
    assert clients.known_to([small, three(small)])("static-limit") == "alg1"
    assert clients.known_to([three(small)])("single-lte2") == "single-lte2"
    with pytest.raises(ValueError, match=r"'single-lte2' \(did you mean 'single-lte'\?\)"):
        clients.known_to([three(small), small])("single-lte2")


def test_the_guest_has_every_peer() -> None:
    locked_packages = {one.name for one in locked.lock().packages["guest"]}
    assert clients.packages() == ["aria2", "curl", "mptcpize"]
    assert set(clients.packages()) <= locked_packages


def test_servers_of_quic_peers_have_the_congestion_control_of_their_name() -> None:
    of = {name: " ".join(client_of(name).server) for name in QUIC}
    assert "serve cubic {address}:{port}" in of["noq"]
    assert "serve bbr3 {address}:{port}" in of["noq-bbr3"]
    assert "--congestion-control-algor CUBIC" in of["tquic"]
    assert "--congestion-control-algor BBR " in of["tquic-bbr"]


def test_a_peer_that_is_not_compiled_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "PEERS", tmp_path)
    said = (
        "noq, tquic: not compiled; `make peers-quic` in a checkout of linklab compiles such peers"
    )
    for place in ("guest", "host"):
        assert clients.obstacle(["noq", "aria2-8", "tquic"], place) == said
    for program in ("noq-peer", "tquic_client"):
        (tmp_path / program).touch()
    for place in ("guest", "host"):
        assert clients.obstacle(QUIC, place) is None


def test_peers_of_quic_are_no_part_of_a_group_and_need_ipv4(small: Scenario) -> None:
    for group in clients.GROUPS.values():
        assert not set(group(LINKS)) & set(QUIC)
    both = {name: replace(one, families=(4, 6)) for name, one in small.links.items()}
    for name in QUIC:
        assert clients.misfit(name, small, has_energy=False) is None
        said = clients.misfit(name, replace(small, links=both), has_energy=False)
        assert (
            said
            == f"small: {name} reads and writes packets of IPv4 only; needed: network: {{ip: 4}}"
        )


def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    present = {"mptcpize"}
    monkeypatch.setattr(shutil, "which", lambda name: name if name in present else None)
    assert clients.missing_packages(names(LINKS)) == ["aria2", "curl"]
    assert clients.missing_packages(["alg3", "mptcp"]) == []
    assert clients.obstacle(["alg3", "aria2-2"], "host") == (
        "missing programs: apt-get install aria2"
    )
    assert clients.obstacle(["aria2-2"], "guest") is None
    present |= {"aria2c", "curl"}  # aria2's program is not called like its package.
    assert clients.missing_packages(names(LINKS)) == []


def test_a_client_that_is_not_built_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(registry, "MULTILINK", tmp_path / "multilink")
    monkeypatch.setattr(registry, "GUEST_MULTILINK", tmp_path / "multilink")
    for installed, words in (
        (False, f"`make setup` in {REPOSITORY} "),
        (True, "install linklab again"),
    ):
        monkeypatch.setattr(registry, "INSTALLED", installed)
        assert f"multilink; {words}" in (clients.obstacle(["curl-lte", "alg3"]) or "")
    assert clients.obstacle(["curl-lte", "aria2-8"]) is None
    (tmp_path / "multilink").touch()
    assert clients.obstacle(["alg3"]) is None


def test_the_client_has_the_lab_s_defaults_of_the_algorithms() -> None:
    """Who runs alg1 on hardware gets the alg1 that the lab has measured."""
    printed = subprocess.run(
        [MULTILINK, "get", "--help"], capture_output=True, text=True, check=True
    ).stdout
    # A flag's words are wrapped, and end where the next flag begins.
    flags = re.split(r"\n +(?:-\w, )?--", printed)
    words = {flag.split()[0]: " ".join(flag.split()) for flag in flags}
    settings = ClientSettings()
    for option in settings.flags:
        default = re.search(r"\(default ([^)]+)\)", words[option])
        assert default is not None, option
        assert base(default[1]) == base(settings.flag(option)), option


def base(text: str) -> float:
    """Returns a flag's size, time or number in base units."""
    for parse in (units.parse_number, units.parse_size):
        with contextlib.suppress(ValueError):
            return parse(text)
    return units.parse_duration(text)


def test_ways_to_use_links_by_multipath_tcp() -> None:
    use = {name: client_of(name).multipath for name in ("mptcp", "mptcp-lte", "mptcp-backup")}
    assert use == {
        "mptcp": PathUse(),
        "mptcp-lte": PathUse(first="lte"),
        "mptcp-backup": PathUse(backups=True),
    }


def test_multipath_tcp_as_the_publications_had_it() -> None:
    """MPTCP study 2: the scheduler by round trip times, and LIA."""
    assert PathUse().sysctls == {}
    for name, first in (("mptcp-2016", None), ("mptcp-2016-lte", "lte")):
        use = client_of(name).multipath
        assert use is not None
        assert use.first == first
        assert use.sysctls == {
            "net.mptcp.scheduler": "lowest-rtt",
            "net.ipv4.tcp_congestion_control": "lia",
        }
        assert not client_of(name).is_peer


def test_no_figure_of_multipath_tcp_without_what_it_lacks() -> None:
    assert clients.notes(["alg3", "curl-wifi", "my-own"]) == []
    assert clients.notes(["mptcp-2016", "mptcp-2016-lte"]) == []
    (note,) = clients.notes(["mptcp", "alg3", "mptcp-north", "my-mptcp", "mptcp-2016"])
    assert note.startswith("mptcp, mptcp-north: every subflow has a congestion control of its own")
    assert "LIA" in note


@pytest.mark.parametrize("name", CHANGES_TCP)
def test_who_changes_tcp_needs_one_link_of_each_kind(name: str, small: Scenario) -> None:
    assert client_of(name).changes_tcp
    assert clients.misfit(name, small, has_energy=False) is None
    words = f"small: {name} needs one link of Wi-Fi and one of LTE, and there are lte, lte, wifi"
    assert clients.misfit(name, three(small), has_energy=True) == words
    assert name not in clients.peers(LINKS)


def test_emptcp_in_the_kernel_needs_an_energy_model(small: Scenario) -> None:
    assert clients.misfit("emptcp-kernel", small, has_energy=True) is None
    assert "--energy-model" in (clients.misfit("emptcp-kernel", small, has_energy=False) or "")
    for name in ("mptcp", "mptcp-lte", "alg3", "curl-wifi"):
        assert clients.misfit(name, three(small), has_energy=False) is None


@pytest.mark.parametrize(
    ("named", "first", "further"),
    [
        (("tested",), "alg3", []),
        (("tested",) * 3, "alg3", ["alg3", "alg3"]),
        (("tested", "throughput-aware", "aria2-8"), None, ["alg1", "aria2-8"]),
        (("tested", "tested"), None, [None]),
        (("tested", "mptcp-2016-lte"), "mptcp-2016", ["mptcp-2016-lte"]),
        (("tested", "mptcp-2016-lte"), None, ["mptcp-2016-lte"]),
    ],
)
def test_further_clients_have_their_algorithm_or_the_tested_one(
    named: tuple[str, ...], first: str | None, further: list[str | None], small: Scenario
) -> None:
    if "throughput-aware" in named:
        alias = next(alias for alias, name in clients.ALIASES.items() if name == "alg1")
        named = tuple(alias if one == "throughput-aware" else one for one in named)
    assert clients.further(replace(small, clients=tuple(map(Downloader, named))), first) == further


@pytest.mark.parametrize(
    ("named", "first", "error"),
    [
        (("tested", "alg9"), "alg3", "small: clients[1]: no algorithm is called 'alg9'"),
        (("tested", "freeze"), "alg3", "small: clients[1]: …allowed: clients that leave it as it"),
        (("tested", "noq"), "alg3", "small: clients[1]: noq changes the lab"),
        (("tested", "alg3"), "emptcp-kernel", "small: clients[0]: emptcp-kernel changes the lab"),
        (("tested", "mptcp"), "mptcp-2016", "small: clients[0]: …allowed: clients that all set"),
        (("tested", "mptcp-2016-lte"), "alg3", "small: clients[1]: mptcp-2016-lte sets"),
    ],
)
def test_a_client_that_cannot_be_one_of_several_is_said(
    named: tuple[str, ...], first: str, error: str, small: Scenario
) -> None:
    with pytest.raises(ValueError, match="^" + ".*".join(map(re.escape, error.split("…")))):
        clients.further(replace(small, clients=tuple(map(Downloader, named))), first)


def test_an_upload_has_one_client(small: Scenario) -> None:
    several = replace(small, clients=(Downloader(),) * 2, workload=Workload(upload=Upload()))
    with pytest.raises(ValueError, match="small: clients: an upload has one client"):
        clients.further(several, "alg3")
