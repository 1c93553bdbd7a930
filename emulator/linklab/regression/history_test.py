import subprocess
from pathlib import Path

import pytest

from linklab.regression import baseline, history
from linklab.regression.baseline import Baseline, BaselineError
from linklab.regression.figures import Cell, Values
from linklab.regression.fingerprint import Fingerprint
from linklab.regression.history import Revision

ALG3, NAIVE, NEW = Cell("ls", "alg3", 1), Cell("ls", "naive", 1), Cell("ts", "alg3", 1)


def git(where: Path, *words: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", "-C", where, *identity, *words], check=True, capture_output=True)


def accepted(path: Path, reason: str, alg3_s: float) -> None:
    values: Values = {"download_s": alg3_s, "efficiency": 0.9}
    made = Baseline(reason, "2026-01-01", Fingerprint({}, {}), {ALG3: values})
    path.write_text(baseline.write(made))


def test_a_baseline_s_own_history(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    path = tmp_path / "x.baseline.yaml"
    for reason, alg3_s in (("first", 20.0), ("second", 19.0)):
        accepted(path, reason, alg3_s)
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", reason)
        path.write_text("cells: 1\n")  # As a form that is not read any more.
        git(tmp_path, "commit", "-qam", "damaged")
    found = history.of_git(path)
    assert [(one.about, one.downloads_s) for one in found] == [
        ("2026-01-01: first", {ALG3: 20.0}),
        ("2026-01-01: second", {ALG3: 19.0}),
    ]


def test_git_knows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.baseline.yaml"
    with pytest.raises(BaselineError, match="not a git repository"):
        history.of_git(path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "x")
    with pytest.raises(BaselineError, match="git knows no revision of it"):
        history.of_git(path)


def test_the_worst_come_first() -> None:
    revisions = [
        Revision("a", "", {ALG3: 10.0}),
        Revision("b", "", {ALG3: 20.0, NAIVE: 40.0}),
        Revision("now", "", {ALG3: 18.0, NAIVE: 44.0, NEW: 5.0}),
    ]
    found = history.cell_histories(revisions, base=1)
    assert [one.cell for one in found] == [NAIVE, NEW, ALG3]
    assert found[2].seconds == (10.0, 20.0, 18.0)
    assert found[2].changes == pytest.approx((-0.5, 0, -0.1))
    assert (found[1].seconds, found[1].changes) == ((None, None, 5.0), (None, None, None))
