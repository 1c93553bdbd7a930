import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from linklab.lab.kernel.netlink import NetlinkError
from linklab.lab.network.hosts import LabError
from linklab.runs import execution
from linklab.scenario import ScenarioError


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Puts back the handlers of signals that an execution replaces."""
    before = {signum: signal.getsignal(signum) for signum in execution._INTERRUPTS}
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


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
            time.sleep(60)  # The signal arrives here.
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
