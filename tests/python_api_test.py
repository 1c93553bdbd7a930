"""Tests `import linklab` as a program's author uses it: every example of the reference page, types,
threads, and what is imported."""

import os
import re
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import linklab
import pytest
from conftest import REPOSITORY, finished, json_of, ran
from linklab.api import requests

PAGES = [
    REPOSITORY / "emulator/handbook/reference/python.md",
]


def blocks(page: Path) -> list[str]:
    """Returns the indented blocks of a page."""
    found = re.findall(r"(?:^    .*\n|^\n(?=    ))+", page.read_text(), re.M)
    return [textwrap.dedent(one).strip() for one in found]


def programs(page: Path) -> list[str]:
    """Returns the blocks of a page that are programs."""
    return [one for one in blocks(page) if one.startswith(("import linklab", "import subprocess"))]


(SMALL,) = (
    re.sub(r"^.*\n|END$", "", one) for one in blocks(PAGES[0]) if one.startswith("cat > small.yaml")
)
"""The scenario of the page's examples."""

EXAMPLES = [one for page in PAGES for one in programs(page)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with a small scenario."""
    (tmp_path / "small.yaml").write_text(SMALL)
    return tmp_path


def python(directory: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Runs a Python program in a directory."""
    return finished(directory, [sys.executable, "-c", program])


def test_examples_are_found() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_does_what_it_says(directory: Path, example: str) -> None:
    done = python(directory, example)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_examples_have_the_types_that_they_need(directory: Path) -> None:
    for number, example in enumerate(EXAMPLES):
        (directory / f"example{number}.py").write_text(f"{example}\n")
    (directory / "wrong.py").write_text('import linklab\nlinklab.run("hs-s7", seed="3").figure\n')
    done = ran(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", directory / "mypy", "."],
        cwd=directory,
        env={**os.environ, "MYPYPATH": str(REPOSITORY / "emulator")},
    )
    errors = [
        line.partition(": error: ")[2] for line in done.stdout.splitlines() if ": error: " in line
    ]
    assert sorted(errors) == [
        '"Run" has no attribute "figure"; maybe "figures" or "_figures"?  [attr-defined]',
        'Argument "seed" to "run" has incompatible type "str"; expected "int"  [arg-type]',
    ], done.stdout


def test_the_package_names_scenarios_and_clients_that_there_are() -> None:
    named = re.findall(
        r"linklab\.(?:run|compare|execute|live)\(\"([\w-]+)\"(?:, \"([\w-]+)\")?",
        linklab.__doc__ or "",
    )
    assert len(named) == 4
    for scenario, client in named:
        requests.clients_of(client or "alg3", requests.scenario_of(scenario))


def test_a_function_gives_the_figures_of_its_command(directory: Path) -> None:
    said = json_of(directory, "run", "small.yaml", "-a", "alg3", "--seed", "3")
    made = linklab.run(directory / "small.yaml", "alg3", seed=3, out=directory / "runs")
    assert made.download_s == said["figures"]["download_s"]
    assert made.job is not None
    assert made.job.clock == "virtual"


def test_threads_get_the_same_figures(directory: Path) -> None:
    def one(_: int) -> float:
        return linklab.run(directory / "small.yaml", out=directory / "runs").download_s

    with ThreadPoolExecutor(3) as threads:
        assert len(set(threads.map(one, range(3)))) == 1


def test_progress_counts_runs_and_a_time_limit_ends_one(directory: Path) -> None:
    told: list[linklab.Progress] = []
    small, out = directory / "small.yaml", directory / "runs"
    linklab.compare(small, ["alg1", "alg3"], out=out, progress=told.append)
    assert told[0].part == "place"
    assert (told[-1].done, told[-1].total) == (2, 2)
    with pytest.raises(linklab.LinklabError, match="still running after") as raised:
        linklab.run(small, out=out, timeout=0.05)
    assert f"run directory: {out}" in str(raised.value)


@pytest.mark.parametrize(
    ("names", "absent"),
    [
        ("__version__", ["numpy", "yaml", "msgspec", "linklab.runs"]),
        ("run, linklab.compare, linklab.execute", ["pandas", "rich", "plotext", "scipy", "jinja2"]),
    ],
)
def test_what_nobody_uses_is_not_imported(directory: Path, names: str, absent: list[str]) -> None:
    done = python(
        directory,
        f"import linklab; linklab.{names}; import sys; print([n for n in {absent} if n in sys.modules])",
    )
    assert done.stdout == "[]\n", done.stderr


def test_ctrl_c_ends_a_run_and_leaves_no_process(directory: Path) -> None:
    program = (
        "import linklab, os, signal, threading, psutil, time\n"
        "def interrupt(now):\n"
        "    if now.part == 'runs':\n"
        "        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "begun = time.monotonic()\n"
        "try:\n"
        "    linklab.execute('small.yaml', ['sleep', 'infinity'], clock='real', progress=interrupt)\n"
        "except KeyboardInterrupt:\n"
        "    print(psutil.Process().children(recursive=True), time.monotonic() - begun < 60)\n"
    )
    done = python(directory, program)
    assert done.stdout == "[] True\n", done.stderr


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("linklab.run('hs-s77')", "no scenario is called 'hs-s77' (did you mean 'hs-s7'?)"),
        (
            "linklab.run('small.yaml', 'alg33')",
            "no algorithm is called 'alg33' (did you mean 'alg3'?)",
        ),
        ("linklab.run('small.yaml', processor='arm64')", "processor cannot be 'arm64'; allowed: a"),
        ("linklab.run('small.yaml', pcap='5g')", "--pcap 5g: small has no such link"),
        ("linklab.execute('small.yaml', 'curl x')", "command cannot be 'curl x'; allowed: a list"),
        ("linklab.execute('small.yaml', ['no-such'])", "no-such: no such program; looked in /"),
    ],
)
def test_bad_input_raises_one_error_and_leaves_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch, call: str, words: str
) -> None:
    monkeypatch.chdir(directory)
    with pytest.raises(linklab.LinklabError) as raised:
        eval(call)
    assert words in str(raised.value)
    assert [one.name for one in directory.iterdir()] == ["small.yaml"]
