"""What somebody did by hand in a live lab becomes a scenario, which runs in virtual time twice the same."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Called, whole_lines
from live_test import live

pytestmark = pytest.mark.one_at_a_time

LINKS = """name: quick
payload: {size: 60 MB}
links:
  wifi: {down: 4 Mbit/s, up: 2 Mbit/s, rtt: 20 ms}
  lte: {down: 3 Mbit/s, up: 2 Mbit/s, rtt: 40 ms, jitter: 2 ms}
events:
  - {at: 2 s, link: lte, loss: 1 %, for: 3 s}
"""
"""The download lasts longer than eleven calls of linklab on a busy machine."""

DONE = (
    ("wifi", "carrier", "down", "--for", "1500ms"),
    ("lte", "down", "2mbit"),
    ("lte", "rtt", "90ms"),
    ("lte", "jitter", "5ms"),
    ("wifi", "queue", "30kB"),
    ("wifi", "loss", "2%", "--for", "1s"),
    ("wifi", "handover", "next"),
    ("wifi", "impair_down", "loss: 2 %, delay: 10 ms, jitter: 2 ms, distribution: pareto"),
    ("lte", "impair_up", "police: 1 Mbit/s, police_burst: 10 kB, bleach_ecn: true"),
    ("lte", "restore"),
    ("wifi", "up", "1mbit"),
)


def states(run_dir: Path, until_s: float) -> dict[tuple[int, str], dict[str, Any]]:
    """Every change of every link by its nanosecond. Of several states at once, live the last one counts:
    it may be the one before again, if what a command takes back ends just then."""
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for line in whole_lines(run_dir / "links.jsonl"):
        t_ns = round(line.pop("t_s") * 1e9)
        line.pop("late_s")
        if t_ns <= until_s * 1e9:
            found[t_ns, line["link"]] = line
    last: dict[str, dict[str, Any]] = {}
    for (t_ns, link), line in list(found.items()):
        if line == last.get(link):
            del found[t_ns, link]
        last[link] = line
    return found


def test_a_recorded_session_runs_in_virtual_time_with_the_same_changes_twice(
    tmp_path: Path, linklab: Callable[..., Called]
) -> None:
    file = tmp_path / "by-me.yaml"
    with live(tmp_path, LINKS, "--record", file, algorithms="alg3") as lab:
        lab.until(lambda: "downloading" in (tmp_path / "err").read_text())
        lab.until(lambda: lab.value("multilink_received_bytes_total", 'link="wifi"'))
        for words in DONE:
            done = lab.call("link", *words)
            assert done.code == 0, done.err
        run_dir = Path(lab.status()["run_dir"])
        lab.until(lambda: len(by_hand(run_dir)) == len(DONE))
        last_s = by_hand(run_dir)[-1]["t_s"]
        lab.until(lambda: whole_lines(run_dir / "queues.jsonl")[-1]["t_s"] > last_s + 1)
        lab.process.send_signal(signal.SIGINT)
        assert lab.process.wait(timeout=60) == 130
        said = (tmp_path / "err").read_text()
    assert f"--record: run what you changed by hand: {file}" in said
    events = yaml.safe_load(file.read_text())["events"]
    assert [one["link"] for one in events].count("wifi") == 6
    assert {"at": "2 s", "link": "lte", "for": "3 s", "loss": "1 %"} in events
    runs = []
    for number in (1, 2):
        done = linklab("run", file, "-a", "alg3", "--seed", 1, "--out", tmp_path / str(number))
        assert done.code == 0, done.err
        runs.append(next((tmp_path / str(number)).iterdir()))
    assert states(runs[0], last_s) == states(run_dir, last_s)
    for name in ("links.jsonl", "events.jsonl", "queues.jsonl", "client.jsonl", "summary.json"):
        assert (runs[0] / name).read_bytes() == (runs[1] / name).read_bytes(), name


def by_hand(run_dir: Path) -> list[dict[str, Any]]:
    return [one for one in whole_lines(run_dir / "events.jsonl") if one["kind"] == "live"]


def test_nothing_is_overwritten(tmp_path: Path, linklab: Callable[..., Called]) -> None:
    file = tmp_path / "by-me.yaml"
    file.write_text("mine")
    done = linklab("live", "hs-s7", "--record", file)
    said = f"linklab: --record: {file} is there already; allowed: a new file\n"
    assert (done.code, done.err, file.read_text()) == (2, said, "mine")
