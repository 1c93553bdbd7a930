"""Tests a live lab in the guest, on the real clock, scraped by a real Prometheus and changed from
outside.

The tests check what happens, not how fast, with one exception: a change must show in Prometheus.
"""

import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY, Called, called, command, environment, ran, until
from free_ports import free_port
from linklab.core.link_kinds import KINDS
from linklab.core.scratch import find as leftovers
from prometheus import GRAFANA, Asked, Prometheus, asked, filled_in, prometheus

pytestmark = pytest.mark.one_at_a_time

SCENARIO = """name: quick
payload: {size: 12 MB}
links:
  wifi:
    down: 12 Mbit/s
    up: 5 Mbit/s
    rtt: 20 ms
    radio: {standard: n, access_points: [{name: ap1}, {name: ap2, signal: -50 dBm}]}
  lte: {down: 8 Mbit/s, up: 4 Mbit/s, rtt: 40 ms, rrc: {}, carriers: {count: 2}}
  lte2: {kind: lte, down: 4 Mbit/s, up: 2 Mbit/s, rtt: 50 ms}
events:
  - {at: 1 s, link: lte, for: 500 ms, outage: true}
  - {at: 2 s, link: lte2, for: 500 ms, cap: 3 Mbit/s}
"""


class Live:
    """Runs `linklab live` and talks to it."""

    def __init__(self, work: Path, process: subprocess.Popen[Any], port: int) -> None:
        self.work = work
        self.process = process
        self.address = f"127.0.0.1:{port}"

    def call(self, *words: str) -> Called:
        """Calls `linklab` as in a second terminal."""
        done = called(self.work, *words, "--live", self.address, timeout_s=600)
        return Called(done.returncode, done.stdout, done.stderr)

    def status(self) -> Any:
        with urllib.request.urlopen(f"http://{self.address}/status", timeout=10) as answer:
            return json.load(answer)

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=10) as answer:
            return str(answer.read().decode())

    def value(self, name: str, *labels: str) -> float | None:
        """Returns the value of a metric's only series whose labels contain all of `labels`."""
        for line in self.metrics().splitlines():
            if line.startswith(f"{name}{{") and all(one in line for one in labels):
                return float(line.rsplit(" ", 1)[1])
        return None

    def until(self, what: Callable[[], object]) -> None:
        """Waits until a condition holds. Fails if the lab ends first or the time is over."""
        said = (self.work / "err").read_text
        until(what, said, process=self.process, patience_s=240.0)


@contextmanager
def live(
    work: Path, scenario: str = SCENARIO, *words: object, algorithms: str = "alg3,alg1"
) -> Iterator[Live]:
    """A lab for a scenario called quick; `words` are further options."""
    (work / "quick.yaml").write_text(scenario)
    port = free_port()
    with (work / "err").open("w") as err:
        process = subprocess.Popen(
            command(
                *("live", "quick.yaml", "-a", algorithms, "--place", "guest"),
                *("--listen", f"127.0.0.1:{port}", "--out", "runs", *map(str, words)),
            ),
            cwd=work,
            env=environment(),
            stdout=err,
            stderr=err,
            text=True,
        )
    made = Live(work, process, port)
    try:
        yield made
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, Prometheus]]:
    """Runs a live lab, and a Prometheus that has scraped several of its runs."""
    work = tmp_path_factory.mktemp("live")
    with live(work) as lab, prometheus(work / "prometheus", lab.address) as server:
        lab.until(lambda: lab.address and (work / "err").read_text().count("Mbit/s") >= 2)
        lab.until(lambda: lab.value("linklab_link_up", 'link="wifi"') == 1)
        lab.until(lambda: lab.value("multilink_received_bytes_total", 'link="wifi"'))
        assert lab.call("link", "lte2", "rtt", "60ms").code == 0
        yield lab, server


def downlink(link: str) -> tuple[str, str, str]:
    return "linklab_link_rate_bytes_per_second", f'link="{link}"', 'direction="down"'


def test_the_log_says_which_place_and_clock_and_why(watched: tuple[Live, Prometheus]) -> None:
    said = (watched[0].work / "err").read_text()
    assert "place: guest, clock: real" in said
    assert f"http://{watched[0].address}/metrics" in said


STANDING = {"link": "lte2", "rtt_s": 0.06}
"""The changes made before the first test."""


LIVE = [
    one
    for one in asked()
    if (one.dashboard == "live-lab" and one.where != "Alerts")
    or (one.dashboard == "compare-algorithms" and one.where == "Runs")
    if 'link!~"' not in str(one)
    and not re.search(rf'link=~?"(?:{"|".join(KINDS.keys() - {"wifi", "lte"})})', str(one))
]
"""Queries that return something on a machine that is late, whose runs are left out of comparisons,
in a lab with links named wifi and lte."""


@pytest.mark.parametrize("one", LIVE, ids=str)
def test_no_panel_of_the_dashboards_is_empty(watched: tuple[Live, Prometheus], one: Asked) -> None:
    lab, server = watched
    now_s = time.time()
    # Between two runs there are no values. The next run has some.
    lab.until(lambda: server.values(one, now_s - 300, time.time()))


def test_promtool_finds_nothing_to_say_of_the_metrics(watched: tuple[Live, Prometheus]) -> None:
    done = ran(["promtool", "check", "metrics"], input=watched[0].metrics())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_change_shows_in_prometheus_and_stays_for_the_next_run(
    watched: tuple[Live, Prometheus],
) -> None:
    lab, server = watched
    before = lab.value(*downlink("lte"))
    done = lab.call("link", "lte", "down", "2mbit")
    assert done.code == 0, done.err
    at_once = "lte: down 2 Mbit/s"
    between_runs = f"{at_once} (the lab has not applied it yet)"
    assert done.out in (f"{at_once}\n", f"{between_runs}\n")

    def shown() -> bool:
        series = server.value(
            'min(linklab_link_rate_bytes_per_second{link="lte", direction="down"})', time.time()
        )
        return bool(series) and series[0][1] == 250_000

    lab.until(shown)
    assert before != 250_000
    counted: list[float | None] = []

    def has_counted() -> object:
        """A run that ends takes its count with it. The next one counts the change anew."""
        counted.append(lab.value("linklab_events_total", 'kind="live"', 'link="lte"'))
        return counted[-1]

    lab.until(has_counted)
    assert counted[-1] == 1
    run_dir = lab.status()["run_dir"]
    assert lab.call("next").code == 0
    lab.until(lambda: lab.status()["run_dir"] not in (run_dir, None))
    assert lab.status()["changed"] == [STANDING, {"link": "lte", "down_rate_bps": 2_000_000}]
    lab.until(lambda: lab.value(*downlink("lte")) == 250_000)
    assert lab.call("link", "lte", "down", "8mbit").code == 0
    lab.until(lambda: (lab.value(*downlink("lte")) or 0) > 250_000)


def test_a_carrier_that_is_taken_is_down_an_event_and_an_alert(
    watched: tuple[Live, Prometheus],
) -> None:
    lab, server = watched
    lab.until(lambda: lab.value("linklab_link_up", 'link="wifi"') == 1)
    assert lab.call("link", "wifi", "carrier", "down").code == 0
    lab.until(lambda: lab.value("linklab_link_up", 'link="wifi"') == 0)
    lab.until(lambda: lab.value("linklab_events_total", 'kind="carrier-down"', 'link="wifi"'))
    firing = 'ALERTS{alertname="LinkDown", alertstate="firing", link="wifi"}'
    lab.until(lambda: server.value(firing, time.time()))
    (shown,) = (filled_in(one.expression) for one in asked() if one.where == "Alerts")
    # Between two runs there is no link that is down.
    lab.until(
        lambda: "LinkDown Wi-Fi" in [one["which"] for one, _ in server.value(shown, time.time())]
    )
    rules = yaml.safe_load((GRAFANA / "provisioning/alerting/linklab.yaml").read_text())
    (rule,) = [one for one in rules["groups"][0]["rules"] if one["title"] == "LinkDown"]
    lab.until(lambda: server.value(rule["data"][0]["model"]["expr"], time.time()))
    assert lab.call("link", "wifi", "carrier", "up").code == 0
    lab.until(lambda: lab.value("linklab_link_up", 'link="wifi"') == 1)
    assert "wifi" not in [one["link"] for one in lab.status()["changed"]]


def test_a_handover_goes_to_the_other_access_point(watched: tuple[Live, Prometheus]) -> None:
    lab, _ = watched
    lab.until(lambda: lab.value("linklab_link_up", 'link="wifi"') == 1)
    points = itertools.cycle(("ap1", "ap2"))

    def counted() -> object:
        """A run that ends takes its count with it, so the next one is asked anew."""
        assert lab.call("link", "wifi", "handover", next(points)).code == 0
        return lab.value("linklab_link_handovers_total", 'link="wifi"')

    lab.until(counted)


def test_what_cannot_be_done_is_said(watched: tuple[Live, Prometheus]) -> None:
    lab, _ = watched
    done = lab.call("link", "lte3", "carrier", "down")
    said = "linklab: no link is called 'lte3' (did you mean 'lte'?); there are: wifi, lte, lte2\n"
    assert (done.code, done.err) == (2, said)
    done = lab.call("link", "wifi", "handover", "ap9")
    assert done.code == 2
    assert "no access point is called 'ap9'; there are: ap1, ap2" in done.err


def test_an_interrupt_ends_everything_and_leaves_the_run_directories(tmp_path: Path) -> None:
    with live(tmp_path) as lab:
        lab.until(
            lambda: (tmp_path / "err").exists() and "downloading" in (tmp_path / "err").read_text()
        )
        lab.until(lambda: list(tmp_path.glob("runs/*/*/client.jsonl")))
        said = (tmp_path / "err").read_text()
        (token,) = [Path(line.split(": ")[1]) for line in said.splitlines() if "its token" in line]
        assert token.stat().st_mode & 0o777 == 0o600
        lab.process.send_signal(signal.SIGINT)
        assert lab.process.wait(timeout=60) == 130
    assert not token.exists()
    assert "everything that was started has been ended" in (tmp_path / "err").read_text()
    assert not [path for path in leftovers() if f"-{lab.process.pid}-" in path.name]


def test_a_prometheus_beside_the_lab_ends_with_it(tmp_path: Path) -> None:
    """`make live` runs this."""
    if shutil.which("prometheus") is None:
        pytest.skip("Prometheus is not installed: apt-get install prometheus")
    (tmp_path / "quick.yaml").write_text(SCENARIO)
    ports = {"LINKLAB_PROMETHEUS_PORT": free_port(), "LINKLAB_METRICS_PORT": free_port()}
    linklab = tmp_path / "linklab"
    linklab.write_text(f'#!/bin/sh\nexec {shlex.join(command())} "$@"\n')
    linklab.chmod(0o755)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(
            [
                REPOSITORY / "dashboards/prometheus/beside",
                linklab,
                "quick.yaml",
                "--place",
                "guest",
            ],
            cwd=tmp_path,
            stdout=err,
            stderr=err,
            text=True,
            start_new_session=True,
            # A shell does so with background jobs.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
            env={
                **environment(),
                "TMPDIR": str(temporary),
                **{name: str(port) for name, port in ports.items()},
            },
        )
    server = Prometheus(f"http://127.0.0.1:{ports['LINKLAB_PROMETHEUS_PORT']}", temporary)
    lab = Live(tmp_path, process, ports["LINKLAB_METRICS_PORT"])
    try:
        lab.until(lambda: list(temporary.glob("*/prometheus.yml")))
        lab.until(lambda: "Prometheus: http" in (tmp_path / "err").read_text())
        lab.until(lambda: server.value("linklab_link_up", time.time()))
        board = json.loads((REPOSITORY / "dashboards/grafana/live-lab.json").read_text())["uid"]
        lab.until(lambda: f"3000/d/{board}?" in (tmp_path / "err").read_text())
        group = process.pid
        os.killpg(group, signal.SIGINT)  # Ctrl-C in a terminal does so.
        assert process.wait(timeout=60) == 130
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=60)
    assert not list(temporary.iterdir())
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(server.url, timeout=5)
