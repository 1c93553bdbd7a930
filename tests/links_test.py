"""Tests link models in the whole lab, in virtual time: events, loads and their effects."""

import json
import math
import statistics
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import PROBES, Linklab, ScenarioFile, command, environment, lines, succeeded, until
from linklab.core.frames import FRAME_BYTES
from linklab.lab.player import control
from linklab.lab.player.control import Command


@pytest.fixture
def ran(linklab: Linklab, scenario: ScenarioFile, tmp_path: Path) -> Callable[..., Path]:
    """Runs alg3 once in a scenario written from keywords. Returns the run directory."""

    def run(name: str, algorithm: str = "alg3", **keywords: str) -> Path:
        file = scenario(name, **keywords)
        done = succeeded(linklab, "run", file, "-a", algorithm)
        return done.run_dir

    return run


def test_events_by_time_and_by_bytes_begin_and_end(ran: Callable[..., Path]) -> None:
    run_dir = ran(
        "eventful",
        more=(
            "events:\n"
            "  - {after: 3 MB, link: wifi, fade: 25 %, for: 300 ms}\n"
            "  - {at: 100 ms, link: lte, cap: 10 Mbit/s, for: 200 ms}\n"
            "  - {at: 500 ms, link: lte, outage: true, for: 100 ms}\n"
        ),
    )
    events = {(e["link"], e["kind"]): e["t_s"] for e in lines(run_dir / "events.jsonl")}
    assert events["lte", "cap"] == pytest.approx(0.1)
    assert events["lte", "cap-end"] == pytest.approx(0.3)
    assert events["lte", "outage"] == pytest.approx(0.5)
    assert events["lte", "outage-end"] == pytest.approx(0.6)
    fade_s = events["wifi", "fade"]
    assert events["wifi", "fade-end"] == pytest.approx(fade_s + 0.3)
    states = [
        (round(line["t_s"], 9), line["down_rate_bps"])
        for line in lines(run_dir / "links.jsonl")
        if line["link"] == "wifi"
    ]
    assert states == [
        (0.0, 80_000_000),
        (round(fade_s, 9), 20_000_000),
        (round(fade_s + 0.3, 9), 80_000_000),
    ]
    assert all(0 <= line["late_s"] < 20e-6 for line in lines(run_dir / "links.jsonl"))
    received = sum(
        sample["received_bytes"]
        for link in ("wifi", "lte")
        for sample in [
            line
            for line in lines(run_dir / "client.jsonl")
            if line["event"] == "sample" and line["link"] == link and line["t_ns"] / 1e9 <= fade_s
        ][-1:]
    )
    assert 2_000_000 < received < 4_500_000  # The client's samples are up to 0.1 s apart


CARRIERS = "carriers: {count: 3, first: 40 %, delay: 1 s, sigma: 0, slow: 0 %}"
UDP = ("python3", PROBES / "downlink.py")


def kinds(run_dir: Path, kind: str) -> list[tuple[float, str]]:
    """Returns the times and details of events of a kind."""
    return [
        (round(event["t_s"], 6), event["detail"])
        for event in lines(run_dir / "events.jsonl")
        if event["kind"] == kind
    ]


@pytest.fixture
def received(linklab: Linklab) -> Callable[..., tuple[Path, list[tuple[int, int]]]]:
    """Receives UDP over a link. Returns the run directory, and number and nanoseconds per packet."""

    def receive(
        file: Path, device: str, rate_bps: float, seconds: float
    ) -> tuple[Path, list[tuple[int, int]]]:
        run_dir = succeeded(
            linklab, "exec", file, "--", *UDP, device, rate_bps, seconds, 0.2
        ).run_dir
        return run_dir, json.loads((run_dir / "arrivals.json").read_text())

    return receive


def test_carriers_come_with_load_and_go_with_idleness(
    scenario: ScenarioFile, received: Callable[..., Any]
) -> None:
    file = scenario("ramp", lte=f"down: 60 Mbit/s, up: 10 Mbit/s, rtt: 50 ms, {CARRIERS}")
    run_dir, arrivals = received(file, "rmnet0", 70e6, 2.0)
    # Loaded from 0.225 s on and noticed a step later. 50 ms, then 0.5 s for each carrier. Idle for
    # 1.28 s after the queue is empty.
    ramp = kinds(run_dir, "carriers")
    assert [carriers for _, carriers in ramp] == ["2", "3"]
    assert ramp[0][0] == pytest.approx(0.225 + 0.05 + 0.5, abs=0.02)
    assert ramp[1][0] - ramp[0][0] == pytest.approx(0.5)
    early = sum(1 for _, t_ns in arrivals if 0.3e9 <= t_ns < 0.7e9)
    late = sum(1 for _, t_ns in arrivals if 1.5e9 <= t_ns < 1.9e9)
    assert early / late == pytest.approx(0.4, rel=0.01)


def test_every_connection_has_its_own_ramp_if_that_is_the_key(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """Thesis 4.4.3.3: a download over a new connection ramps up again, as over the first one."""
    fetch = "curl -s -o /dev/null --interface rmnet0 -r 0-9999999 {url}"
    ramps = {}
    for key in ("device", "connection"):
        lte = f"down: 60 Mbit/s, up: 10 Mbit/s, rtt: 50 ms, {CARRIERS[:-1]}, key: {key}}}"
        file = scenario(f"key-{key}", lte=lte)
        done = succeeded(linklab, "exec", file, "--", "sh", "-c", f"{fetch} && {fetch}")
        ramps[key] = [carriers for _, carriers in kinds(done.run_dir, "carriers")]
    assert ramps["device"] == ["2", "3"]
    assert ramps["connection"][:3] == ["2", "3", "1"]
    assert ramps["connection"][3:] == ["2", "3"]


def test_an_idle_radio_is_promoted_before_anything_passes(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    file = scenario("idle", lte="down: 60 Mbit/s, up: 10 Mbit/s, rtt: 50 ms, rrc: {}")
    wake = f"python3 '{PROBES}/rtt.py' rmnet0; sleep 12; python3 '{PROBES}/rtt.py' rmnet0"
    run_dir = succeeded(linklab, "exec", file, "--", "sh", "-c", wake).run_dir
    times = [float(line) for line in (run_dir / "client.out").read_text().split()]
    # Seen within a step of 20 ms, 260 ms of promotion, then the round trip of 50 ms.
    for first in (times[0], times[10]):
        assert 0.05 + 0.26 < first <= 0.05 + 0.26 + 0.0201
    assert all(time == pytest.approx(0.05, abs=0.0002) for time in times[1:10])
    modes = [mode for _, mode in kinds(run_dir, "rrc")]
    assert modes == ["promotion", "connected", "drx", "idle", "promotion", "connected"]


HANDOVER = (
    "down: 80 Mbit/s, up: 20 Mbit/s, rtt: 10 ms, radio: {standard: ac, width: 80 MHz, "
    "loss: 0 %, handover: PRESET, access_points: "
    "[{name: ap1, signal: -50 dBm}, {name: ap2, signal: -50 dBm}]}"
)


def test_what_waits_at_the_access_point_that_was_left_does_not_come(
    scenario: ScenarioFile, received: Callable[..., Any]
) -> None:
    file = scenario(
        "left",
        wifi=HANDOVER.replace("PRESET", "fast-transition").replace("down: 80", "down: 20"),
        more="events:\n  - {at: 1 s, link: wifi, handover: next}\n",
    )
    _, arrivals = received(file, "wlan0", 30e6, 2.0)
    numbers = [number for number, _ in arrivals]
    assert numbers == sorted(numbers)
    after = [t_ns for _, t_ns in arrivals if 1.06e9 <= t_ns < 1.26e9]
    assert len(after) * FRAME_BYTES * 8 / 0.2 == pytest.approx(20e6, rel=0.01)


def test_another_network_gives_another_address(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario(
        "dhcp",
        wifi=HANDOVER.replace("PRESET", "full-scan-dhcp"),
        more="events:\n  - {at: 1 s, link: wifi, handover: ap2}\n",
    )
    script = (
        "curl -s -o /dev/null --interface wlan0 --limit-rate 1M {url}; echo $?; "
        "sleep 2; ip -brief -4 addr show wlan0; "
        "curl -s -o /dev/null -w '%{size_download}\\n' --interface wlan0 {url}"
    )
    done = linklab("exec", file, "--json", "--", "sh", "-c", script)
    run_dir = done.run_dir
    aborted, address, size = (run_dir / "client.out").read_text().splitlines()
    assert aborted == "56"  # curl: failure in receiving, when its socket was aborted
    assert address.split()[2] == "10.1.0.3/24"
    assert size == "10000000"
    assert kinds(run_dir, "address") == [(4.0, "1")]


def test_the_signal_is_where_a_phone_shows_it(linklab: Linklab, scenario: ScenarioFile) -> None:
    wifi = HANDOVER.replace("PRESET", "reassociation").replace("-50 dBm}]", "-61 dBm}]")
    file = scenario("signal", wifi=wifi, more="events:\n  - {at: 1 s, link: wifi, handover: ap2}\n")
    show = "tail -1 $LINKLAB_WIRELESS; sleep 1.1; tail -1 $LINKLAB_WIRELESS; sleep 1; "
    done = linklab("exec", file, "--json", "--", "sh", "-c", show + "tail -1 $LINKLAB_WIRELESS")
    shown = (done.run_dir / "client.out").read_text().splitlines()
    assert shown[0].split()[:4] == ["wlan0:", "0000", "60.", "-50."]
    assert "wlan0" not in shown[1]  # Between two access points there is no signal
    assert shown[2].split()[:4] == ["wlan0:", "0000", "49.", "-61."]


def test_losses_come_in_bursts_and_the_same_ones_every_time(
    scenario: ScenarioFile, received: Callable[..., Any]
) -> None:
    file = scenario(
        "bursts", wifi="down: 50 Mbit/s, up: 10 Mbit/s, rtt: 10 ms, loss: 2 %, loss_burst: 4"
    )
    runs = [received(file, "wlan0", 24e6, 20.0)[1] for _ in range(2)]
    assert runs[0] == runs[1]
    numbers = [number for number, _ in runs[0]]
    bursts = [after - before - 1 for before, after in pairwise(numbers) if after - before > 1]
    # Bursts begin independently and have a geometric length of mean 4: variance 12. So the sum of as
    # many as are expected varies by the root of their number times 12 + 4². Two deviations are allowed.
    expected = (numbers[-1] + 1) * 0.02 / 4
    assert abs(sum(bursts) - 4 * expected) < 2 * math.sqrt(expected * (12 + 4**2))
    assert abs(len(bursts) - expected) < 2 * math.sqrt(expected)
    assert sum(bursts) / len(bursts) == pytest.approx(4, abs=2 * math.sqrt(12 / len(bursts)))


@pytest.mark.parametrize(("rate_bps", "seconds"), [(1e6, 20.0), (50e6, 3.0)])
def test_jitter_is_the_deviation_of_the_delay_whatever_the_load(
    scenario: ScenarioFile, received: Callable[..., Any], rate_bps: float, seconds: float
) -> None:
    file = scenario("jitter", wifi="down: 800 Mbit/s, up: 1 Mbit/s, rtt: 40 ms, jitter: 10 ms")
    _, arrivals = received(file, "wlan0", rate_bps, seconds)
    numbers = [number for number, _ in arrivals]
    assert numbers == list(range(round(rate_bps * seconds / 8 / FRAME_BYTES) + 1))
    # Sent in bursts at whole milliseconds from 200 ms on.
    frames_per_ms = rate_bps / 8e3 / FRAME_BYTES
    delays_ms = [t_ns / 1e6 - 200 - int(number / frames_per_ms) for number, t_ns in arrivals]
    assert statistics.fmean(delays_ms) == pytest.approx(20, abs=1)
    assert statistics.stdev(delays_ms) == pytest.approx(10, abs=1)


def test_a_running_lab_takes_changes(scenario: ScenarioFile, tmp_path: Path) -> None:
    """On the real clock. The player reads what is appended to the run directory."""
    file = scenario(
        "changed",
        size="30 MB",
        wifi="down: 20 Mbit/s, up: 5 Mbit/s, rtt: 10 ms",
        lte="down: 20 Mbit/s, up: 5 Mbit/s, rtt: 10 ms",
    )
    running = subprocess.Popen(
        command("run", file, "-a", "naive", "--clock", "real"),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        run_dir = tmp_path / "runs" / "changed-naive-seed1"
        states = run_dir / "links.jsonl"
        until(lambda: states.exists() and states.stat().st_size)
        control.send(run_dir, Command(link="lte", down_rate_bps=40_000_000))
        control.send(run_dir, Command(link="nfc", carrier="down"))
        _, err = running.communicate(timeout=120)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 0, err
    assert lines(run_dir / "links.jsonl")[-1]["down_rate_bps"] == 40_000_000
    assert [detail for _, detail in kinds(run_dir, "live")] == ["down 40 Mbit/s"]
    assert [detail for _, detail in kinds(run_dir, "refused")] == ["no link is 'nfc'"]
