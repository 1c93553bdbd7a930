"""Tests impairments of both directions in captures at both ends of a link, in virtual time."""

from collections.abc import Callable
from pathlib import Path

import dpkt
import pytest
from both_ends import Way, digest, read
from conftest import PROBES, REPEATS, Linklab, ScenarioFile, lines, succeeded
from linklab.core.link_state import Direction
from linklab.importers.packet_file import PacketFile
from linklab.scenario import load

Crossed = Callable[..., tuple[Path, dict[Direction, Way]]]

PACKETS = 2000
LOST_DOWN, LOST_UP = 61, 86
HEADERS_BYTES = 14 + 20 + 8


@pytest.fixture
def crossed(linklab: Linklab, scenario: ScenarioFile) -> Crossed:
    """Sends 2000 packets both ways in 2 s. Returns the run directory, and both directions."""

    def cross(
        impaired: str,
        more: str = "",
        size: int = 32,
        packets: int = PACKETS,
        before: tuple[str | Path, ...] = (),
    ) -> tuple[Path, dict[Direction, Way]]:
        wifi = f"down: 80 Mbit/s, up: 20 Mbit/s, rtt: 20 ms, {impaired}"
        file = scenario("impaired", wifi=wifi, more=more)
        probe = (PROBES / "both_ways.py", "wlan0", "server-isp", packets, 0.001, size)
        run_dir = succeeded(linklab, "exec", file, "--", *before, "python3", *probe).run_dir
        return run_dir, read(run_dir)

    return cross


def wrong_bits(run_dir: Path) -> list[tuple[int, int]]:
    """Returns byte and value of the wrong bits in what the client sent as zeros, in the order of
    arrival."""
    found = []
    with (run_dir / "server.pcap").open("rb") as file:
        for _, frame in dpkt.pcap.Reader(file):
            zeros = frame[HEADERS_BYTES + 8 :]
            if frame[26:30] == bytes((10, 1, 0, 2)) and any(zeros):
                found += [(at, value) for at, value in enumerate(zeros) if value]
    return found


def test_which_bits_are_wrong_follows_from_the_seed_alone(crossed: Crossed) -> None:
    """Also after a process that takes random numbers of the guest's kernel."""
    impaired = "impair_up: {corrupt: 20 %}"
    processes = ("sh", "-c", 'true | true; exec "$@"', "sh")
    runs = [
        wrong_bits(crossed(impaired, size=1000, packets=200, before=before)[0])
        for before in ((),) * (REPEATS - 1) + (processes,)
    ]
    assert 20 < len(runs[0]) < 60
    assert all(one == runs[0] for one in runs[1:])


def test_losses_of_both_directions_are_those_of_the_scenario(crossed: Crossed) -> None:
    run_dir, ways = crossed("impair_down: {loss: 3 %}, impair_up: {loss: 4 %, loss_burst: 4}")
    down, up = ways["down"], ways["up"]
    assert (len(down.sent_s), len(up.sent_s)) == (PACKETS, PACKETS)
    found = [*down.losses(0.03), *up.losses(0.04, 4)]
    assert all(interval.holds for interval in found), found
    assert (sum(down.lost), sum(up.lost)) == (LOST_DOWN, LOST_UP)
    counted = {
        line["direction"]: line["lost_packets"]
        for line in lines(run_dir / "queues.jsonl")
        if line["link"] == "wifi"
    }
    assert counted == {"down": LOST_DOWN, "up": LOST_UP}


def test_delays_of_both_directions_follow_their_distributions(crossed: Crossed) -> None:
    _, ways = crossed(
        "impair_down: {delay: 50 ms, jitter: 5 ms, in_order: false},"
        "impair_up: {delay: 40 ms, jitter: 10 ms, distribution: pareto, in_order: false}"
    )
    normal = ways["down"].quantiles({0.1587: 0.055, 0.5: 0.06, 0.8413: 0.065, 0.9772: 0.07})
    # Pareto's with shape 3, of mean 40 and deviation 10 ms: (x - 50) / 10 = (y - 1.5) / 0.866.
    pareto = ways["up"].quantiles(
        {share: 0.05 + 0.01 * ((1 - share) ** (-1 / 3) - 1.5) / 0.8660 for share in (0.2, 0.5, 0.9)}
    )
    assert all(interval.holds for interval in (*normal, *pareto)), (normal, pareto)


def test_packets_stay_in_order_unless_asked(crossed: Crossed) -> None:
    _, ways = crossed(
        "impair_down: {delay: 50 ms, jitter: 5 ms}, impair_up: {delay: 5 ms, reorder: 2 %}"
    )
    assert ways["down"].overtaking == 0
    reordered = ways["up"].share("reorder", ways["up"].overtaking, 0.02)
    assert reordered.holds, reordered
    early = [delay_s for delay_s in ways["up"].delays_s if delay_s < 0.0145]
    own_s = (HEADERS_BYTES + 32) * 8 / 20e6
    assert early == pytest.approx([0.01 + own_s] * len(early), abs=1e-6)
    assert len(early) / PACKETS == pytest.approx(0.02, abs=0.01)


def test_copies_and_wrong_bits_are_those_of_the_scenario(crossed: Crossed) -> None:
    _, ways = crossed("impair_down: {duplicate: 5 %}, impair_up: {corrupt: 5 %}")
    down, up = ways["down"], ways["up"]
    copied = down.share("duplicate", down.duplicated, 0.05)
    wrong = up.share("corrupt", up.loss, 0.05)
    assert copied.holds, copied
    assert wrong.holds, wrong
    assert up.damaged == sum(up.lost)
    assert (down.damaged, down.loss) == (0, 0.0)


def test_an_event_impairs_for_its_time(crossed: Crossed) -> None:
    run_dir, ways = crossed(
        "impair_up: {delay: 10 ms}",
        "events:\n  - {at: 1 s, link: wifi, impair_up: {loss: 100 %}, for: 500 ms}\n"
        "  - {at: 1 s, link: wifi, impair_down: {delay: 20 ms}, for: 500 ms}\n",
    )
    assert len(ways["up"].bursts) == 1
    assert sum(ways["up"].lost) == pytest.approx(500, abs=1)
    assert {round(delay_s, 4) for delay_s in ways["up"].delays_s} == {0.02}
    later = [delay_s > 0.025 for delay_s in ways["down"].delays_s]
    assert sum(later) == pytest.approx(500, abs=20)
    kinds = [line["kind"] for line in lines(run_dir / "events.jsonl") if line["link"] == "wifi"]
    assert kinds.count("impair") == kinds.count("impair-end") == 2


def test_a_table_of_the_user_s_travels_with_the_run(crossed: Crossed, tmp_path: Path) -> None:
    (tmp_path / "two.dist").write_text("# two delays\n-8192 8192\n")
    run_dir, ways = crossed(
        "impair_up: {delay: 20 ms, jitter: 5 ms, distribution: two, in_order: false}",
        "distributions: {two: ./two.dist}\n",
    )
    assert {round(delay_s, 4) for delay_s in ways["up"].delays_s} == {0.025, 0.035}
    later = sum(delay_s > 0.03 for delay_s in ways["up"].delays_s) / PACKETS
    assert ways["up"].share("later", later, 0.5).holds
    (tmp_path / "two.dist").unlink()
    assert load(run_dir / "scenario.yaml", any_name=True).delay_tables["two"].entries == (
        -8192,
        8192,
    )


def test_a_policer_passes_its_burst_and_its_rate(crossed: Crossed) -> None:
    """1042 bytes every millisecond are 2 MB in 2 s, of which 0.5 MB + 2 s of 4 Mbit/s pass."""
    _, ways = crossed("impair_down: {police: 4 Mbit/s, police_burst: 500 kB}", size=1000)
    passed = len(ways["down"].arrivals) * 1042
    assert 1_500_000 - 1042 <= passed <= 1_500_000
    # Packet n comes after n - 1 ms: 1042 n <= 500 000 + 500 (n - 1).
    assert ways["down"].lost.index(True) == 499_500 // (1042 - 500)
    assert ways["up"].loss == 0


def test_ecn_is_bleached_in_one_direction(crossed: Crossed) -> None:
    _, ways = crossed("impair_down: {bleach_ecn: true}", packets=20)
    assert (ways["down"].ecn, ways["up"].ecn) == (0, 2)
    assert (len(ways["down"].arrivals), len(ways["up"].arrivals)) == (20, 20)


def test_the_sender_of_a_packet_beyond_the_mtu_is_told(crossed: Crossed) -> None:
    """The sender then refuses further ones itself. Packets of the other direction pass."""
    _, ways = crossed("impair_up: {mtu: 1200 B}", packets=100, size=1300)
    told = len(ways["up"].sent_s)
    assert 1 <= told == pytest.approx(20, abs=3)  # A round trip to the middlebox
    assert len(ways["up"].arrivals) == 0
    assert len(ways["down"].arrivals) == 100


def test_a_black_hole_tells_nobody(crossed: Crossed) -> None:
    run_dir, ways = crossed("impair_up: {mtu: 1200 B, black_hole: true}", packets=100, size=1173)
    assert (len(ways["up"].sent_s), len(ways["up"].arrivals)) == (100, 0)
    assert len(ways["down"].arrivals) == 100
    last = [line for line in lines(run_dir / "queues.jsonl") if line["link"] == "wifi"][-1]
    assert (last["direction"], last["lost_packets"]) == ("up", 100)
    _, ways = crossed("impair_up: {mtu: 1200 B, black_hole: true}", packets=20, size=1172)
    assert len(ways["up"].arrivals) == 20


def test_a_download_learns_the_path_s_mtu(linklab: Linklab, scenario: ScenarioFile) -> None:
    wifi = "down: 80 Mbit/s, up: 20 Mbit/s, rtt: 20 ms, impair_down: {mtu: 1300 B}"
    file = scenario("narrow", wifi=wifi, size="1 MB")
    done = succeeded(linklab, "run", file, "-a", "single-wifi", "--pcap", "wifi")
    with Path(done.json["run_dir"], "wifi.pcap").open("rb") as captured:
        packets = list(PacketFile(captured))
    received = [one.length for one in packets if one.content[26:30] == b"\x0a\x00\x00\x01"]
    assert sum(received) > 1_000_000
    assert max(received) == 1300 + 14


def test_everything_repeats_to_the_nanosecond(crossed: Crossed) -> None:
    every = (
        "{loss: 2 %, loss_burst: 3, delay: 10 ms, jitter: 2 ms, distribution: pareto, "
        "reorder: 1 %, duplicate: 1 %, corrupt: 1 %}"
    )
    runs = [crossed(f"impair_down: {every}, impair_up: {every}", packets=500) for _ in range(2)]
    assert len({digest(run_dir) for run_dir, _ in runs}) == 1


def test_a_trace_of_recorded_delays_plays_them_and_leaves_the_rates(
    crossed: Crossed, linklab: Linklab, tmp_path: Path
) -> None:
    """What `ping -D` recorded: 20 ms, then 80 ms, then half of the probes lost."""
    log = tmp_path / "ping.log"
    log.write_text(
        "".join(
            f"[{1.7e9 + k / 100 + rtt_ms / 1e3:.6f}] 64 bytes from 192.0.2.1: "
            f"icmp_seq={k + 1} ttl=9 time={rtt_ms} ms\n"
            for k in range(200)
            for rtt_ms in (80 if k // 50 == 1 else 20,)
            if k < 100 or k % 2
        )
    )
    done = linklab("import", log, "--bin", "0.5", "-o", tmp_path / "delays.csv")
    assert done.code == 0, done.err
    run_dir, ways = crossed("trace: {file: ./delays.csv}")
    down, up = ways["down"], ways["up"]
    begin_s = min(*up.sent_s.values(), *down.sent_s.values())
    for way in (down, up):
        for number, t_s in way.firsts.items():
            sent_s = way.sent_s[number]
            at_s = sent_s - begin_s
            if 0.1 < at_s % 0.5 < 0.4:
                expected_s = 0.04 if at_s // 0.5 == 1 else 0.01
                assert t_s - sent_s == pytest.approx(expected_s, abs=0.001), at_s
    later = [number for number, sent_s in down.sent_s.items() if sent_s - begin_s > 1.1]
    lost = sum(number not in down.firsts for number in later) / len(later)
    assert lost == pytest.approx(0.5, abs=0.06)
    assert sum(up.lost) == 0
    states = lines(run_dir / "links.jsonl")
    rates = {line["down_rate_bps"] for line in states if line.get("link") == "wifi"}
    assert rates == {80_000_000}
