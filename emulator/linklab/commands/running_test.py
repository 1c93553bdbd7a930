from argparse import Namespace

import pytest

from linklab.commands import compare, exec, run, running
from linklab.commands.conftest import Runs
from linklab.places.choice import Place


def test_runs_on_the_real_clock_go_one_after_the_other() -> None:
    assert running.most_side_by_side(Place("guest", "virtual", "")) >= 1
    assert running.most_side_by_side(Place("guest", "real", "")) == 1


def test_every_command_shifts_its_clients(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    options.shift = 0.25
    run.run(options)
    exec.run(options)
    compare.run(options)
    assert [one.shift_s for one in runs.requests] == [0.25] * 3
