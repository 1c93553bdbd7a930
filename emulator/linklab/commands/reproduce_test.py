from argparse import Namespace
from pathlib import Path

import pytest

from linklab.commands import reproduce
from linklab.commands.conftest import Runs, printed
from linklab.report import reproduction


def published(options: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the scenario one that the publication `ours` has a figure of."""
    with Path(options.scenario).open("a") as file:
        file.write("published: [{algorithm: alg3, download: 0.5 s}]\n")
    monkeypatch.setitem(reproduction.PUBLICATIONS, "ours", (options.scenario,))
    options.publication = "ours"


def test_a_publication_is_run_with_every_seed(
    runs: Runs, options: Namespace, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    published(options, monkeypatch)
    options.runs, options.seed = 2, 5
    assert reproduce.run(options) == 0
    assert [(one.contestant, one.seed) for one in runs.requests] == [("alg3", 5), ("alg3", 6)]
    read = printed(capsys)
    (cell,) = read["cells"]
    assert (cell["scenario"], cell["algorithm"], cell["published_s"]) == ("small", "alg3", 0.5)
    assert cell["measured_s"] == pytest.approx(0.55)
    assert read["failures"] == []
