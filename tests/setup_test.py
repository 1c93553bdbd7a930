"""Tests `make setup` and its parts on systems that lack something."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import site
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from conftest import REPOSITORY, TEST_ALL, ran

SETUP = REPOSITORY / "emulator" / "setup"
INTERRUPTED = "linklab: interrupted; everything that was started has been ended"


@pytest.fixture(scope="module")
def linklab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns `linklab` of an environment in a path with a space, with the tests' packages."""
    directory = tmp_path_factory.mktemp("setup")
    environment = directory / "my dir" / ".venv"
    (directory / "none.txt").touch()
    subprocess.run([SETUP / "python", environment, directory / "none.txt"], check=True, timeout=120)
    return environment / "bin" / "linklab"


PACKAGES = {**os.environ, "PYTHONPATH": ":".join(site.getsitepackages())}


def test_linklab_runs_from_a_path_with_a_space(linklab: Path) -> None:
    done = ran([linklab, "--version"], env=PACKAGES)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("linklab ")


@pytest.mark.parametrize(
    ("words", "step_s"),
    [
        (("scenarios",), 0.003),
        (("scenarios",), 0.03),
        (("plot", "static-80-50", "-o", "plot.png"), 0.06),
        (("run", "static-80-50", "-a", "alg3"), 0.06),
    ],
)
def test_ctrl_c_is_no_traceback_from_the_first_moment_on(
    linklab: Path, tmp_path: Path, words: tuple[str, ...], step_s: float
) -> None:
    """From the start of Python to its end. `make test` takes every tenth moment, until the end is
    reached or the thirtieth."""
    for count in range(0, 30, 1 if TEST_ALL else 10):
        process = subprocess.Popen(
            [linklab, *words],
            cwd=tmp_path,
            env=PACKAGES,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(count * step_s)  # One signal at each moment of the start.
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        told = [line for line in err.splitlines() if not line.startswith("place: ")]
        # The signal ends the shell that starts Python.
        assert process.returncode in (130, -signal.SIGINT, 0), (count, err)
        assert told in ([], [INTERRUPTED]), count
        if process.returncode == 0:
            return


def test_in_the_background_of_a_script_ctrl_c_is_ignored(linklab: Path) -> None:
    script = '"$0" scenarios & sleep 0.2; kill -INT $!; wait $!'
    done = ran(["sh", "-c", script, linklab], env=PACKAGES)
    assert (done.returncode, done.stderr) == (0, "")
    assert "static-80-50" in done.stdout


def test_a_go_that_never_ends_is_refused(tmp_path: Path) -> None:
    """Its hash is checked once the download is complete."""

    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(bytes(1 << 20))

    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        version = re.search(r"go([\d.]+)\.linux-amd64", (SETUP / "go.sha256").read_text())
        assert version is not None
        done = ran(
            [sys.executable, SETUP / "official_go.py", version[1], tmp_path / "go"],
            env={**os.environ, "GOPROXY": f"http://127.0.0.1:{server.server_port}"},
        )
        server.shutdown()
    assert done.returncode == 1
    assert "more than 256 MiB" in done.stderr
    assert list((tmp_path / "go").iterdir()) == []


def test_a_wrong_word_for_the_client_builds_nothing(tmp_path: Path) -> None:
    """It was taken for the name of a file: `client fmt` made a program `fmt`."""
    done = ran([SETUP / "client", "fmt"], cwd=tmp_path)
    assert done.returncode == 2
    said = "linklab: client fmt: neither a command nor a file to build, such as build/multilink\n"
    assert done.stderr.startswith(f"{said}usage: client ")
    assert [*tmp_path.iterdir()] == []


def test_the_soak_in_the_lab_runs_from_a_path_with_a_space(tmp_path: Path) -> None:
    directory = tmp_path / "my dir"
    directory.mkdir()
    shutil.copy(REPOSITORY / "Makefile", directory)
    said = ran(["make", "-n", "-o", "setup", "soak-lab"], cwd=directory, check=True)
    words = shlex.split(said.stdout.replace("\\\n", ""))
    assert words[words.index("--") + 1] == f"{directory}/build/soak"
    model = words[words.index("-soak.model") + 1]
    assert model == f"{directory}/profiles/energy/galaxy-s3.yaml"
    assert (REPOSITORY / Path(model).relative_to(directory)).is_file()


def system(directory: Path, *missing: str, **stubs: str) -> dict[str, str]:
    """Returns the environment of a machine that lacks some programs. `stubs` are shell scripts that
    replace others."""
    programs = directory / "bin"
    programs.mkdir()
    for path in [*Path("/usr/bin").iterdir(), *Path("/bin").iterdir()]:
        if path.name not in missing and path.name not in stubs:
            with contextlib.suppress(FileExistsError):
                (programs / path.name).symlink_to(path)
    for name, script in stubs.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    return {**os.environ, "PATH": str(programs), "SSL_CERT_FILE": "/dev/null"}


def packages(what: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return ran([SETUP / "packages", what], env=env)


DEBIAN = {"id": "echo 0", "apt-cache": "echo there", "apt-get": "echo apt-get $* >&2"}
"""Debian as root, with a mirror that has every package."""


def test_a_live_lab_needs_curl_beside_prometheus(tmp_path: Path) -> None:
    done = packages("live", system(tmp_path, "curl", **DEBIAN, prometheus=""))
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1].startswith("apt-get install ")
    assert done.stderr.splitlines()[-1].endswith(" curl")


@pytest.mark.parametrize("missing", ["prometheus", "curl"])
def test_prometheus_beside_a_lab_says_at_once_what_it_misses(tmp_path: Path, missing: str) -> None:
    stubs = {name: "" for name in ("prometheus", "curl") if name != missing}
    done = ran(
        [REPOSITORY / "dashboards" / "prometheus" / "beside", "linklab"],
        env=system(tmp_path, missing, **stubs),
    )
    said = f"linklab: {missing} is missing: apt-get install --no-install-recommends {missing}\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize("processor", ["aarch64", "x86_64"])
def test_set_up_brings_what_the_host_place_needs_where_no_guest_runs(
    tmp_path: Path, processor: str
) -> None:
    stubs = {**DEBIAN, "uname": f"echo {processor}"}
    done = packages("", system(tmp_path, "mnexec", "h2o", **stubs))
    wanted = " mininet h2o\n" if processor == "aarch64" else ""
    assert (done.returncode, done.stderr[-len(wanted) :] if wanted else done.stderr) == (0, wanted)


def test_installing_packages_is_said_every_15_s_without_a_terminal(tmp_path: Path) -> None:
    """By a line of its own, not by what rewrites a line."""
    slow = "[ $1 = install ] || exit 0; echo Get:1 one; sleep 16; echo Unpacking two; echo Setting up 3"
    done = packages("live", system(tmp_path, "curl", **{**DEBIAN, "apt-get": slow}, prometheus=""))
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "linklab: packages: Unpacking two"
    assert "\r" not in done.stdout


OTHERS = dict.fromkeys(("cc", "prometheus", "mnexec", "h2o", "iperf3", "nginx"), "")
BROKEN = {**DEBIAN, **OTHERS, "apt-get": "echo E: no mirror >&2; exit 100"}


def test_tests_do_without_an_optional_package_that_cannot_be_fetched(tmp_path: Path) -> None:
    """Neither when it is installed nor when apt's lists are updated."""
    for name, listed in (("known", "echo there"), ("unknown", "true")):
        (tmp_path / name).mkdir()
        stubs = {**BROKEN, "apt-cache": listed, "curl": ""}
        done = packages("test", system(tmp_path / name, "slirp4netns", **stubs))
        error, warning = done.stderr.splitlines()
        assert (done.returncode, error) == (0, "E: no mirror")
        assert warning == "linklab: tests that need one of these are skipped: slirp4netns"


def test_nothing_does_without_a_needed_package_that_cannot_be_fetched(tmp_path: Path) -> None:
    done = packages("test", system(tmp_path, "slirp4netns", "curl", **BROKEN))
    assert (done.returncode, done.stderr) == (100, "E: no mirror\n")


PARTS = """
import sys, time
sys.path.insert(0, sys.argv[1])
from linklab.display.parts import Parts
with Parts() as parts:
    parts.report(sys.argv[2], "compiling, 1 of 2 objects", 0.5)
    time.sleep(0.5)
    parts.report(sys.argv[2], "finished", 1)
"""


def test_set_up_says_how_far_each_of_its_parts_is(tmp_path: Path) -> None:
    """Of programs that make starts, which run side by side."""
    (tmp_path / "part.py").write_text(PARTS)
    command = shlex.join([sys.executable, "part.py", str(REPOSITORY / "emulator")])
    (tmp_path / "Makefile").write_text(
        f"all: image kernel\nimage kernel:\n\t@{command} $@\n\t@echo a line of $@\n\t@test $@ = image\n"
    )
    done = ran(
        [sys.executable, SETUP / "side_by_side.py", "make", "-s", "-j"],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if not key.startswith("MAKE")},
    )
    assert (done.returncode, done.stdout) == (2, "")
    said = done.stderr.splitlines()
    for part in ("image", "kernel"):
        assert f"linklab: {part}: compiling, 1 of 2 objects" in said
        assert f"linklab: {part}: finished" in said
        assert f"a line of {part}" in said
    assert any("kernel] Error 1" in line for line in said)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_set_up_that_is_ended_leaves_no_part_running(tmp_path: Path, number: int) -> None:
    (tmp_path / "Makefile").write_text("all:\n\t@echo $$$$; exec sleep 600\n")
    setup = subprocess.Popen(
        [sys.executable, SETUP / "side_by_side.py", "make", "-s"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert setup.stderr is not None
    part = int(setup.stderr.readline())
    if number == signal.SIGINT:
        os.killpg(setup.pid, number)  # As a terminal does.
    else:
        setup.send_signal(number)
    _, err = setup.communicate(timeout=60)
    assert "Traceback" not in err
    assert not Path(f"/proc/{part}").exists()


def test_the_demo_shows_tables_while_it_fetches_extras(tmp_path: Path) -> None:
    (tmp_path / "linklab").write_text('#!/bin/sh\ntest -e fetching && echo "$*"\n')
    (tmp_path / "extras").write_text(
        "#!/bin/sh\ntouch fetching\nwhile [ ! -e go ]; do sleep 0.05; done; echo 43 of 43; exit $1\n"
    )
    for name in ("linklab", "extras"):
        (tmp_path / name).chmod(0o755)
    tables = ["compare emptcp-16mb-good-good", "compare hs-s7 --runs 3"]
    for code in (0, 1):
        (tmp_path / "go").unlink(missing_ok=True)
        (tmp_path / "fetching").touch()
        demo = subprocess.Popen(
            [SETUP / "demo", "./linklab", "./extras", str(code)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert demo.stdout is not None
        assert [demo.stdout.readline().rstrip() for _ in tables] == tables
        (tmp_path / "go").touch()
        _, err = demo.communicate(timeout=60)
        assert demo.returncode == 0
        assert ("make extras failed" in err) == bool(code)
