"""Tests the handbook's page that measures a browser: its commands run as they stand."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from conftest import REPOSITORY, environment, nightly, program, ran, until, whole_lines
from free_ports import free_port
from linklab.commands.report_browser_test import CHROMIUM, needs_browser
from through_the_lab import PATIENCE_S, listening, needs_outside, proxied

PAGE = REPOSITORY / "emulator" / "handbook" / "how-to" / "measure-a-browser.md"
EXAMPLE = REPOSITORY / "emulator" / "examples" / "browser"
LINES = re.findall(r"^    (.+)$", PAGE.read_text(), re.M)
EXECS = [line for line in LINES if line.startswith("linklab exec ")]
RATES_BPS = {"wifi": 80e6, "lte": 50e6}

pytestmark = needs_browser


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the directory of the page's images."""
    directory = tmp_path_factory.mktemp("images")
    (line,) = (line for line in LINES if "./page" in line)
    assert typed(line, directory, REPOSITORY).returncode == 0
    return directory


def path() -> str:
    """Returns a PATH that has the programs which the page asks for."""
    program("openssl")
    found = (str(CHROMIUM), program("caddy"))
    return ":".join([*(str(Path(one).parent) for one in found), os.environ["PATH"]])


def typed(line: str, images: Path, cwd: Path = EXAMPLE) -> subprocess.CompletedProcess[str]:
    """Runs a line of the page, with another directory for the images."""
    line = line.replace("/tmp/page", str(images))
    line = re.sub(r"^linklab", f"{shlex.quote(sys.executable)} -m linklab", line)
    return ran(["sh", "-c", line], cwd=cwd, env={**environment(), "PATH": path()})


def loaded_ms(said: str, protocol: str) -> int:
    """Returns the time that the browser measured, once all is there by this protocol alone."""
    found = re.search(rf"^30 images in (\d+) ms by {protocol}$", said, re.M)
    assert found is not None, said
    return int(found[1])


def size_of(images: Path) -> int:
    """Returns the bytes of all images."""
    return sum(one.stat().st_size for one in images.glob("*.svg"))


def received(run_dir: Path) -> Counter[str]:
    """Returns the bytes that each link has brought so far."""
    samples = whole_lines(run_dir / "queues.jsonl")
    return Counter(
        {one["link"]: one["sent_bytes"] for one in samples if one["direction"] == "down"}
    )


@pytest.mark.parametrize(
    ("number", "protocol", "links"),
    [
        pytest.param(0, "http/1.1", {"wifi"}, marks=nightly),
        pytest.param(1, "h2", {"wifi"}, marks=nightly),
        pytest.param(2, "h3", {"wifi"}),
        pytest.param(3, "http/1.1", {"wifi", "lte"}, marks=nightly),
        pytest.param(4, "h2", {"wifi"}, marks=nightly),
    ],
)
def test_a_load_in_virtual_time(
    tmp_path: Path, images: Path, number: int, protocol: str, links: set[str]
) -> None:
    assert len(EXECS) == 5
    done = typed(EXECS[number].replace(" exec ", f" exec --out {tmp_path} "), images)
    assert done.returncode == 0, done.stderr
    took_ms = loaded_ms(done.stdout, protocol)
    size = size_of(images)
    assert took_ms > size * 8 / sum(RATES_BPS[link] for link in links) * 1e3
    (outcome,) = tmp_path.glob("*/outcome.json")
    by_link = json.loads(outcome.read_text())["received_bytes"]
    assert sum(by_link.values()) > size
    assert {link for link, bytes_there in by_link.items() if bytes_there > 100_000} == links


def test_an_interrupted_load_leaves_no_profile(tmp_path: Path) -> None:
    """A program in the browser's place is interrupted with it, as by Ctrl-C."""
    browser, profiles = tmp_path / "chromium", tmp_path / "profiles"
    profiles.mkdir()
    browser.write_text("#!/bin/sh\nexec sleep 60\n")
    browser.chmod(0o755)
    env = {**environment(), "PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(profiles)}
    load = subprocess.Popen(["./load", "http://x/"], cwd=EXAMPLE, env=env, start_new_session=True)
    until(lambda: list(profiles.glob("*/log")))  # The browser starts next.
    os.killpg(load.pid, signal.SIGINT)
    assert load.wait(PATIENCE_S) == 130
    assert list(profiles.iterdir()) == []


@pytest.mark.one_at_a_time
@needs_outside
def test_a_load_on_the_real_clock(tmp_path: Path, images: Path) -> None:
    """Times depend on this machine, so they are not compared."""
    (serve,) = (line.removesuffix(" &") for line in LINES if line.startswith("caddy "))
    (live,) = (line.split() for line in LINES if line.startswith("linklab live "))
    loads = [line for line in LINES if line.startswith("./load ")]
    assert live[3:] == ["--origin", "http://localhost:3000/", "--listen-proxy", "8080"]
    port = free_port()
    words = serve.replace("/tmp/page", str(images)).replace("3000", str(port)).split()
    with (
        listening(port, *words, env={**environment(), "PATH": path()}),
        proxied(tmp_path, Path(live[2]), f"http://127.0.0.1:{port}/") as lab,
    ):
        ports = {"3000": str(port), "8080": str(lab.ports[""]), "8081": str(lab.ports["wifi"])}

        def carriers(line: str) -> set[str]:
            """Loads the page. Returns the links that brought it."""
            before = received(lab.run_dir())
            done = typed(re.sub(r"\b(3000|808[01])\b", lambda one: ports[one[0]], line), images)
            assert done.returncode == 0, done.stderr
            assert loaded_ms(done.stdout, "http/1.1") > 0
            while (now := received(lab.run_dir()) - before).total() < size_of(images):
                time.sleep(0.1)  # The lab writes its records twice a second.
            return {link for link, bytes_there in now.items() if bytes_there > 100_000}

        assert [carriers(line) for line in loads] == [{"wifi"}, {"wifi", "lte"}]
