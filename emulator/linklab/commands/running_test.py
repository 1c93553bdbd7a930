from argparse import Namespace
from pathlib import Path

import pytest

from linklab.api import environment
from linklab.commands import compare, exec, run, running
from linklab.commands.conftest import Runs
from linklab.places.choice import Environment
from linklab.runs.runner import RunRequest
from linklab.scenario import Scenario


def test_runs_on_the_real_clock_go_one_after_the_other() -> None:
    assert environment.most_side_by_side(Environment("guest", "virtual", "")) >= 1
    assert environment.most_side_by_side(Environment("guest", "real", "")) == 1


def test_every_command_shifts_its_clients(
    runs: Runs, options: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    options.shift = 0.25
    run.run(options)
    exec.run(options)
    compare.run(options)
    assert [one.shift_s for one in runs.requests] == [0.25] * 3


def test_runs_come_back_in_the_order_asked_however_they_end(
    runs: Runs, options: Namespace, tmp_path: Path, small: Scenario
) -> None:
    requests = [RunRequest(small, name, seed) for name in ("alg3", "alg1") for seed in (2, 1, 3)]
    place = Environment("host", "real", "")
    done = running.run_all(requests, place, tmp_path / "runs", 2, None)
    assert [one.request for one in done] == requests
