"""Tests `linklab.live` and the fixture `linklab_live`: a lab on the real clock, in a program and in
tests of its users."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import linklab
import psutil
import pytest
from conftest import environment, part_of
from linklab.core.impairments import Impairments
from linklab.scenario import load
from msgspec import UNSET
from pytest_plugin_test import run_pytest
from python_api_test import SMALL
from through_the_lab import fetched, needs_outside, served

pytestmark = [
    pytest.mark.one_at_a_time,
    needs_outside,
]

SIZE = 1_000_000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with a small scenario, and a file to be served."""
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "file").write_bytes(os.urandom(SIZE))
    return tmp_path


@pytest.fixture
def origin(project: Path) -> Iterator[str]:
    """Starts a user's server on this machine. Yields its URL of a file."""
    with served(project / "served") as url:
        yield f"{url}file"


def labs_of(process: int) -> list[psutil.Process]:
    """Returns the processes that another one has started."""
    return psutil.Process(process).children(recursive=True)


def took_s(lab: linklab.OpenLab, proxy: str) -> float:
    """Downloads the file through a proxy. Returns the seconds."""
    begun = time.monotonic()
    content = fetched(lab.origin, proxy)
    assert content is not None
    assert len(content) == SIZE
    return time.monotonic() - begun


def test_a_lab_is_changed_by_hand_and_leaves_nothing(project: Path, origin: str) -> None:
    before = set(labs_of(os.getpid()))
    with linklab.live(project / "small.yaml", origin=origin, out=project / "runs") as lab:
        family = [one for one in labs_of(os.getpid()) if one not in before]
        took_s(lab, lab.proxy)
        lab.link("lte").set(down="2 Mbit/s")
        assert took_s(lab, lab.proxies["lte"]) > SIZE * 8 / 2e6
        lab.link("lte").set(down="40 Mbit/s")
        begun = time.monotonic()
        lab.link("wifi").set(carrier="down", seconds=2)
        while fetched(lab.origin, lab.proxies["wifi"]) is None:
            assert time.monotonic() - begun < 60
        assert time.monotonic() - begun > 2
        with pytest.raises(linklab.LinklabError, match=r"called 'wfi' \(did you mean 'wifi'\?\)"):
            lab.link("wfi")
        with pytest.raises(
            linklab.LinklabError, match="wifi: down: '5 apples' has the unknown unit"
        ):
            lab.link("wifi").set(down="5 apples")
    assert family
    assert psutil.wait_procs(family, timeout=10)[1] == []
    with pytest.raises(linklab.LinklabError, match="no live lab answers"):
        lab.link("wifi").set(carrier="up")


def test_each_link_has_carried_what_came_over_it(project: Path, origin: str) -> None:
    """The counters are compared with the file's size, with up to a tenth of headers and handshakes."""
    random_ = random.Random(48)
    with linklab.live(project / "small.yaml", origin=origin, out=project / "runs") as lab:
        before, times = lab.links, dict.fromkeys(lab.proxies, 0)
        for _ in range(6):
            name = random_.choice(list(lab.proxies))
            times[name] += 1
            took_s(lab, lab.proxies[name])
            if random_.random() < 0.5:
                continue
            for link, now in lab.links.items():
                carried = now.bytes - before[link].bytes
                assert times[link] * SIZE <= carried <= times[link] * SIZE * 1.1 + 1000
                assert (now.sent_bytes > before[link].sent_bytes) == (times[link] > 0)
    assert set(times.values()) != {0}


def test_every_value_of_a_link_is_changed_and_restored(project: Path) -> None:
    """The records say what the lab applied."""
    with linklab.live(project / "small.yaml", out=project / "runs") as lab:
        link = lab.link("lte")
        link.set(up="1 Mbit/s")
        link.set(rtt="90 ms")
        link.set(jitter="4 ms")
        link.set(loss="2 %", seconds=600)
        link.set(queue="50 kB")
        link.set(impair_down="loss: 1 %, delay: 20 ms")
        link.set(impair_up={"loss": "2 %"}, seconds=600)
        with pytest.raises(linklab.LinklabError, match="lte: impair_up.loss: '2' has no unit"):
            link.set(impair_up="loss: 2")
        link.restore()
    (run,) = linklab.load(project / "runs")
    states = [one for one in run.states if one.link == "lte"]
    values = [
        (one.up_rate_bps, one.delay_s, one.jitter_s, one.loss_ratio, one.queue_bytes)
        for one in states[-9:]
    ]
    impaired = [(one.impair_down, one.impair_up) for one in states[-4:]]
    own = values[0]
    assert values[1] == (1e6, *own[1:])
    assert values[2] == (1e6, 0.045, *own[2:])
    assert values[3] == (1e6, 0.045, 0.004, *own[3:])
    assert values[4] == (1e6, 0.045, 0.004, 0.02, own[4])
    assert values[5] == (1e6, 0.045, 0.004, 0.02, 50_000)
    assert values[8] == own
    down, up = Impairments(loss_ratio=0.01, delay_s=0.02), Impairments(loss_ratio=0.02)
    assert impaired == [(UNSET, UNSET), (down, UNSET), (down, up), (UNSET, UNSET)]


def test_a_link_becomes_another_one_and_the_links_those_of_a_scenario(project: Path) -> None:
    """Links of the lab have no file."""
    links = {"wifi": "10 Mbit/s 20 ms", "lte": "hotel-wifi"}
    with linklab.live(links=links, out=project / "runs") as lab:
        lab.link("lte").become("fast-4g, loss 2 %")
        assert lab.become(project / "small.yaml") == {"wifi": ["queue"], "lte": ["queue"]}
        with pytest.raises(linklab.LinklabError, match="rural-home has none of the lab's links"):
            lab.become("rural-home")
    (run,) = linklab.load(project / "runs")
    own, scenario = [one for one in run.states if one.link == "lte"], load(project / "small.yaml")
    was, fast, last = own[0], own[-3], own[-1]
    assert (was.down_rate_bps, was.impair_down) == (
        28_000_000,
        Impairments(delay_s=0.02, jitter_s=0.062),
    )
    assert (fast.down_rate_bps, fast.loss_ratio, fast.queue_bytes) == (9_000_000, 0.02, 150_000)
    assert fast.impair_down == was.impair_down  # What the line leaves out.
    small = scenario.links["lte"]
    assert (last.down_rate_bps, last.delay_s) == (small.down_rate_bps, small.rtt_s / 2)


SOME = (
    {"down": "2 Mbit/s"},
    {"carrier": "down"},
    {"outage": True},
    {"rtt": "90 ms", "jitter": "5 ms"},
    {"impair_down": {"loss": "2 %", "police": "3 Mbit/s", "police_burst": "20 kB"}},
    {"impair_up": {"mtu": "1300 B"}, "queue": "30 kB"},
)


@pytest.mark.parametrize("seed", range(2))
def test_a_lab_is_set_back_to_the_scenarios_start(project: Path, origin: str, seed: int) -> None:
    """The state is that of a fresh lab. What downloads take there: restored_lab_test.py."""
    draws = random.Random(seed)
    with linklab.live(project / "small.yaml", origin=origin, out=project / "runs") as lab:
        fresh = lab.status()["now"]["links"]
        for _ in range(3):
            took_s(lab, lab.proxy)
            for _ in range(draws.randint(1, 5)):
                lab.link(draws.choice(list(lab.proxies))).set(**draws.choice(SOME))
            assert lab.status()["now"]["links"] != fresh
            begun = time.monotonic()
            assert lab.restore() == []
            status = lab.status()
            assert status["now"]["links"] == fresh
            assert status["changed"] == []
            assert status["now"]["t_s"] <= time.monotonic() - begun
        took_s(lab, lab.proxy)
        assert sum(one.bytes for one in lab.links.values()) < 2 * SIZE  # Duplicates count, too.


def test_what_cannot_be_set_back_is_said(project: Path) -> None:
    traffic = "traffic:\n  - {link: lte, call: {rate: 1.5 Mbit/s}}\n"
    (project / "small.yaml").write_text(SMALL + traffic)
    with linklab.live(project / "small.yaml", out=project / "runs") as lab:
        lab.link("wifi").set(impair_up={"nat_udp": "20 s"})
        assert lab.restore() == ["the scenario's traffic goes on", "wifi's NAT keeps its flows"]


@pytest.mark.parametrize("end", part_of((signal.SIGKILL, signal.SIGINT, None), 2))
def test_a_program_that_forgets_to_close_leaves_no_lab(
    project: Path, end: signal.Signals | None
) -> None:
    """It may be killed, be interrupted, or end by itself."""
    wait = "time.sleep(600)" if end else ""
    program = (
        "import linklab, time\n"
        "lab = linklab.live('small.yaml')\n"
        "lab.__enter__()\n"
        f"print('open', flush=True)\n{wait}\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        family = labs_of(process.pid) if end else []
        if end is not None:
            assert family
            process.send_signal(end)
        process.wait(timeout=60)
    assert psutil.wait_procs(family, timeout=30)[1] == []
    assert [
        one.pid
        for one in psutil.process_iter(["cwd", "cmdline"])
        if one.info["cwd"] == str(project) and "linklab" in (one.info["cmdline"] or [])
    ] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"origin": "http://127.0.0.1:1/"}, "127.0.0.1:1 does not answer: Connection refused"),
        ({"timeout": 0.01}, "the lab did not start within 0 s"),
    ],
)
def test_a_lab_that_cannot_be_is_refused_in_words(
    project: Path, arguments: dict[str, str], words: str
) -> None:
    with (
        pytest.raises(linklab.LinklabError) as raised,
        linklab.live(project / "small.yaml", out=project / "runs", **arguments),  # type: ignore[arg-type]
    ):
        pass
    assert words in str(raised.value)


TESTS = """\
import os, subprocess, time, urllib.request
import pytest

@pytest.mark.linklab("small.yaml")
def test_app(linklab_live):
    lab = linklab_live(origin="ORIGIN")
    lab.link("wifi").set(down="1 Mbit/s")
    lab.link("lte").set(down="1 Mbit/s")
    begun = time.monotonic()
    assert len(urllib.request.urlopen(lab.origin).read()) == 1_000_000
    assert time.monotonic() - begun > 2
    assert os.environ["https_proxy"] == lab.proxy
    assert b"linklab_link_up{" in urllib.request.urlopen(lab.metrics).read()

@pytest.mark.linklab("small.yaml")
def test_that_fails(linklab_live):
    linklab_live(origin="http://127.0.0.1:1/")
"""


def test_the_fixture_puts_an_application_behind_the_links(project: Path, origin: str) -> None:
    """Two workers wait for each other, because both tests are on the real clock."""
    (project / "test_app.py").write_text(TESTS.replace("ORIGIN", origin))
    done = run_pytest(project, [sys.executable, "-m", "pytest"], "-n", "2")
    assert re.search("1 failed, 1 passed", done.stdout), done.stdout + done.stderr
    assert "127.0.0.1:1 does not answer" in done.stdout
