"""Tests `linklab regress` in the guest: it names what gets worse, and nothing else."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pytest
from conftest import REPOSITORY, Called, called, nightly
from planted import BENIGN, REGRESSIONS, build

SUITES = REPOSITORY / "tests" / "regression"


def regress(directory: Path, *words: object, multilink: Path | None = None) -> Called:
    more = {} if multilink is None else {"LINKLAB_MULTILINK": str(multilink)}
    done = called(directory, "regress", *words, timeout_s=600, **more)
    return Called(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def detects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a directory with the suite, multilink as it is, and its baseline."""
    directory = tmp_path_factory.mktemp("detects")
    shutil.copy(SUITES / "detects.yaml", directory)
    done = regress(directory, "detects.yaml", "--update", "--reason", "as is")
    assert done.code == 0, done.err
    return directory


SEEN = {
    "overlap at 95 % instead of 60 %": ("static-80-50", "alg3", 1.1),
    "a link that adopts another's connection": ("static-80-50", "adaptive", 1.3),
    "fail-over lost": ("wifi-collapse", "adaptive", 1.8),
}
"""The planted change for each download, and the least factor by which it takes longer."""


def test_planted_regressions_are_caught_and_named(detects: Path, tmp_path: Path) -> None:
    """All in one program: each spoils another download."""
    worse = build(tmp_path, *REGRESSIONS.values())
    done = regress(
        detects,
        "detects.yaml",
        "--json",
        "--junit",
        tmp_path / "junit.xml",
        "--markdown",
        tmp_path / "summary.md",
        multilink=worse,
    )
    assert done.code == 1, done.err
    cells = {(one["scenario"], one["algorithm"]): one for one in done.json["cells"]}
    failed = {
        (case.get("classname"), case.get("name")): said.get("message", "")
        for case in xml.parse(tmp_path / "junit.xml").iter("testcase")
        for said in case.iter("failure")
    }
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("### linklab: regression\n")
    for planted in REGRESSIONS:
        scenario, algorithm, times = SEEN[planted]
        cell = cells[scenario, algorithm]
        assert cell["status"] == "worse", planted
        by_figure = {one["figure"]: one for one in cell["deviations"]}
        longer = by_figure["download_s"]
        assert longer["now"] > times * longer["baseline"], planted
        assert by_figure["efficiency"]["worse"]
        named = failed[f"detects.{scenario}", f"{algorithm} seed 1"]
        assert f"download time {longer['baseline']:.3f} s -> {longer['now']:.3f} s (+" in named
        assert f"`{scenario} {algorithm} seed 1`" in summary


def _unharmed(done: Called) -> Any:
    assert done.code == 0, done.out + done.err
    counts = done.json["counts"]
    assert counts["worse"] == counts["error"] == 0
    return done.json


@nightly
def test_what_does_no_harm_is_no_regression(detects: Path, tmp_path: Path) -> None:
    """A log line, another map order, and a start some microseconds later."""
    harmless = build(tmp_path, *BENIGN.values())
    found = _unharmed(
        regress(detects, "detects.yaml", "--json", "--shift", "0.000037", multilink=harmless)
    )
    assert any(cell["now"] != cell["baseline"] for cell in found["cells"]), "nothing was changed"


@nightly
def test_a_busy_host_changes_nothing_at_all(detects: Path) -> None:
    argv = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(argv) for _ in range(2)]
    try:
        done = regress(detects, "detects.yaml", "--json")
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    found = _unharmed(done)
    assert all(cell["now"] == cell["baseline"] for cell in found["cells"])


def test_another_kernel_is_no_regression_and_no_pass(detects: Path, tmp_path: Path) -> None:
    text = (detects / "detects.baseline.yaml").read_text()
    other = tmp_path / "other.yaml"
    changed, count = re.subn(r"guest kernel: \S+", "guest kernel: another", text)
    assert count == 1
    other.write_text(changed)
    done = regress(detects, "detects.yaml", "--baseline", other)
    assert done.code == 2
    assert "Re-baseline" in done.err
    assert "guest kernel: another then" in done.err
    assert "guest image" not in done.err


BURNS = """\
import subprocess, sys, time
held = bytearray(int(sys.argv[1]) << 20)
subprocess.run(sys.argv[3:], check=True)
while time.process_time() < float(sys.argv[2]):
    pass
"""


CAUGHT = {"plain": "", "computes": "processor time", "remembers": "memory"}
"""Each program's figure that is over its limit."""


@nightly
def test_the_real_clock_sees_what_virtual_time_cannot(tmp_path: Path) -> None:
    """Limits and planted costs are far apart, so other load does not matter. Getting memory also
    takes processor time."""
    (tmp_path / "burns.py").write_text(BURNS)
    curl = "curl -sSf --cacert {ca} -o {output} {url}"
    programs = "".join(
        f"    - name: {name}\n"
        f'      command: "python3 {{suite}}/burns.py {memory_mib} {cpu_s} {curl}"\n'
        f"      cpu: {cpu}\n      memory: 10\n"
        for name, memory_mib, cpu_s, cpu in (
            ("plain", 0, 0, 10),
            ("computes", 0, 3, 10),
            ("remembers", 500, 0, 1000),
        )
    )
    (tmp_path / "burns.yaml").write_text(
        "name: burns\nscenarios: [{scenario: ls, algorithms: [alg3]}]\n"
        f"cost:\n  size: 30 MB\n  rounds: 3\n  programs:\n{programs}"
    )
    done = regress(
        tmp_path, "burns.yaml", "--real-clock", "--json", "--junit", "j.xml", "--markdown", "m.md"
    )
    assert done.code == 1, done.out + done.err
    failed = [
        str(case.get("name"))
        for case in xml.parse(tmp_path / "j.xml").iter("testcase")
        if case.find("failure") is not None
    ]
    assert [name.split()[0] for name in failed] == ["computes", "remembers"]
    assert "costs more" in (tmp_path / "m.md").read_text()
    broken = {one["name"]: one["broken"] for one in json.loads(done.out)["programs"]}
    assert broken.keys() == CAUGHT.keys()
    for name, figure in CAUGHT.items():
        assert len(broken[name]) == bool(figure), broken
        assert all(figure in words for words in broken[name]), broken
