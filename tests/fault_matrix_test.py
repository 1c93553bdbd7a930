"""Tests every fault of links, devices, server and disk with the algorithms that have rescue.

Of their pairs `make test` runs a part. The file is complete, or the error is clear and the next call
can go on. client/internal/download tests wrong answers of servers, in bubbles of fake time.
"""

import shlex
from pathlib import Path

import faults
import pytest
from conftest import REPOSITORY, Linklab, ScenarioFile, compared, is_in_part, lines, succeeded
from faults import LINK_FAULTS, PROGRAMS, SIZE_MB, SURE
from linklab.core.paths import MULTILINK


def test_faults_of_links(linklab: Linklab, scenario: ScenarioFile) -> None:
    files = []
    for name, fault in LINK_FAULTS.items():
        files.append(scenario(name, size=f"{SIZE_MB} MB", more=faults.events(fault)))
    done = succeeded(linklab, "compare", *files, "-a", "adaptive")
    comparisons = {one["scenario"]: one["rows"] for one in done.json["comparisons"]}
    assert set(comparisons) == set(LINK_FAULTS)
    late = {
        name: one["download_s"]
        for name, fault in LINK_FAULTS.items()
        for one in comparisons[name]
        if not one["download_s"] <= fault.longest_s
    }
    assert late == {}


APPLICATIONS = tuple(name for name in PROGRAMS if name != "file")

DIAGONAL = [
    (program, fault)
    for row, program in enumerate(APPLICATIONS)
    for column, fault in enumerate(LINK_FAULTS)
    if is_in_part(row, column, len(APPLICATIONS))
]
"""Each workload with a part of the faults."""


@pytest.mark.parametrize(("program", "fault"), DIAGONAL)
def test_faults_of_links_under_workloads(
    linklab: Linklab, tmp_path: Path, program: str, fault: str
) -> None:
    """Each pair by another algorithm, including those that need an energy model or a player. What a
    workload received is compared with what was served, and an upload's result with what was sent.
    """
    file = tmp_path / f"{program}-{fault}.yaml"
    file.write_text(faults.text(file.stem, PROGRAMS[program], LINK_FAULTS[fault]))
    able = faults.able(SURE, program)
    who = able[(5 * DIAGONAL.index((program, fault))) % len(able)]
    done = linklab("run", file, "-a", who, "--json")
    if PROGRAMS[program].sure:
        assert done.code == 0, f"{who}: {done.json['error']}"
    if done.code == 0:
        assert done.json["figures"]["download_s"] < faults.LONGEST_S, who
    else:
        assert "answers 502 Bad Gateway" in done.json["error"], who


GET = (
    f"{shlex.quote(str(MULTILINK))} get {{url}} --link wifi=wlan0 --link lte=rmnet0"
    " --ca-file {ca} -o {output} --quiet --checksum sha-256=$LINKLAB_SHA256"
)

COMPARE = "echo $(sha256sum < {output} | cut -c -64) = $LINKLAB_SHA256"
"""Compares the saved file with the server's."""


def assert_whole(out: str, files: int) -> None:
    """Asserts that this number of files was compared and each equals the server's."""
    sums = [line.split(" = ") for line in out.splitlines() if " = " in line]
    assert len(sums) == files
    for saved, served in sums:
        assert len(served) == 64
        assert saved == served


# The faults happen after 0.4 s of each download.
PROGRAM_FAULTS = {
    "the device comes back with another address": (
        "ip link set wlan0 down; sleep 0.5; ip address del 10.1.0.$host/24 dev wlan0;"
        " host=$((host + 1)); ip address add 10.1.0.$host/24 dev wlan0;"
        " ip link set wlan0 up; ip route add default via 10.1.0.1 dev wlan0 table 101"
    ),
    "the route is gone for a while": (
        "ip route del default table 101; sleep 1;"
        " ip route add default via 10.1.0.1 dev wlan0 table 101"
    ),
    "the server stands still": "kill -STOP $(pidof h2o); sleep 2; kill -CONT $(pidof h2o)",
}


def test_faults_of_devices_and_server(linklab: Linklab, scenario: ScenarioFile) -> None:
    """One after the other in one lab."""
    file = scenario("faults", size=f"{SIZE_MB} MB")
    downloads = [
        f"{GET} & sleep 0.4; {fault}; wait $!; echo code=$?;"
        f" {COMPARE}; ls -A $(dirname {{output}}) | wc -l; rm {{output}}"
        for fault in PROGRAM_FAULTS.values()
    ]
    done = linklab("exec", file, "--", "bash", "-c", f"host=2; {'; '.join(downloads)}")
    assert done.code == 0, done.err
    words = done.out.split()
    count = len(downloads)
    assert [word for word in words if word.startswith("code=")] == ["code=0"] * count
    assert_whole(done.out, count)
    assert [word for word in words if word.isdigit() and len(word) < 3] == ["1"] * count


def test_workloads_leave_nothing_behind(linklab: Linklab, scenario: ScenarioFile) -> None:
    """It leaves neither the proxy that a workload has started, nor a connection, nor a file,
    whether it completes or is killed in between."""
    model = REPOSITORY / "profiles" / "energy" / "galaxy-s3.yaml"
    program = (
        f"{shlex.quote(str(MULTILINK))} workload player {{url}} --size 4MB --rate 16Mbit/s"
        " --start 400kB --low 400kB --high 2MB --ca-file {ca} -- proxy --ca-file {ca}"
        " --link wifi=wlan0 --link lte=rmnet0 --algorithm $algorithm"
        f" --playback-rate 16Mbit/s --energy-model {shlex.quote(str(model))}"
    )
    left = "sleep 0.2; ls $(dirname {output}) | wc -l; cat /proc/[0-9]*/comm | grep -c multilink"
    script = (
        f"for algorithm in {' '.join(PLAYED)}; do"
        f" {program} > /dev/null & sleep 0.4; ip link set wlan0 down; wait $!; echo code=$?; {left};"
        " ip link set wlan0 up; ip route add default via 10.1.0.1 dev wlan0 table 101;"
        f" {program} > /dev/null & sleep 0.4; kill $!; wait $!; echo killed=$?; {left}; done"
    )
    done = linklab("exec", scenario("leaves", size="4 MB"), "--", "bash", "-c", script)
    assert done.code == 1, done.err  # grep's exit code if there is none.
    words = ["code=0", "0", "0", "killed=143", "0", "0"]
    assert done.out.split() == words * len(PLAYED)


PLAYED = ("adaptive", "adaptive-energy")
"""The algorithms that survive the fault."""


def test_emptcp_in_the_kernel_changes_its_mind(linklab: Linklab, tmp_path: Path) -> None:
    """Wi-Fi goes before LTE was opened. Or Wi-Fi seems to go, and LTE is suspended and resumed
    before its subflow exists."""
    files = [tmp_path / f"file-{fault}.yaml" for fault in ("gone-for-good", "lossy")]
    for file in files:
        fault = LINK_FAULTS[file.stem.removeprefix("file-")]
        file.write_text(faults.text(file.stem, PROGRAMS["file"], fault))
    for name, (figures, run_dir) in compared(linklab, *files, who="emptcp-kernel").items():
        events = [
            one["detail"].partition(",")[0]
            for one in lines(run_dir / "events.jsonl")
            if one["kind"] == "subflow"
        ]
        assert events[0] == "opened", name
        assert "opened" not in events[1:], name
        assert figures["download_s"] < faults.LONGEST_S, name


def test_a_lost_packet_wakes_nobody(linklab: Linklab, scenario: ScenarioFile) -> None:
    """After a loss a program receives nothing for a while. eMPTCP above HTTP must not mistake that
    for a Wi-Fi that carries nothing."""
    file = scenario(
        "lossy",
        size="20 MB",
        wifi="down: 10 Mbit/s, up: 5 Mbit/s, rtt: 20 ms, queue: 250 kB, loss: 0.1 %",
        lte="down: 8 Mbit/s, up: 4 Mbit/s, rtt: 60 ms, rrc: {}",
        more="energy: galaxy-s3\n",
    )
    run_dir = succeeded(linklab, "run", file, "-a", "emptcp-http", "--seed", 2).run_dir
    lost = [one["lost_packets"] for one in lines(run_dir / "queues.jsonl") if one["link"] == "wifi"]
    assert max(lost) > 5
    assert lines(run_dir / "events.jsonl") == []


def test_a_killed_client_is_resumed(linklab: Linklab, scenario: ScenarioFile) -> None:
    """It uses the state of the last checkpoint, 5 s after the start."""
    file = scenario("killed", size="100 MB", wifi="down: 80 Mbit/s, up: 20 Mbit/s, rtt: 10 ms")
    script = (
        "ls $(dirname {output}) | wc -l;"
        f" {GET} --run-dir {{output}}.1 & sleep 6; kill -KILL $!; wait $!; echo code=$?;"
        f" {GET} --run-dir {{output}}.2; echo code=$?; ls -A $(dirname {{output}}) | wc -l;"
        f" {COMPARE};"
        " python3 -c \"import json; print(sum(link['bytes'] for link in"
        " json.load(open('{output}.2/client.json'))['links'].values()))\""
    )
    done = linklab("exec", file, "--", "bash", "-c", script)
    assert done.code == 0, done.err
    before, killed, resumed, left, *_, received = done.out.split()
    assert (before, killed, resumed, left) == ("0", "code=137", "code=0", "3")
    assert_whole(done.out, 1)
    assert 0 < int(received) < 40_000_000
