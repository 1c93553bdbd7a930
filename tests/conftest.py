"""Shares the command line as a user calls it, scenarios and a server between the end-to-end tests."""

import ast
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from forked_start import Forks
from linklab.core.paths import PROFILES
from linklab.places.guest import kernel
from linklab.regression import baseline, fingerprint, suite
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

# A shell starts background jobs with SIGINT ignored, and the tested programs would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

T = TypeVar("T")

REPOSITORY = Path(__file__).resolve().parents[1]
PROBES = REPOSITORY / "tests" / "probes"

TEST_ALL = os.environ.get("LINKLAB_TEST_ALL") == "1"
"""Whether tests run all combinations and compile all kernels (`make test-all`)."""

REPEATS = 10 if TEST_ALL else 2
"""How often a run is made that has to come out the same."""

SEEDS = (1, 2, 3) if TEST_ALL else (1,)
"""The seeds of tests that draw what they run."""


nightly = pytest.mark.asked_for("LINKLAB_TEST_ALL")
"""A test of over ten seconds of a core that `make test` leaves to `make test-all`, which CI runs each
night. A cheaper one tests the same part of linklab."""


needs_open_checkout = pytest.mark.lacks(
    os.geteuid() == 0 and not all(path.stat().st_mode & 0o1 for path in REPOSITORY.parents),
    "the checkout lies in a directory that nobody may enter",
)
"""A test of a user who is not root, and reads this checkout."""


def is_in_part(row: int, column: int, every: int) -> bool:
    """Tells whether `make test` runs this combination of two lists: one in `every`, so that each row
    and each column with as many entries occurs. `make test-all` runs all."""
    return TEST_ALL or (row + column) % every == 0


def part_of(values: Iterable[T], every: int) -> list[T]:
    """Returns what `make test` runs of a list: the first of each `every`. `make test-all` runs all."""
    return [one for row, one in enumerate(values) if is_in_part(row, 0, every)]


_ONE_AT_A_TIME = re.compile(r"mark\.(one_at_a_time(?:\('\w+'\))?)")


class _Scheduler(LoadScopeScheduling):  # type: ignore[misc]
    """Gives one process all tests with the same mark `one_at_a_time`. Tests of a file that share a
    fixture of their module stay in one process, too. The largest group comes first.

    pytest-xdist 3.8 has `--dist loadgroup` for that, but with pytest 9.2 it makes no groups.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        by_name, others = _groups_of(REPOSITORY / file)
        return by_name.get(test.partition("[")[0], others) or nodeid


@functools.cache
def _groups_of(file: Path) -> tuple[dict[str, str], str | None]:
    """Returns the groups of a file's tests by name, and the group of the others, which is None if any
    process may take each."""
    text = file.read_text()
    own: dict[str, str] = {}
    others = str(file) if 'scope="module"' in text else None
    for one in ast.parse(text).body:
        if isinstance(one, ast.Assign):
            others = _mark([one]) or others
        if isinstance(one, ast.FunctionDef) and (found := _mark(one.decorator_list)):
            own[one.name] = found
    return own, others


def _mark(nodes: Sequence[ast.AST]) -> str | None:
    found = _ONE_AT_A_TIME.search(" ".join(map(ast.unparse, nodes)))
    return found and found[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lets one test be skipped for all that lack the same thing. Its reason says how many they are."""
    lacking: dict[str, list[pytest.Item]] = {}
    for one in items:
        for reason in _lacks(one):
            lacking.setdefault(reason, []).append(one)
            break
    for reason, found in lacking.items():
        found[0].add_marker(pytest.mark.skip(reason=f"{reason}: {len(found)} tests"))
    left_out = {one.nodeid for found in lacking.values() for one in found[1:]}
    items[:] = [one for one in items if one.nodeid not in left_out]


def _lacks(test: pytest.Item) -> Iterator[str]:
    for mark in test.iter_markers("asked_for"):
        if not os.environ.get(mark.args[0]):
            yield f"{mark.args[0]} is not set"
    for mark in test.iter_markers("lacks"):
        if mark.args[0]:
            yield mark.args[1]
    is_emulated = "machine_kernel" in getattr(test, "fixturenames", ())
    if is_emulated and not TEST_ALL and kernel.cached(kernel.MACHINE) is None:
        yield f"the {kernel.MACHINE.called} is not made yet (make test-all)"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Returns the scheduler of tests."""
    return _Scheduler(config, log)


@dataclass(frozen=True)
class Called:
    """A finished `linklab` command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its decoded JSON output."""
        return json.loads(self.out)

    @property
    def run_dir(self) -> Path:
        """The directory of its run."""
        return Path(self.json["run_dir"])


Linklab = Callable[..., Called]


def command(*arguments: object) -> list[str]:
    """The command line of `linklab` with these arguments. A program that is part of the checkout sees
    it whole in the guest, also if the checkout lies in a home."""
    words = [*map(str, arguments)]
    if words[:1] == ["exec"] and "--" in words:
        at = words.index("--")
        if any(str(REPOSITORY) in word for word in words[at:]):
            words[at:at] = ["--share", str(REPOSITORY)]
    return [sys.executable, "-m", "linklab", *words]


def environment() -> dict[str, str]:
    """Returns the environment for calls of `linklab`."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY / "emulator")}


def ran(words: Sequence[object], **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a program, for ten minutes at most. Returns how it ended, with what it printed."""
    usual = {"capture_output": True, "text": True, "timeout": 600, "check": False}
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [str(word) for word in words], **(usual | options)
    )
    return done


def finished(
    directory: Path, words: Sequence[object], timeout_s: float = 300, **more: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program that calls `linklab`, in a directory. Returns how it ended. `more` is added to its
    environment."""
    return ran(words, cwd=directory, env=environment() | more, timeout=timeout_s)


def called(
    directory: Path, *arguments: object, timeout_s: float = 300, **more: str
) -> subprocess.CompletedProcess[str]:
    """Calls `linklab` as `finished` would."""
    words, now = command(*arguments), environment() | more
    if _forks().fits(now):
        return _forks().run(words[3:], directory, now, timeout_s)
    return finished(directory, words, timeout_s, **more)


@functools.cache
def _forks() -> Forks:
    return Forks(environment())


def json_of(directory: Path, *arguments: object) -> Any:
    """Calls `linklab` in a directory, which must succeed. Returns its JSON."""
    done = called(directory, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def said_inside(done: subprocess.CompletedProcess[str]) -> str:
    """Returns the program's standard error, if it failed in the lab."""
    if done.returncode == 0:
        return ""
    try:
        return (Path(json.loads(done.stdout)["run_dir"]) / "client.err").read_text()
    except (ValueError, KeyError, TypeError, OSError):
        return ""


@pytest.fixture
def linklab(tmp_path: Path) -> Linklab:
    """Calls `linklab` in the test's own directory."""

    def call(*arguments: object) -> Called:
        done = called(tmp_path, *arguments, timeout_s=600)
        return Called(done.returncode, done.stdout, done.stderr + said_inside(done))

    return call


def succeeded(linklab: Linklab, command: str, *arguments: object) -> Called:
    """Calls `linklab` for JSON, which must succeed."""
    done = linklab(command, "--json", *arguments)
    assert done.code == 0, done.err
    return done


def downloaded(linklab: Linklab, file: Path, who: str, *options: object) -> tuple[Any, Path]:
    """Runs a scenario by a client. Returns the figures, and the run's directory."""
    done = succeeded(linklab, "run", file, "-a", who, *options)
    return done.json["figures"], done.run_dir


def compared(linklab: Linklab, *files: Path, who: str) -> dict[str, tuple[Any, Path]]:
    """Runs scenarios by clients, one after the other in one guest. Returns figures and directory of
    each run by `SCENARIO-CLIENT`."""
    done = succeeded(linklab, "compare", *files, "-a", who, "--parallel", 1)
    return {
        one.name.removesuffix("-seed1"): (json.loads((one / "summary.json").read_bytes()), one)
        for one in done.run_dir.iterdir()
    }


@pytest.fixture(scope="session")
def machine_kernel() -> Path:
    """Returns the emulated machine's kernel. Only `make test-all` compiles it, in minutes on all cores.
    After a change of its recipe, emulator/setup/lock-kernel does."""
    return kernel.ensure(recipe=kernel.MACHINE)


@pytest.fixture
def same_programs() -> None:
    """Skips the test if programs differ from those that made the baseline."""
    folder = PROFILES / "regression"
    then = baseline.load(folder / "default.baseline.yaml")
    now = fingerprint.taken(suite.load(folder / "default.yaml"))
    different = fingerprint.differences(
        fingerprint.Fingerprint(then.fingerprint.programs, {}),
        fingerprint.Fingerprint(now.programs, {}),
    )
    if different:
        pytest.skip(f"other programs than those of the baseline: {'; '.join(different)}")


ScenarioFile = Callable[..., Path]


@pytest.fixture
def scenario(tmp_path: Path) -> ScenarioFile:
    """Writes a scenario file: `size`, `wifi` and `lte` as YAML, further keys as lines."""

    def write(
        name: str,
        *,
        size: str = "10 MB",
        wifi: str = "down: 80 Mbit/s, up: 20 Mbit/s, rtt: 10 ms, queue: 500 kB",
        lte: str = "down: 50 Mbit/s, up: 10 Mbit/s, rtt: 30 ms, queue: 500 kB",
        more: str = "",
    ) -> Path:
        path = tmp_path / f"{name}.yaml"
        path.write_text(
            f"name: {name}\npayload: {{size: {size}}}\n"
            f"links:\n  wifi: {{{wifi}}}\n  lte: {{{lte}}}\n{more}"
        )
        return path

    return write


def program(name: str) -> str:
    """Returns a program of the system or of `make browser`, or skips the test without it."""
    own = REPOSITORY / "build" / "browser" / "usr" / "bin"
    path = shutil.which(name, path=f"/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin:{own}")
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture(scope="session")
def http3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the directory of quic-go's server (`example`), and of `fetch`, which chooses its links.
    `modules` names their source's directory, which may be in a home."""
    directory = tmp_path_factory.mktemp("http3")
    subprocess.run([REPOSITORY / "emulator/setup/client", "http3", directory], check=True)
    return directory


def served_by_quic(http3: Path, *flags: str) -> tuple[str, ...]:
    """Returns the options of `linklab exec` for quic-go's server."""
    modules = (http3 / "modules").read_text().strip()
    server = f"{http3}/example -bind {{address}}:{{port}} -cert {{certificate}} -key {{key}}"
    server = " ".join((server, "-www {directory}", *flags))
    return ("--share", modules, "--server", server)


NGINX = """\
daemon off; user root; pid nginx.pid; error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server {
    listen $LINKLAB_ADDRESS:$LINKLAB_PORT ssl http2;
    ssl_protocols TLSv1.3;
    ssl_certificate $LINKLAB_CERTIFICATE;
    ssl_certificate_key $LINKLAB_KEY;
    root $LINKLAB_DIRECTORY;
  }
}
"""


@pytest.fixture
def nginx(tmp_path: Path) -> str:
    """Returns a command that runs nginx as server."""
    script = tmp_path / "serve"
    script.write_text(
        f'#!/bin/sh\ncat > nginx.conf <<END\n{NGINX}END\nexec {program("nginx")} -p "$PWD" '
        '-c "$PWD/nginx.conf"\n'
    )
    script.chmod(0o755)
    return str(script)


def until(
    condition: Callable[[], object],
    said: str | Callable[[], object] = "",
    *,
    process: subprocess.Popen[Any] | None = None,
    patience_s: float = 120.0,
) -> None:
    """Waits for a condition, for that long because other tests run at the same time. Fails with what is
    `said` then, or if the process ends."""
    deadline = time.monotonic() + patience_s
    while not condition():
        is_over = process is not None and process.poll() is not None
        assert time.monotonic() < deadline and not is_over, said() if callable(said) else said
        time.sleep(0.05)  # It is not so yet.


def lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON lines file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON lines file that may still grow: half a line at its end is none."""
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def queue(run_dir: Path, link: str, direction: str) -> list[dict[str, Any]]:
    """Returns the samples of one queue in the order of time."""
    return [
        sample
        for sample in lines(run_dir / "queues.jsonl")
        if (sample["link"], sample["direction"]) == (link, direction)
    ]
