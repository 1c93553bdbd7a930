import argparse
import importlib.util
import inspect
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from linklab import scenario
from linklab.api import environment, functions, requests
from linklab.api.settings import RunOptions, Settings
from linklab.commands import cli, compare, doctor, exec, run, running
from linklab.core import extras, scratch
from linklab.core.paths import PYTHON_PATH
from linklab.places.choice import Environment, PlaceError
from linklab.realtime import session, start, user_terminal
from linklab.runs import clients, runner

Called = list[argparse.Namespace]


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Puts back the handler of SIGTERM that a command line replaces."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Called:
    """What `run`, `compare` and `exec` were called with; nothing is run."""
    calls: Called = []

    def note(options: argparse.Namespace) -> int:
        calls.append(options)
        return 0

    for command in (run, compare, exec):
        monkeypatch.setattr(command, "run", note)
    return calls


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Stands for what every run begins with; has something in it once that was called."""
    calls: list[object] = []
    monkeypatch.setattr(environment, "ready", lambda *words: calls.append(words))
    monkeypatch.setattr(environment, "require", lambda *_: None)
    monkeypatch.setattr(start, "live", lambda *_, **__: calls.append("live"))
    monkeypatch.setattr(session, "choose_place", lambda _: Environment("host", "real", ""))
    monkeypatch.setattr(running, "announce", lambda _: None)
    return calls


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What is said to a command line that cannot be carried out, always with code 2."""
    try:
        code: Any = cli.main(words)
    except SystemExit as end:
        code = end.code
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    return captured.err


def test_defaults(called: Called) -> None:
    assert cli.main(["run", "hs-s7"]) == 0
    assert cli.main(["compare", "hs-s7", "ls"]) == 0
    one, several = called
    assert one.algorithm == "adaptive"
    assert several.algorithms is None  # "published", or what was recorded.
    assert (one.scenario, several.scenarios) == ("hs-s7", ["hs-s7", "ls"])
    for read in called:
        assert (read.seed, read.place, read.clock) == (1, "auto", "auto")
        assert (read.out, read.timeout, read.shift) == (Path("runs"), None, 0.0)
        assert read.json is False
    assert several.runs == 1
    assert several.parallel is None


@pytest.mark.parametrize(
    ("command", "function"),
    [("run", functions.run), ("compare", functions.compare), ("exec", functions.execute)],
)
def test_a_function_has_the_options_of_its_command(
    command: str, function: Callable[..., object]
) -> None:
    """Both say what the fields of RunOptions and Settings say, with the same defaults."""
    defaults = {one.name: one.default for kind in (RunOptions, Settings) for one in fields(kind)}
    parameters = inspect.signature(function).parameters
    said = {name: one.default for name, one in parameters.items() if name in defaults}
    assert said == {name: defaults[name] for name in said}
    actions = cli.commands_of(cli.parser(whole=True))[command]._actions
    assert said.keys() == {action.dest for action in actions} & defaults.keys()


def test_options(called: Called) -> None:
    words = (
        "compare ls --seed 9223372036854775807 --runs 3 --parallel 2 --place guest --clock real"
        " --out /o --timeout 2.5 --shift 1e-6 --json"
    )
    cli.main([*words.split(), "-a", "alg1, peers,alg1"])
    (read,) = called
    peers = clients.chosen("peers", scenario.find("ls"))
    assert requests.clients_of(read.algorithms, scenario.find("ls")) == ["alg1", *peers]
    assert (read.seed, read.runs, read.parallel) == (2**63 - 1, 3, 2)
    assert (read.place, read.clock, read.out) == ("guest", "real", Path("/o"))
    assert (read.timeout, read.shift, read.json) == (2.5, 1e-6, True)


def test_what_follows_the_dashes_is_the_user_s(called: Called) -> None:
    cli.main(["exec", "--seed", "7", "ls", "--", "curl", "--seed", "8", "--", "{url}"])
    (read,) = called
    assert read.command == ["curl", "--seed", "8", "--", "{url}"]
    assert (read.scenario, read.seed) == ("ls", 7)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "the following arguments are required: COMMAND"),
        ("fly", "no command is called 'fly'; allowed: run, compare, exec,"),
        ("rum hs-s7", "no command is called 'rum' (did you mean 'run'?); allowed: run, compare"),
        ("exec ls curl {url}", "-- is missing before your program; allowed: linklab exec"),
        ("run ls fast", "unrecognized arguments: fast"),
        ("run", "which links? allowed: a scenario, or links such as wifi"),
        ("run ls -a alg4", "no algorithm is called 'alg4' (did you mean 'alg3'?); for ls"),
        ("run ls -a alg1,alg2", "run takes one algorithm, not alg1, alg2: use compare"),
        ("run ls --seed -1", "'-1' is not a seed; allowed: 0 to 2^63-1"),
        ("run ls --seed 9223372036854775808", "is not a seed"),
        ("run ls --shift=-1", "'-1' is no such number of seconds; allowed: 0 to 21600"),
        ("run ls --shift soon", "'soon' is no such number of seconds"),
        ("run ls --timeout nan", "'nan' is no such number of seconds"),
        ("run ls --timeout 1e300", "'1e300' is no such number of seconds; allowed: 0 to 2592000"),
        ("reproduce thesis --runs 10001", "'10001' is not allowed; allowed: 1 to 10000"),
        ("compare ls --parallel 1025", "'1025' is not allowed; allowed: 1 to 1024"),
        ("regress --jobs 1025", "'1025' is not allowed; allowed: 1 to 1024"),
        ("publish x --output y --retention 36501", "'36501' is not allowed; allowed: 1 to 36500"),
        ("run ls --place moon", "invalid choice: 'moon'"),
        ("run ls -- curl", "unrecognized arguments"),
        ("compare ls --runs 0", "'0' is not allowed; allowed: 1 to 10000"),
        ("compare ls --parallel two", "'two' is not allowed; allowed: 1 to 1024"),
        ("compare ls -a alg1,", "no algorithm is called ''"),
        ("live ls --page off --open", "it does not go with --page off"),
        ("live ls --record Mine.yaml", "--record: Mine.yaml is no name of a scenario"),
        ("live ls -a=", "no algorithm is called ''"),
        ("live ls --listen-proxy x:80", "'x:80' is no place for a proxy; allowed: a port"),
        ("run ls --energy-model=", "no energy model is called ''"),
        ("energy --energy-model=", "no energy model is called ''"),
        ("exec ls", "exec needs a command: linklab exec SCENARIO -- COMMAND"),
        ("exec ls curl -- x", "unrecognized arguments: curl"),
        ("exec ls -- curl https://me:secret@h/f", "run.json would keep; allowed: a URL without"),
        ("exec ls -- curl --proxy=HTTP://token@h:1 {url}", "a URL in the command holds a user"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(
    started: list[object], capsys: pytest.CaptureFixture[str], line: str, words: str
) -> None:
    said = refused(capsys, *line.split())
    assert words in said
    assert "secret" not in said
    assert started == []


def test_a_scenario_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "run", "hs-s8")
    assert said.startswith("linklab: no scenario is called 'hs-s8' (did you mean 'hs-s")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (runner.RunError("full"), 2, "linklab: full\n"),
        (PlaceError("nowhere"), 2, "linklab: nowhere\n"),
        (PermissionError(13, "Permission denied", "/o"), 2, "Permission denied: '/o'\n"),
        (KeyboardInterrupt(), 130, "linklab: interrupted"),
    ],
)
def test_errors_are_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    words: str,
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(run, "run", fail)
    assert cli.main(["run", "ls"]) == code
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_the_code_of_a_run_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "run", lambda *_: 1)
    assert cli.main(["run", "ls"]) == 1


def test_sigterm_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "run", lambda *_: signal.raise_signal(signal.SIGTERM))
    assert cli.main(["run", "ls"]) == 130


@pytest.mark.parametrize(("closing_s", "ended"), [(20.0, True), (0.0, False)])
def test_further_signals_do_not_disturb_the_end_but_after_a_while(
    monkeypatch: pytest.MonkeyPatch, *, closing_s: float, ended: bool
) -> None:
    events = []

    def interrupted(*_: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            events.append("ending")
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            events.append("ended")

    monkeypatch.setattr(cli, "_CLOSING_S", closing_s)
    monkeypatch.setattr(run, "run", interrupted)
    assert cli.main(["run", "ls"]) == 130
    assert ("ended" in events) is ended


def test_a_second_hangup_does_not_disturb_the_end_of_a_shell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who closes a terminal's window sends one, and so does the shell in it."""
    events = []

    def closed(_: int) -> None:
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            signal.raise_signal(signal.SIGHUP)
            events.append("ended")

    monkeypatch.setattr(user_terminal, "window", closed)
    before = signal.getsignal(signal.SIGHUP)
    try:
        assert cli.main(["shell", "ls"]) == 130
    finally:
        signal.signal(signal.SIGHUP, before)
    assert events == ["ended"]


def test_an_ignored_ctrl_c_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script's shell ignores it for what it starts in the background."""

    def go_on(*_: object) -> int:
        signal.raise_signal(signal.SIGINT)
        return 0

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        monkeypatch.setattr(run, "run", go_on)
        assert cli.main(["run", "ls"]) == 0
    finally:
        signal.signal(signal.SIGINT, before)


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--version"], ["--help"], ["compare", "--help"], ["exec", "--help"]):
        with pytest.raises(SystemExit) as end:
            cli.main(words)
        assert end.value.code == 0
    out = capsys.readouterr().out
    assert "linklab exec [options] SCENARIO -- COMMAND…" in out
    assert "`peers`: direct-wifi" in out


@pytest.mark.parametrize("name", ["", *cli.COMMANDS])
def test_help_fits_a_terminal(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        cli.main([*name.split(), "--help"])
    assert end.value.code == 0
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


def python(script: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in a Python of its own."""
    return subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PYTHON_PATH)},
    )


def words_of(script: str) -> set[str]:
    """The words that a script prints."""
    return set(python(script).stdout.split())


def test_only_the_called_command_is_loaded() -> None:
    """Else every command would wait for Dask, rich and the whole lab."""
    loaded = python(
        "import sys; from linklab.commands import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    ).stderr.split()
    slow = {"rich", "yaml", "msgspec", "distributed", "pyroute2", "http.client"}
    assert slow.isdisjoint(loaded)
    assert [name for name in loaded if name.startswith("linklab.commands.")] == [
        "linklab.commands.help_groups",
        "linklab.commands.options",
        "linklab.commands.cli",
    ]


def test_an_interrupt_that_a_destructor_meets_is_neither_lost_nor_printed() -> None:
    script = """
import os, signal, time
from linklab.commands import cli
signal.signal(signal.SIGINT, cli._Interrupt())
class Made:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)  # The signal arrives here.
try:
    Made()
    time.sleep(10)  # Or at the latest here.
except KeyboardInterrupt:
    print("interrupted")
"""
    done = python(script)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


@pytest.mark.parametrize(
    "module", ["linklab.commands.run", "linklab.runs.execution", "linklab.commands.live"]
)
def test_what_runs_something_does_not_wait_for_scipy(module: str) -> None:
    if module == "linklab.runs.execution" and importlib.util.find_spec("mininet") is None:
        pytest.skip("Mininet, which the guest has, is not on this machine")
    loaded = words_of(f"import sys, {module}; print(*sys.modules)")
    assert module in loaded
    assert {"numpy", "scipy", "linklab.core.statistics"}.isdisjoint(loaded)


@pytest.mark.parametrize("command", ["run", "compare", "exec", "regress"])
def test_what_runs_something_needs_no_extra(command: str) -> None:
    """Nor do the modules that a finished run's figures come from."""
    script = f"import sys, linklab.commands.{command}, linklab.report.publication"
    loaded = words_of(f"{script}, linklab.runs.process_figures; print(*sys.modules)")
    assert "linklab.runs.summary" in loaded
    assert {one for extra in extras.MODULES.values() for one in extra}.isdisjoint(loaded)


def modules_that_need(*absent: str) -> set[str]:
    """The modules of linklab that cannot be imported without these."""
    script = f"""
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys({absent}))
import linklab
for module in pkgutil.walk_packages(linklab.__path__, "linklab."):
    name = module.name.rpartition(".")[2]
    if not name.endswith(("_test", "conftest", "__main__")):
        try:
            importlib.import_module(module.name)
        except ImportError:
            print(module.name)
"""
    return words_of(script)


def test_without_extras_and_mininet_every_command_can_be_imported() -> None:
    """The completion of a shell and every --help import all of them. Mininet is in the guest's
    image. Outside it, the host place alone needs Mininet."""
    packages = (one for extra in extras.MODULES.values() for one in extra)
    need_them = modules_that_need("mininet", *packages)
    assert "linklab.lab.network.nodes" in need_them
    assert {name for name in need_them if not name.startswith("linklab.lab.")} == {
        "linklab.campaign.cluster",
        "linklab.runs.execution",
        "linklab.runs.execution_programs",
        "linklab.runs.guest_session",
        "linklab.runs.names",
    }


def test_scenario_files_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: bad\nlink: {}\n")
    assert cli.main(["validate", "hs-s7"]) == 0
    assert capsys.readouterr().out == "hs-s7: valid\n"
    assert cli.main(["validate", "hs-s7", str(bad)]) == 2
    first, second = capsys.readouterr().out.splitlines()
    assert first == "hs-s7: valid"
    assert "bad.yaml:2: unknown key 'link' (did you mean 'links'?)" in second
    assert cli.main(["validate", "--json", str(bad)]) == 2
    (read,) = json.loads(capsys.readouterr().out)
    assert (read["file"], read["valid"]) == (str(bad), False)
    assert read["error"] == second
    endless = f"{'a' * 300}.yaml"
    assert cli.main(["validate", "--json", "hs-s7", endless, str(bad)]) == 2
    read = json.loads(capsys.readouterr().out)
    assert [one["valid"] for one in read] == [True, False, False]
    assert "File name too long" in read[1]["error"]


def test_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["scenarios"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:3] == ["hs-s7", "250", "MB"] for line in lines)
    assert all(len(line) <= 80 for line in lines)
    assert cli.main(["scenarios", "--json"]) == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert listed["hs-s7"]["payload_bytes"] == 250_000_000
    assert listed["hs-s7"]["oracle_s"] is None
    assert set(listed) == set(scenario.names_in())


def test_some_scenarios_are_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["scenarios", "hs-s7", "emptcp-on-off", "hs-s7"]) == 0
    text = capsys.readouterr().out
    assert text.count("hs-s7  ") == 1
    said = " ".join(text.split())
    assert "published download (table 5.12): single-wifi 26.25 s, single-lte 33.79 s" in said
    assert "emptcp-kernel-2016 to mptcp-2016 122 %" in said
    assert cli.main(["scenarios", "hs-s7", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert 10 < listed["oracle_s"] < 20
    assert cli.main(["scenarios", "static-80-50", "--oracle", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)[0]["oracle_s"] == pytest.approx(6.5, abs=0.01)
    assert captured.err == ""  # No bar where nobody watches.


def test_doctor_and_clean(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "run", lambda options: int(options.json))
    assert (cli.main(["doctor"]), cli.main(["doctor", "--json"])) == (0, 1)
    monkeypatch.setattr(scratch, "remove", lambda *, cache: [f"removed {cache}"])
    assert (cli.main(["clean"]), cli.main(["clean", "--cache"])) == (0, 0)
    assert capsys.readouterr().out == "removed False\nremoved True\n"


def test_words_come_from_the_command_line(called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["linklab", "run", "ls"])
    assert cli.main() == 0
    assert called[0].scenario == "ls"
