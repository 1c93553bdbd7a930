import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from linklab.lab.kernel.netlink import NetlinkError
from linklab.lab.network.lab import Lab, LabError
from linklab.lab.network.services import OwnServer
from linklab.runs import execution
from linklab.runs.job import Job
from linklab.scenario import ScenarioError


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Puts back the handlers of signals that an execution replaces."""
    before = {signum: signal.getsignal(signum) for signum in execution._INTERRUPTS}
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


def patiently(process: subprocess.Popen[bytes], limit_s: float) -> None:
    """Has who waits for a limited time for a process do it for this one."""
    wait = process.wait
    process.wait = lambda timeout=None: wait(timeout and limit_s)  # type: ignore[method-assign]


def test_a_client_is_asked_to_end_before_it_is_killed() -> None:
    polite = subprocess.Popen(["sleep", "60"])
    patiently(polite, 60)
    execution._end(polite)
    assert polite.returncode == -signal.SIGINT
    execution._end(polite)  # One that has ended is left alone.

    stubborn = subprocess.Popen(
        ["sh", "-c", "trap '' INT; echo ready; while :; do sleep .1; done"], stdout=subprocess.PIPE
    )
    assert stubborn.stdout is not None
    assert stubborn.stdout.readline() == b"ready\n"
    patiently(stubborn, 0.05)
    execution._end(stubborn)
    assert stubborn.returncode == -signal.SIGKILL
    stubborn.stdout.close()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (LabError("H2O ended with 1"), "H2O ended with 1"),
        (
            OSError(2, "No such file or directory", "/x"),
            "[Errno 2] No such file or directory: '/x'",
        ),
        (NetlinkError(95, "Operation not supported"), "Operation not supported"),
        (ScenarioError("scenario.yaml:1: wrong"), "scenario.yaml:1: wrong"),
    ],
)
def test_what_goes_wrong_is_noted_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    words: str,
) -> None:
    def fail(_: Path) -> None:
        raise error

    monkeypatch.setattr(execution, "execute", fail)
    assert execution.main([str(tmp_path)]) == 1
    noted = (tmp_path / "error").read_text()
    assert words in noted
    assert noted.count("\n") == 1
    assert capsys.readouterr().err == f"linklab: {noted}"


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_cleans_up_undisturbed_by_a_second_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signum: signal.Signals
) -> None:
    cleaned = []

    def interrupted(_: Path) -> None:
        try:
            signal.raise_signal(signum)
            time.sleep(60)
        finally:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            cleaned.append(True)

    monkeypatch.setattr(execution, "execute", interrupted)
    assert execution.main([str(tmp_path)]) == 130
    assert (tmp_path / "error").read_text() == f"interrupted by {signum.name}\n"
    assert cleaned == [True]


def test_success_leaves_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "execute", lambda run_dir: None)
    assert execution.main([str(tmp_path)]) == 0
    assert list(tmp_path.iterdir()) == []


def test_files_of_other_people_s_programs_are_for_the_lab_to_check() -> None:
    wanted = {"curl-lte": True, "aria2-2": True, "mptcp": True, "alg3": False, None: False}
    for contestant, checks in wanted.items():
        job = cast(Job, SimpleNamespace(contestant=contestant))
        assert execution._is_for_the_lab_to_check(job) is checks


def test_a_server_of_the_users_is_not_asked_to_do_without_tls(tmp_path: Path) -> None:
    job = cast(Job, SimpleNamespace(contestant="loss-fetching", server=OwnServer(("serve",))))
    lab = cast(Lab, SimpleNamespace(server=None))
    with pytest.raises(LabError, match="^loss-fetching needs HTTP without TLS"):
        execution._server(
            lab, job, job, Path("/"), tmp_path, tmp_path, None, mptcp=False, plain=True
        )
