"""Runs a real Prometheus for the tests, and collects the dashboards' queries."""

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY
from free_ports import free_port

CONFIGURATION = REPOSITORY / "dashboards" / "prometheus"
GRAFANA = REPOSITORY / "dashboards" / "grafana"
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in sorted(GRAFANA.glob("*.json"))}


@dataclass(frozen=True)
class Asked:
    """One query of a dashboard's panel, variable or annotation."""

    dashboard: str
    where: str
    expression: str
    instant: bool

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.where}: {self.expression}"


def asked() -> list[Asked]:
    """Returns all queries of the dashboards, except variables."""
    found = []
    for name, dashboard in DASHBOARDS.items():
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                instant = bool(target.get("instant"))
                found.append(Asked(name, panel["title"], target["expr"], instant))
        for annotation in dashboard["annotations"]["list"]:
            found.append(Asked(name, annotation["name"], annotation["expr"], False))
    return found


def filled_in(expression: str, **chosen: str) -> str:
    """Returns an expression with Grafana's variables filled in, for a dashboard of a week with
    steps of a second. Variables that are not in `chosen` match anything."""
    values = {"__rate_interval": "4s", "__interval": "1s", "__range": "7d", **chosen}
    any_one = re.sub(
        r'="\$(\w+)"', lambda one: one[0] if one[1] in values else '=~".*"', expression
    )
    return re.sub(r"\$([a-z_]\w*)", lambda match: values.get(match[1], ".*"), any_one)


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus that runs on this machine."""

    url: str
    data: Path

    def ask(self, path: str, **parameters: str) -> Any:
        """Returns the API's answer below /api/v1. Fails the test if it refuses."""
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=30) as answer:
                content = json.load(answer)
        except urllib.error.HTTPError as error:
            pytest.fail(f"{path} {parameters}: {error.read().decode()}")
        assert content["status"] == "success"
        return content["data"]

    def values(self, one: Asked, start_s: float, end_s: float) -> list[float]:
        """Returns every number that a panel would show from `start_s` to `end_s`."""
        expression = filled_in(one.expression)
        if one.instant:
            result = self.ask("query", query=expression, time=f"{end_s}")["result"]
            pairs = [series["value"] for series in result]
        else:
            result = self.ask(
                "query_range", query=expression, start=f"{start_s}", end=f"{end_s}", step="1"
            )["result"]
            pairs = [pair for series in result for pair in series["values"]]
        return [float(value) for _, value in pairs if value != "NaN"]

    def shown(
        self, expression: str, start_s: float, end_s: float, step_s: int = 1
    ) -> list[tuple[dict[str, str], dict[int, float]]]:
        """Returns an expression's series at each step, with labels, in Prometheus' order."""
        result = self.ask(
            "query_range", query=expression, start=f"{start_s}", end=f"{end_s}", step=f"{step_s}"
        )["result"]
        return [
            (one["metric"], {int(t): float(value) for t, value in one["values"]}) for one in result
        ]

    def value(self, expression: str, time_s: float) -> list[tuple[dict[str, str], float]]:
        """Returns an expression's series at a time, with labels."""
        result = self.ask("query", query=expression, time=f"{time_s}")["result"]
        return [(series["metric"], float(series["value"][1])) for series in result]


@contextmanager
def prometheus(directory: Path, target: str = "127.0.0.1:1") -> Iterator[Prometheus]:
    """Runs Debian's Prometheus with this repository's configuration, scraping `target`, on the data
    in `directory`/data. Skips the test if it is not installed."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("Prometheus is not installed: apt-get install prometheus")
    directory.mkdir(exist_ok=True)
    text = (CONFIGURATION / "prometheus.yml").read_text()
    assert "emulator:9464" in text
    (directory / "prometheus.yml").write_text(text.replace("emulator:9464", target))
    shutil.copy(CONFIGURATION / "alerts.yml", directory)
    (directory / "data").mkdir(exist_ok=True)
    address = f"127.0.0.1:{free_port()}"
    options = [
        f"--config.file={directory / 'prometheus.yml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={address}",
        *yaml.safe_load((REPOSITORY / "compose.yaml").read_text())["services"]["prometheus"][
            "command"
        ][2:],
    ]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen([program, *options], stdout=log, stderr=log)
    try:
        started = Prometheus(f"http://{address}", directory / "data")
        _wait_until_ready(started, process, directory / "log")
        yield started
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_until_ready(one: Prometheus, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"{one.url}/-/ready", timeout=5):
                return
        except OSError:
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)  # It does not answer yet.
    pytest.fail(f"Prometheus does not get ready: {log.read_text()}")
