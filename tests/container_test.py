"""Tests the image in a container with compose.yaml's settings: few rights and no network are
enough.

Needs LINKLAB_CONTAINERS=1, a Docker engine, and `docker compose build` before.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY, ScenarioFile, ran

pytestmark = pytest.mark.one_at_a_time

SERVICE: dict[str, Any] = yaml.safe_load((REPOSITORY / "compose.yaml").read_text())["services"][
    "emulator"
]
IMAGE = SERVICE["image"]


def docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a docker command to its end."""
    return ran(["docker", *arguments])


def settings() -> list[str]:
    """Returns the service's security settings as options of `docker run`."""
    return [
        f"--user={SERVICE['user']}",
        *(f"--cap-drop={name}" for name in SERVICE["cap_drop"]),
        *(f"--security-opt={option}" for option in SERVICE["security_opt"]),
        *(["--read-only"] if SERVICE["read_only"] else []),
        *(f"--tmpfs={mount}" for mount in SERVICE["tmpfs"]),
        "--network=none",
    ]


def require_image() -> None:
    """Skips the test if the image is missing or cannot be run."""
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed")
    if docker("version").returncode != 0:
        pytest.skip("no Docker engine answers")
    if docker("image", "inspect", IMAGE).returncode != 0:
        pytest.skip(f"there is no image {IMAGE}: docker compose build")


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run() -> Any:
    """Runs a temporary container of the image, which is removed after the test."""
    require_image()
    name = f"linklab-test-{os.getpid()}"

    def call(options: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
        return docker("run", "--rm", f"--name={name}", *settings(), *options, IMAGE, *arguments)

    yield call
    docker("rm", "--force", "--volumes", name)


@pytest.mark.asked_for("LINKLAB_CONTAINERS")
def test_a_run_gives_its_figures(run: Run, scenario: ScenarioFile) -> None:
    file = scenario("contained", size="5 MB")
    file.chmod(0o644)
    done = run([f"--volume={file}:/{file.name}:ro"], "run", f"/{file.name}", "--json")
    assert done.returncode == 0, done.stderr
    assert "place: guest, clock: virtual" in done.stderr
    report = json.loads(done.stdout)
    assert report["error"] is None
    figures = report["figures"]
    assert 8 * 5e6 / 130e6 < figures["download_s"] < 2
    assert set(figures["links"]) == {"wifi", "lte"}


@pytest.mark.asked_for("LINKLAB_CONTAINERS")
def test_the_process_has_no_rights(run: Run) -> None:
    script = "id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; touch /written 2>&1"
    done = run(["--entrypoint=sh"], "-c", script)
    uid, *status, refusal = done.stdout.splitlines()
    assert uid != "0"
    assert dict(line.split(":\t") for line in status) == {
        "CapEff": "0" * 16,
        "CapBnd": "0" * 16,
        "NoNewPrivs": "1",
    }
    assert "Read-only file system" in refusal
