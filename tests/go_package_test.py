"""Tests `client/linklabtest`: labs on the real clock in Go tests, of this repository and of users."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from conftest import REPOSITORY, nightly, part_of, ran
from python_api_test import blocks
from python_live_test import labs_of
from through_the_lab import needs_outside

pytestmark = [
    pytest.mark.one_at_a_time,
    needs_outside,
]

CLIENT = REPOSITORY / "client"
PACKAGE = CLIENT / "linklabtest"
PAGE = REPOSITORY / "emulator/handbook/how-to/use-linklab-in-go-tests.md"
MODULE = "github.com/linklab/linklab/client"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Returns a program `linklab` as users have it."""
    made = tmp_path / "linklab"
    path = REPOSITORY / "emulator"
    made.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" -m linklab "$@"\n')
    made.chmod(0o755)
    return made


def go(directory: Path, *words: object, **variables: str) -> str:
    """Runs Go in a directory, without a network. It must succeed. Returns its output."""
    done = ran(
        [REPOSITORY / "emulator/setup/client", "go", *map(str, words)],
        cwd=directory,
        env={**os.environ, "GOPROXY": "off", **variables},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the package's compiled tests."""
    made = tmp_path_factory.mktemp("go") / "tested"
    go(CLIENT, "test", "-c", "-o", made, "./linklabtest")
    return made


def test_the_package_with_a_real_lab(program: Path, tested: Path) -> None:
    done = ran([tested, "-test.v"], cwd=PACKAGE, env={**os.environ, "LINKLAB": str(program)})
    assert (done.returncode, done.stdout.count("\n--- PASS")) == (0, 7), done.stdout + done.stderr


@nightly
def test_a_users_module_tests_as_the_page_says(program: Path, tmp_path: Path) -> None:
    """The module is outside the repository, and finds linklab on PATH."""
    module = tmp_path / "app"
    module.mkdir()
    tests = [one for one in blocks(PAGE) if one.startswith("package ")]
    for test in tests:
        name = test.split()[1].removesuffix("_test")
        (module / name).mkdir()
        (module / name / "page_test.go").write_text(f"{test}\n")
    go(module, "mod", "init", "example.com/app")
    (edit,) = (one for one in blocks(PAGE) if one.startswith("go mod edit "))
    go(module, *edit.replace("\\\n", "").replace("CHECKOUT/client", str(CLIENT)).split()[1:])
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    said = go(module, "test", "-count", "1", "-v", "-p", "1", "./...", PATH=path, CI="true")
    assert len(tests) == 2
    assert set(re.findall(r"--- PASS: (\w+)", said)) == {
        "TestTheAppRecovers",
        "TestTheAppWithoutWifi",
        "TestTheAppWithBothLinks",
    }


def test_the_package_needs_only_the_standard_library() -> None:
    words = ("list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./linklabtest")
    assert go(CLIENT, *words).split() == [f"{MODULE}/linklabtest"]


@pytest.fixture
def short() -> Iterator[str]:
    """Yields a temporary directory whose name leaves room for a socket's."""
    with tempfile.TemporaryDirectory(prefix="hold-", dir="/tmp") as directory:
        yield directory


@pytest.mark.parametrize("end", part_of((signal.SIGKILL, signal.SIGINT, None), 2))
def test_a_test_that_is_killed_leaves_no_lab(
    program: Path, tested: Path, short: str, end: signal.Signals | None
) -> None:
    """It may be killed, be interrupted as by Ctrl-C, or panic as by the timeout of `go test`."""
    with subprocess.Popen(
        [tested, "-test.run", "^TestHold$"],
        cwd=PACKAGE,
        env={
            **os.environ,
            "LINKLAB": str(program),
            "LINKLABTEST_HOLD": "1",
            "TMPDIR": short,  # A killed test leaves its run directories.
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first == "open\n", first + process.stdout.read()
        family = labs_of(process.pid)
        assert family
        if end is not None:
            process.send_signal(end)
        else:
            process.stdin.close()
        assert process.wait(timeout=60) != 0
    assert psutil.wait_procs(family, timeout=30)[1] == []
