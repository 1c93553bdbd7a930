"""Tests schedulers and coupled congestion controls of the guest's Multipath TCP against their rules.

`kernel_sources_test.py` checks the arithmetic alone.
"""

import itertools
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from conftest import (
    PROBES,
    REPEATS,
    TEST_ALL,
    Linklab,
    ScenarioFile,
    compared,
    downloaded,
    lines,
    part_of,
    program,
    succeeded,
)
from linklab.scenario.tcp import COUPLED_CONTROLS

FLOWS, SUBFLOWS = PROBES / "flows.py", PROBES / "subflows.py"
NEAR = "down: 20 Mbit/s, up: 20 Mbit/s, rtt: 20 ms, queue: 400 kB"
FAR = "down: 20 Mbit/s, up: 20 Mbit/s, rtt: 60 ms, queue: 400 kB"
BURST_BYTES, BURSTS = 14_000, 100
# In 480 s, shares of one control differ by 0.06 from seed to seed. BALIA is no farther from its bound.
# So a mean over seeds is judged; the bounds of reno's are wide enough for one seed. `make test` runs one control, for a third of the
# time. Each control's arithmetic is tested by kernel_sources_test.py.
SECONDS, TCPS, SEEDS = 480 if TEST_ALL else 160, 4, (1, 2, 3)


def observed(
    linklab: Linklab, file: Path, order: str, meanwhile: str = ":"
) -> tuple[dict[str, int], list[list[dict[str, int]]]]:
    """Has the server send by `order` (probes/subflows.py), and runs a shell command beside the client.
    Returns the bytes that each link carried to the client, and the server's notes."""
    serve = f"python3 {SUBFLOWS} serve {{port}}"
    fetch = f"({meanwhile}) & exec python3 {SUBFLOWS} fetch '{order}'"
    run_dir = succeeded(linklab, "exec", file, "--server", serve, "--", "sh", "-c", fetch).run_dir
    carried = {one["link"]: one["received_bytes"] for one in lines(run_dir / "subflows.jsonl")}
    notes = (run_dir / "server.out").read_text().splitlines()
    return carried, [json.loads(note) for note in notes]


@pytest.mark.parametrize(
    ("scheduler", "near", "far"),
    [
        ("default", (0, 0), (1, 1)),
        ("lowest-rtt", (1, 1), (0, 0)),
        ("blest", (1, 1), (0, 0)),
        ("round-robin", (0.49, 0.51), (0.49, 0.51)),
        ("redundant", (1, 1), (1, 1)),
    ],
)
def test_bursts_that_fit_into_a_window_go_where_the_scheduler_says(
    linklab: Linklab,
    scenario: ScenarioFile,
    scheduler: str,
    near: tuple[float, float],
    far: tuple[float, float],
) -> None:
    """The first subflow is on the link with the longer round trip. The kernel's own scheduler stays
    there."""
    file = scenario(
        "bursts", wifi=FAR, lte=NEAR, more=f"tcp: {{mptcp: true, mptcp_scheduler: {scheduler}}}\n"
    )
    carried, _ = observed(linklab, file, f"cubic {BURST_BYTES} 0.2 {0.2 * BURSTS}")
    sent = BURST_BYTES * BURSTS
    for link, (least, most) in (("lte", near), ("wifi", far)):
        # The server begins before there is a second subflow.
        slack = 2 * BURST_BYTES / sent
        assert least - slack <= carried[link] / sent <= most + slack, carried


RESUMED = 5


@pytest.mark.parametrize(("scheduler", "bursts"), [("lowest-rtt", RESUMED), ("default", 0)])
def test_a_subflow_that_is_used_again_is_probed(
    linklab: Linklab, scenario: ScenarioFile, scheduler: str, bursts: int
) -> None:
    """eMPTCP 3.6: its round trip time counts as zero until the next sample, so it gets a burst,
    although the other subflow has the shorter round trip."""
    file = scenario(
        "probed", wifi=NEAR, lte=FAR, more=f"tcp: {{mptcp: true, mptcp_scheduler: {scheduler}}}\n"
    )
    change = f"{program('ip')} mptcp endpoint change id 2"  # LTE's.
    again = (
        f"for round in $(seq {RESUMED}); do "
        f"sleep 1; {change} backup; sleep 1; {change} nobackup; done"
    )
    carried, _ = observed(linklab, file, f"cubic {BURST_BYTES} 0.2 {0.2 * BURSTS}", again)
    assert carried["lte"] == pytest.approx(bursts * BURST_BYTES, abs=0.5 * BURST_BYTES), carried


def test_a_scheduler_fills_both_links_but_redundant_as_the_faster_one(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    limits = dict.fromkeys(("lowest-rtt", "round-robin", "blest"), (1.1, 1.5))
    limits["redundant"] = (0.85, 1.0)
    files = [
        scenario(
            scheduler,
            size="20 MB",
            wifi=NEAR,
            lte=FAR.replace("20 Mbit/s", "10 Mbit/s"),
            more=f"tcp: {{mptcp_scheduler: {scheduler}}}\n",
        )
        for scheduler in limits
    ]
    runs = compared(linklab, *files, who="mptcp")
    for scheduler, (least, most) in limits.items():
        rate = 20e6 * 8 / runs[f"{scheduler}-mptcp"][0]["download_s"]
        assert least * 20e6 < rate < most * 20e6, scheduler


def alpha_of(paths: Sequence[dict[str, int]]) -> float:
    """RFC 6356, 3, with windows in segments."""
    rates = [one["window"] / one["rtt_us"] for one in paths]
    best = max(one["window"] / one["rtt_us"] ** 2 for one in paths)
    return sum(one["window"] for one in paths) * best / sum(rates) ** 2


def test_lia_s_windows_grow_by_the_formula(linklab: Linklab, scenario: ScenarioFile) -> None:
    """Between two losses, for each acknowledged segment by min(alpha / total, 1 / window)."""
    file = scenario(
        "grow",
        wifi=NEAR,
        lte=FAR.replace("20 Mbit/s", "8 Mbit/s"),
        more="tcp: {mptcp: true, mptcp_scheduler: lowest-rtt}\n",
    )
    _, notes = observed(linklab, file, "lia 1000000 0 30")
    notes = [paths for paths in notes if len(paths) == 2]
    checked = 0
    for own in (0, 1):
        grown = expected = 0.0
        for before, after in itertools.pairwise(notes):
            one, then = before[own], after[own]
            avoids = one["state"] == then["state"] == 0 and one["window"] >= one["threshold"]
            if not avoids or one["threshold"] != then["threshold"]:
                continue
            segments = (then["acked"] - one["acked"]) / one["mss"]
            total = sum(path["window"] for path in before)
            expected += segments * min(alpha_of(before) / total, 1 / one["window"])
            grown += then["window"] - one["window"]
            checked += 1
        assert grown > 20
        assert grown == pytest.approx(expected, rel=0.1)
    assert checked > 1000


def share_of(linklab: Linklab, tmp_path: Path, control: str, seeds: Sequence[int] = SEEDS) -> float:
    """Returns what a connection with two subflows gets of a link beside four TCPs, in shares of what
    one of them gets, as the mean over seeds. The queue PIE drops packets at random, as the formulas
    assume."""
    file = tmp_path / "shared.yaml"
    file.write_text(
        "name: shared\npayload: {size: 1 MB}\nlinks:\n"
        "  wifi: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 40 ms, queue: {discipline: pie}}\n"
        "tcp: {mptcp: true, mptcp_scheduler: lowest-rtt}\n"
    )
    ip = program("ip")
    second = (
        f"{ip} address add 10.1.0.77/24 dev wlan0 && "
        f"{ip} mptcp endpoint add 10.1.0.77 id 2 subflow dev wlan0 && "
    )
    fetch = f"exec python3 {FLOWS} fetch wlan0 {SECONDS} mptcp/{control}{' reno' * TCPS}"
    serve = f"python3 {FLOWS} serve {{port}} mptcp"
    shares = []
    for seed in seeds:
        options = ("--seed", str(seed), "--timeout", f"{2 * SECONDS}s", "--server", serve)
        run_dir = succeeded(
            linklab, "exec", file, *options, "--", "sh", "-c", second + fetch
        ).run_dir
        assert len(lines(run_dir / "subflows.jsonl")) == 2
        multipath, *tcp = json.loads((run_dir / "client.out").read_text())
        assert len(tcp) == TCPS
        shares.append(multipath / statistics.fmean(tcp))
    return statistics.fmean(shares)


@pytest.mark.parametrize("control", part_of(COUPLED_CONTROLS, 3))
def test_two_coupled_subflows_take_no_more_than_one_tcp(
    linklab: Linklab, tmp_path: Path, control: str
) -> None:
    """RFC 6356, goal 2."""
    assert 0.8 < share_of(linklab, tmp_path, control) < 1.2


def test_two_subflows_that_are_not_coupled_take_as_much_as_two(
    linklab: Linklab, tmp_path: Path
) -> None:
    assert 1.6 < share_of(linklab, tmp_path, "reno", SEEDS[: None if TEST_ALL else 1]) < 2.4


BLOCKING = {"wifi": NEAR, "lte": FAR.replace("20 Mbit/s", "2 Mbit/s")}
"""The queue of LTE holds 1.6 s. What Wi-Fi carries meanwhile does not fit into a window of 2 MB."""


def counters_of(run_dir: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the counters of Multipath TCP, of the client and of the server."""
    told = json.loads((run_dir / "mptcp.json").read_bytes())
    return told["client"]["counters"], told["server"]["counters"]


def test_a_slow_link_does_not_block_a_fast_one(linklab: Linklab, scenario: ScenarioFile) -> None:
    """Raiciu et al., NSDI 2012, 4.2. Without sending again it took 2.6 times as long as Wi-Fi alone."""
    file = scenario("blocked", size="20 MB", **BLOCKING, more="tcp: {rmem_max: 2 MB}\n")
    runs = compared(linklab, file, who="mptcp-2016,curl-wifi")
    figures, run_dir = runs["blocked-mptcp-2016"]
    assert figures["download_s"] < 1.25 * runs["blocked-curl-wifi"][0]["download_s"]
    client, server = counters_of(run_dir)
    assert server["MPTCPRetrans"] > 100
    assert "NoDSSInWindow" not in client


def test_a_slow_subflow_that_blocks_is_penalised_once_per_round_trip(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """Its window is halved, without a loss, at most once in the fast subflow's round trip."""
    more = "tcp: {mptcp: true, mptcp_scheduler: lowest-rtt, rmem_max: 2 MB}\n"
    file = scenario("penalised", **BLOCKING, more=more)
    _, notes = observed(linklab, file, "lia 1000000 0 10")
    notes = [paths for paths in notes if len(paths) == 2]
    assert not list(penalties(notes, own=0))
    halved = list(penalties(notes, own=1))
    assert len(halved) > 20
    for (at, _), (then, paths) in itertools.pairwise(halved):
        # A note is up to 10 ms old.
        assert (then - at + 1) * 10 >= paths[0]["rtt_us"] / 1000, (at, then, paths)


def penalties(
    notes: Sequence[list[dict[str, int]]], own: int
) -> Iterator[tuple[int, list[dict[str, int]]]]:
    """Yields where a window is halved without a loss: the note's number, and the subflows then."""
    for at, (before, after) in enumerate(itertools.pairwise(notes)):
        one, then = before[own], after[own]
        # Up to three segments came in between.
        fell = one["window"] > 8 and then["window"] <= one["window"] / 2 + 3
        if fell and one["state"] == then["state"] == 0:
            yield at, after


def test_on_two_links_it_is_ahead_of_one_tcp_as_the_papers_had_it(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """RFC 6356, goal 1. All runs are the same to the digit."""
    file = scenario("two", size="20 MB", wifi=NEAR, lte=FAR)
    runs = compared(linklab, file, who="mptcp-2016,curl-wifi")
    figures, run_dir = runs["two-mptcp-2016"]
    assert figures["download_s"] < 0.65 * runs["two-curl-wifi"][0]["download_s"]
    told = json.loads((run_dir / "mptcp.json").read_bytes())
    assert "note" not in told
    for host in ("client", "server"):
        settings = told[host]["settings"]
        assert settings["net/mptcp/scheduler"] == "lowest-rtt"
        assert settings["net/ipv4/tcp_congestion_control"] == "lia"
    for _ in range(REPEATS - 1):
        other, directory = downloaded(linklab, file, "mptcp-2016")
        assert other == figures
        for name in ("subflows.jsonl", "mptcp.json", "queues.jsonl"):
            assert (directory / name).read_bytes() == (run_dir / name).read_bytes(), name
