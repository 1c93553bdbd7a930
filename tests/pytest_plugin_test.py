"""Tests the plugin of pytest in projects of its users."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from conftest import REPOSITORY, ran, until
from python_api_test import blocks

SMALL = """\
name: small
payload: {size: 1 MB}
links:
  wifi: {down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}
  lte: {down: 20 Mbit/s, up: 10 Mbit/s, rtt: 40 ms}
"""
CLIENT = """\
DEVICE = "wlan0"

def command():
    return ["curl", "-sSo", "{output}", "--interface", DEVICE, "{url}"]
"""
TESTS = """\
import pytest
import my_client

@pytest.mark.linklab("small.yaml")
def test_my_client_is_no_slower(linklab):
    run = linklab.execute(my_client.command())
    assert run.exit_code == 0
    linklab.check(run)

@pytest.mark.linklab("small.yaml", runs=2)
def test_adaptive(linklab):
    run = linklab.run("adaptive")
    assert run.download_s < 30
    linklab.check(run)

def test_words():
    assert my_client.command()[0] == "curl"
"""

OTHER_PLUGINS = ("schemathesis", "hypothesispytest", "anyio")
"""Plugins of this checkout's Python that a user's project has not. They take a second at each start."""

Pytest = Callable[..., subprocess.CompletedProcess[str]]


def project_in(directory: Path) -> Path:
    """Writes a user's project: a client, its tests, and a scenario."""
    (directory / "small.yaml").write_text(SMALL)
    (directory / "my_client.py").write_text(CLIENT)
    (directory / "test_downloads.py").write_text(TESTS)
    others = " ".join(f"-p no:{name}" for name in OTHER_PLUGINS)
    (directory / "pytest.ini").write_text(f"[pytest]\naddopts = --strict-markers {others}\n")
    return directory


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's project."""
    return project_in(tmp_path)


def run_pytest(
    project: Path, start: list[object], *words: object, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Calls pytest in a project, not in CI unless a variable says so."""
    clean = {k: v for k, v in os.environ.items() if k not in ("CI", "PYTHONPATH", "COLUMNS")}
    return ran([*map(str, start), *map(str, words)], cwd=project, env={**clean, **variables})


@pytest.fixture
def in_project(project: Path) -> Pytest:
    """Calls pytest of the checkout's own environment, which has the plugin."""
    start: list[object] = [sys.executable, "-m", "pytest"]

    def call(*words: object, **variables: str) -> subprocess.CompletedProcess[str]:
        return run_pytest(project, start, *words, **variables)

    return call


def test_workers_of_xdist_update_one_baseline(project: Path, in_project: Pytest) -> None:
    done = in_project("-n", "2", "--linklab-update", "-k", "adaptive")
    assert done.returncode == 0, done.stdout
    kept = (project / "__linklab__" / "test_downloads.test_adaptive.yaml").read_text()
    assert kept.count("algorithm: adaptive") == 2
    assert "2 runs: " in done.stdout


def test_a_time_out_counts_the_seconds_of_the_lab(project: Path, in_project: Pytest) -> None:
    """Waits take no time of the machine, so 200 s are over soon."""
    (project / "test_downloads.py").write_text(
        "import pytest\n"
        '@pytest.mark.linklab("small.yaml", timeout=300)\n'
        '@pytest.mark.parametrize("seconds", [200, 400])\n'
        "def test_it(linklab, seconds):\n"
        "    linklab.execute(['sleep', str(seconds)])\n"
    )
    done = in_project()
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "after 300 s of the lab's time and was ended" in done.stdout


def test_a_failed_test_runs_again_by_lf(project: Path, in_project: Pytest) -> None:
    (project / "test_downloads.py").write_text(
        "import pytest\n"
        '@pytest.mark.linklab("small.yaml", runs=2)\n'
        "def test_it(linklab):\n"
        "    assert linklab.run('alg3').download_s > 100 or linklab.seed != 2\n"
    )
    assert "1 failed, 1 passed" in in_project().stdout
    again = in_project("--lf").stdout
    assert "test_it[small-2]" in again
    assert "1 failed" in again
    assert " passed" not in again


def test_a_baseline_of_another_guest_gives_no_verdict(project: Path, in_project: Pytest) -> None:
    assert in_project("--linklab-update", "-k", "no_slower").returncode == 0
    (kept,) = (project / "__linklab__").iterdir()
    kept.write_text(re.sub("guest kernel: .*", "guest kernel: another", kept.read_text()))
    skipped = in_project("-k", "no_slower", "-rs")
    assert skipped.returncode == 0
    assert "1 skipped" in skipped.stdout
    assert "no verdict: " in skipped.stdout
    assert "guest kernel: another then" in skipped.stdout.replace("\n", " ")
    failed = in_project("-k", "no_slower", CI="true")
    assert failed.returncode == 1
    assert "no verdict: " in failed.stdout
    assert in_project("--linklab-update", "-k", "no_slower").returncode == 0
    assert "guest kernel: another" not in kept.read_text()


ELSEWHERE = "import platform\nplatform.machine = lambda: 'riscv64'\n"
"""A conftest.py that has the machine be one without a guest."""


def test_without_a_guest_tests_are_skipped_and_fail_in_ci(
    project: Path, in_project: Pytest
) -> None:
    (project / "conftest.py").write_text(ELSEWHERE)
    skipped = in_project("-rs", LINKLAB_PROCESSOR="native")
    assert skipped.returncode == 0
    assert "1 passed, 3 skipped" in skipped.stdout
    assert "User Mode Linux needs x86-64, this machine is riscv64" in skipped.stdout
    failed = in_project(CI="1", LINKLAB_PROCESSOR="native")
    assert (failed.returncode, "1 passed, 3 errors" in failed.stdout) == (1, True)


COLD = """\
import time
from pathlib import Path
from linklab.places.guest import image, kernel

def ensure(name, progress):
    progress("unpacking packages", 0.5)
    raise image.image_root.ImageError("the disk is full")

image.ensure = ensure
kernel.ensure = lambda progress, recipe=None: Path()
"""


def test_a_cold_cache_is_explained_although_output_is_captured(
    project: Path, in_project: Pytest
) -> None:
    (project / "conftest.py").write_text(COLD)
    done = in_project("-k", "no_slower", "-rs", LINKLAB_CACHE=str(project / "cold"))
    assert "the first run on this machine makes a guest" in done.stderr
    assert "linklab: image: unpacking packages" in done.stderr
    assert "no guest on this machine: the disk is full" in done.stdout.replace("\n", " ")


BAD_INPUT = {
    '@pytest.mark.linklab("small.yaml", run=2)': "the marker linklab has no 'run'; allowed",
    '@pytest.mark.linklab("small.yaml", runs=0)': "runs=0 of the marker linklab; allowed: 1",
    '@pytest.mark.linklab("hs-s77")': "no scenario is called 'hs-s77' (did you mean 'hs-s7'?)",
    "": "which scenario? allowed: the argument scenario= or links=, or @pytest.mark.linklab(NAME)",
}


def test_bad_input_is_one_clear_error(project: Path, in_project: Pytest) -> None:
    """Each in a file of its own. The first two are refused when pytest reads them."""
    (project / "test_downloads.py").unlink()
    for number, marker in enumerate(BAD_INPUT):
        (project / f"test_{number}.py").write_text(
            f"import pytest\n{marker}\ndef test_it(linklab):\n    linklab.run()\n"
        )
    done = in_project("--continue-on-collection-errors")
    assert done.returncode == 1
    assert [words for words in BAD_INPUT.values() if words not in done.stdout] == []
    assert re.search(r"= 2 failed, .*2 errors in ", done.stdout)
    of_marker = done.stdout.partition("ERROR collecting test_0.py")[2].partition("\n_")[0]
    assert of_marker.strip("_ \n").count("\n") == 0, of_marker


def test_a_whole_suite_runs_behind_the_links_without_a_change(
    project: Path, in_project: Pytest
) -> None:
    (project / "test_downloads.py").write_text(
        "import os, ssl, time, urllib.request\n"
        "def test_it():\n"
        "    begun = time.monotonic()\n"
        "    trusted = ssl.create_default_context(cafile=os.environ['LINKLAB_CA'])\n"
        "    got = urllib.request.urlopen(os.environ['LINKLAB_URL'], context=trusted).read()\n"
        "    assert len(got) == 1_000_000\n"
        "    assert time.monotonic() - begun > 0.1\n"
        "def test_that_fails():\n"
        "    assert False\n"
        "def test_inside(linklab):\n"
        "    pass\n"
    )
    done = in_project("--linklab-scenario", "small.yaml", "-rs")
    assert done.returncode == 1
    assert "1 failed, 1 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "runs inside a lab, where no other one can run" in done.stdout
    assert "place: guest, clock: virtual" in done.stderr
    only = in_project("--linklab-scenario=small.yaml", "-k", "test_it")
    assert (only.returncode, "1 passed" in only.stdout) == (0, True)
    wrong = in_project("--linklab-scenario", "hs-s77")
    assert (wrong.returncode, "did you mean 'hs-s7'?" in wrong.stderr) == (4, True)


def test_a_project_that_uses_nothing_of_it_imports_nothing_of_it(
    project: Path, in_project: Pytest
) -> None:
    (project / "test_downloads.py").write_text(
        "import json, sys\n"
        "def test_it():\n"
        "    with open('seen.json', 'w') as file:\n"
        "        json.dump([one for one in sys.modules if one.startswith('linklab')], file)\n"
    )
    done = in_project()
    assert done.returncode == 0
    said = re.sub("plugins: .*|" + re.escape(str(project)), "", done.stdout)
    assert "linklab" not in said
    seen = json.loads((project / "seen.json").read_text())
    assert sorted(seen) == [
        "linklab",
        "linklab.testing",
        "linklab.testing.case",
        "linklab.testing.plugin",
    ]


def test_a_fixture_of_the_same_name_is_the_project_s(project: Path, in_project: Pytest) -> None:
    """linklab's own tests have a fixture `linklab`."""
    (project / "conftest.py").write_text(
        "import pytest\n@pytest.fixture\ndef linklab():\n    return 'own'\n"
    )
    (project / "test_downloads.py").write_text(
        "def test_it(linklab):\n    assert linklab == 'own'\n"
    )
    assert in_project().returncode == 0


MY_CLIENT = """\
#!/bin/sh
exec curl -sSo "$2" "$3"
"""
CONFTEST = """\
import functools, http.server, threading
from types import SimpleNamespace
import pytest

@pytest.fixture(scope="session")
def my_server():
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=".")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}/ride.yaml")
        server.shutdown()
"""


def test_an_error_is_shown_at_the_line_of_the_test(project: Path, in_project: Pytest) -> None:
    (project / "test_downloads.py").write_text(
        "def test_run(linklab):\n    linklab.run('alg3', scenario='none.yaml')\n"
        "def test_compare(linklab):\n    linklab.compare('alg3', scenario='none.yaml')\n"
        "def test_execute(linklab):\n    linklab.execute(['no-such'], scenario='small.yaml')\n"
        "def test_live(linklab_live):\n    linklab_live(scenario='none.yaml')\n"
        "def test_check(linklab):\n"
        "    linklab.check(linklab.run('alg3', scenario='small.yaml'))\n"
    )
    done = in_project()
    assert done.stdout.count("E       ") == 5, done.stdout
    assert set(re.findall(r"^(\S+\.py):\d+: ", done.stdout, re.M)) == {"test_downloads.py"}
    assert "none.yaml: there is no such scenario" in done.stdout
    assert "no baseline of small" in done.stdout


@pytest.mark.one_at_a_time
def test_the_examples_of_the_page_do_what_they_say(project: Path, in_project: Pytest) -> None:
    (project / "test_downloads.py").unlink()
    page = REPOSITORY / "emulator/handbook/how-to/use-linklab-in-python-tests.md"
    (scenario,) = (one for one in blocks(page) if one.startswith("cat > ride.yaml"))
    subprocess.run(["sh", "-c", scenario], cwd=project, check=True)
    (project / "my-client").write_text(MY_CLIENT)
    (project / "my-client").chmod(0o755)
    (project / "conftest.py").write_text(CONFTEST)
    examples = [one for one in blocks(page) if "def test_" in one]
    for number, example in enumerate(examples):
        (project / f"test_example{number}.py").write_text(f"{example}\n")
    made = in_project("--linklab-update")
    assert made.returncode == 0, made.stdout
    assert "11 passed" in made.stdout
    assert "1 passed, 10 deselected" in in_project("-k", "slower").stdout


def test_ctrl_c_in_a_fixture_leaves_no_process(project: Path) -> None:
    (project / "test_downloads.py").write_text(
        "import pytest\n"
        "@pytest.fixture\n"
        "def endless(linklab):\n"
        "    linklab.execute(['sleep', 'infinity'], scenario='small.yaml', clock='real')\n"
        "def test_it(endless):\n"
        "    pass\n"
    )
    with subprocess.Popen(
        [sys.executable, "-m", "pytest"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        whole = psutil.Process(process.pid)
        until(
            lambda: any("linux" in one.name() for one in whole.children(recursive=True)),
            process=process,
        )
        family = whole.children(recursive=True)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "KeyboardInterrupt" in said
    assert psutil.wait_procs(family, timeout=10)[1] == []
