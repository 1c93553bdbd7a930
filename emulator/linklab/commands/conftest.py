"""Shares simulated runs and parsed options between the commands' tests."""

import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from linklab.places import choice
from linklab.places.choice import Environment
from linklab.report import vega
from linklab.runs import clients, job, runner
from linklab.runs.job_test import JOB
from linklab.runs.outcome import Outcome
from linklab.runs.runner import Finished, RunRequest
from linklab.scenario import Scenario, to_yaml

NETWORK = {"wifi": 600_000, "lte": 500_000}


class Runs:
    """Stands for `runner.run_all`: every run takes what `elapsed_s` says, which is 0.1 s times its
    seed unless told, and ends as told."""

    def __init__(self) -> None:
        self.requests: list[RunRequest] = []
        self.elapsed_s: Callable[[RunRequest], float] = lambda request: 0.1 * request.seed
        self.error: Callable[[RunRequest], str | None] = lambda request: None
        self.exit_code: Callable[[RunRequest], int] = lambda request: 0
        self.damage: Callable[[RunRequest, Path], None] = lambda request, run_dir: None

    def __call__(
        self,
        requests: Sequence[RunRequest],
        where: Environment,
        parent: Path,
        *,
        parallel: int,
        timeout_s: float | None,
        tell: Callable[[RunRequest, float], None],
    ) -> Iterator[Finished]:
        self.requests += requests
        for request in requests:
            tell(request, 0.0)
        for request in reversed(requests):  # Runs end in any order.
            run_dir = runner.new_directory(parent, request.label)
            (run_dir / "scenario.yaml").write_text(to_yaml(request.scenario))
            (run_dir / "client.out").write_bytes(b"out \xff\x00")
            (run_dir / "client.err").write_text("err")
            manifest = msgspec.structs.replace(JOB, client=request.client, command=["x"])
            job.write(manifest, run_dir)
            outcome = Outcome(
                exit_code=self.exit_code(request),
                elapsed_ns=round(self.elapsed_s(request) * 1e9),
                received_bytes=NETWORK,
                output_bytes=request.scenario.payload.size_bytes,
            )
            error = self.error(request)
            if error is None:
                (run_dir / "outcome.json").write_bytes(msgspec.json.encode(outcome))
            self.damage(request, run_dir)
            yield Finished(request, run_dir, error, 0.5)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Runs()
    monkeypatch.setattr(runner, "run_all", made)
    monkeypatch.setattr(choice, "choose", lambda *_: Environment("host", "real", "as asked"))
    monkeypatch.setattr(clients, "obstacle", lambda names, place: None)
    return made


@pytest.fixture
def options(small: Scenario, tmp_path: Path) -> Namespace:
    file = tmp_path / "small.yaml"
    file.write_text(to_yaml(small))
    return Namespace(
        scenario=str(file),
        scenarios=[str(file)],
        link=[],
        save=None,
        algorithm="naive",
        algorithms="naive",
        command=["curl"],
        seed=1,
        runs=1,
        parallel=1,
        place="auto",
        clock="auto",
        out=tmp_path / "runs",
        timeout=None,
        shift=0.0,
        energy_model=None,
        json=True,
        report=None,
        server=None,
        server_restarts=None,
        share=[],
        port=None,
        origin=[],
        outside=False,
        listen_proxy=None,
        kind=[],
        pcap=None,
        tls_keys=False,
    )


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command printed for machines."""
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library takes seconds to bundle, and is seldom what is tested."""
    monkeypatch.setattr(vega, "javascript", lambda: "/* vega */")
