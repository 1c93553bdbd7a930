"""Tests compose.yaml: its text, and the whole stack if an engine runs.

With LINKLAB_CONTAINERS=1 (`make test-containers`) it builds the images, which takes minutes, and
starts them. That needs a Docker engine. If no registry can be reached and pinned images are
missing, the local STAND_INS are used. Grafana has none, and is left out if its image is missing.
"""

import json
import os
import re
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY, ran, until
from free_ports import free_port
from prometheus import Prometheus

pytestmark = pytest.mark.one_at_a_time

FILE = REPOSITORY / "compose.yaml"
ON_HOST = REPOSITORY / "emulator" / "compose.host.yaml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILES = [REPOSITORY / part / "Dockerfile" for part in ("client", "emulator", "server")]

FILE_OF_WEB = "http://web:8080/file"

STAND_INS = {
    "LINKLAB_DEBIAN": "debian:bookworm-slim",
    "LINKLAB_GOLANG": "golang:1.26-bookworm",
    "LINKLAB_PROMETHEUS": "prom/prometheus:latest",
}
"""The variables that name another image than the pinned one, and the local images tried instead."""


# --- Without an engine.


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_the_least_rights_and_limits(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert "privileged" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert {"mem_limit", "cpus", "pids_limit", "healthcheck", "logging"} <= set(service)


@pytest.mark.parametrize("name", SERVICES)
def test_nothing_is_published_but_on_the_loopback(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        if name == "server":
            assert port.startswith("${LINKLAB_FIELD_ADDRESS:-127.0.0.1}:")
        else:
            assert port.startswith("127.0.0.1:")


def test_nobody_can_log_in_to_grafana() -> None:
    environment = SERVICES["grafana"]["environment"]
    assert environment["GF_AUTH_DISABLE_LOGIN_FORM"] == "true"
    assert environment["GF_AUTH_BASIC_ENABLED"] == "false"
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"


def test_volumes_have_names_and_what_is_shipped_is_read_only() -> None:
    for service in SERVICES.values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            shipped = source.startswith(("./dashboards/", "./emulator/examples/"))
            assert source in COMPOSE["volumes"] or shipped, mount
            assert not source.startswith("./") or mount.endswith(":ro"), mount


@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
@pytest.mark.parametrize("release", [(), ("guest-0123.tar.xz",)], ids=len)
def test_where_no_guest_can_be_made_the_container_is_built_without(
    tmp_path: Path, processor: str, release: tuple[str, ...]
) -> None:
    dockerfile = (REPOSITORY / "emulator" / "Dockerfile").read_text()
    stage = dockerfile.partition(" AS guest\n")[2].partition("\nFROM ")[0]
    (script,) = re.findall(r"^RUN ((?:.*\\\n)*.*)", stage, re.MULTILINE)
    for name in ("release", "cache", "guest"):
        script = script.replace(f"/{name}", f"{tmp_path}/{name}")
    programs = {"bin/uname": f"echo {processor}", ".venv/bin/python": "echo made"}
    for name, does in programs.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o755)
    (tmp_path / "release").mkdir()
    for name in ("__init__.py", *release):
        (tmp_path / "release" / name).touch()
    done = ran(
        ["sh", "-c", script], cwd=tmp_path, env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("made\n" if processor == "x86_64" or release else "")
    assert sorted(path.name for path in (tmp_path / "guest").iterdir()) == ["image", "kernel"]


def test_the_lab_on_the_engine_s_kernel_gets_no_more_rights_than_it_needs() -> None:
    changed = yaml.safe_load(ON_HOST.read_text())["services"]
    assert set(changed) == {"emulator"}
    assert set(changed["emulator"]) == {"user", "cap_add", "security_opt", "entrypoint"}
    assert "ALL" not in changed["emulator"]["cap_add"]
    assert changed["emulator"]["security_opt"] == ["apparmor:unconfined"]


INSTALLED = [
    one
    for one in (("docker-compose",), ("docker", "compose"))
    if shutil.which(one[0])
    and subprocess.run([*one, "version"], capture_output=True, check=False).returncode == 0
]


@pytest.mark.asked_for("LINKLAB_CONTAINERS")
def test_compose_accepts_it() -> None:
    assert INSTALLED
    for program in INSTALLED:
        for files in (("-f", FILE), ("-f", FILE, "-f", ON_HOST)):
            done = ran([*program, *files, "config", "-q"])
            assert (done.returncode, done.stderr) == (0, "")


# --- With an engine.


class Stack:
    """Runs this test's own project of compose.yaml, on its own ports."""

    def __init__(self) -> None:
        self.ports = {
            name: free_port()
            for name in ("LINKLAB_METRICS_PORT", "LINKLAB_PROMETHEUS_PORT", "LINKLAB_GRAFANA_PORT")
        }
        self.environment = {name: str(port) for name, port in self.ports.items()} | instead()
        self.project = f"linklab-test-{os.getpid()}"

    def __call__(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return ran(
            [*compose_program(), "-p", self.project, "-f", str(FILE), *words],
            env={**os.environ, **self.environment, **environment},
        )


def docker(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=False)


def compose_program() -> tuple[str, ...]:
    return (
        ("docker", "compose")
        if docker("compose", "version").returncode == 0
        else ("docker-compose",)
    )


def has(image: str) -> bool:
    return docker("image", "inspect", image).returncode == 0


def instead() -> dict[str, str]:
    """Returns variables with stand-ins for missing pinned images."""
    pinned = {
        name: image
        for path in [*DOCKERFILES, FILE]
        for name, image in re.findall(r"\$\{(LINKLAB_\w+):-(\S+@sha256:\w{64})\}", path.read_text())
    }
    assert pinned.keys() == STAND_INS.keys()
    return {
        name: stand_in
        for name, stand_in in STAND_INS.items()
        if name not in os.environ and not has(pinned[name]) and has(stand_in)
    }


@pytest.fixture(scope="module")
def built() -> None:
    """Builds the images of this tree, and Prometheus'."""
    if shutil.which("docker") is None or docker("version").returncode != 0:
        pytest.skip("no Docker engine answers")
    if shutil.which(compose_program()[0]) is None:
        pytest.skip("there is no Compose")
    done = ran(
        [*compose_program(), "-f", FILE, "--profile", "field", "build", "emulator", "server"],
        env={**os.environ, **instead()},
        timeout=None,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.fixture
def stack(built: None) -> Iterator[Stack]:
    made = Stack()
    try:
        yield made
    finally:
        made("--profile", "field", "--profile", "own", "down", "--volumes", "--timeout", "20")


@pytest.mark.asked_for("LINKLAB_CONTAINERS")
def test_the_stack_downloads_unasked_is_scraped_and_can_be_changed(stack: Stack) -> None:
    services = ["emulator", "prometheus"]
    if has(SERVICES["grafana"]["image"]):
        services.append("grafana")
    begun_s = time.monotonic()
    up = stack("up", "--detach", "--no-build", *services)
    assert up.returncode == 0, up.stderr
    server = Prometheus(f"http://127.0.0.1:{stack.ports['LINKLAB_PROMETHEUS_PORT']}", Path())

    def logs() -> str:
        return stack("logs").stdout

    def scraped(expression: str) -> list[tuple[dict[str, str], float]]:
        try:
            return server.value(expression, time.time())
        except OSError:
            return []

    until(lambda: scraped("linklab_lateness_seconds"), logs)
    print(f"first scraped sample after {time.monotonic() - begun_s:.1f} s")
    until(lambda: scraped("sum(multilink_received_bytes_total) > 0"), logs)
    print(f"first scraped byte after {time.monotonic() - begun_s:.1f} s")
    said = stack("logs", "emulator").stdout
    assert "place: guest, clock: real" in said
    assert f"open http://127.0.0.1:{stack.ports['LINKLAB_GRAFANA_PORT']}" in said

    until(lambda: scraped('linklab_link_up{link="lte"} == 1'), logs)
    changed = stack("exec", "-T", "emulator", "linklab", "link", "lte", "down", "3mbit")
    assert changed.returncode == 0, changed.stderr
    changed_s = time.monotonic()
    rate = 'linklab_link_rate_bytes_per_second{link="lte", direction="down"} == 375000'
    until(lambda: scraped(rate), logs)
    print(f"a change is in Prometheus {time.monotonic() - changed_s:.1f} s after its command")

    def command(token: str) -> urllib.request.Request:
        return urllib.request.Request(
            f"http://127.0.0.1:{stack.ports['LINKLAB_METRICS_PORT']}/lab",
            b'{"next": ""}',
            {"X-Linklab": token},
            method="PATCH",
        )

    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(command("test"), timeout=10)
    kept = stack("exec", "-T", "emulator", "sh", "-c", "cat /var/cache/linklab/live/*.token")
    token = kept.stdout.strip()
    _use_the_page(f"http://127.0.0.1:{stack.ports['LINKLAB_METRICS_PORT']}", token)
    with urllib.request.urlopen(command(token), timeout=10) as answer:
        assert json.load(answer) == {"done": "on to the next algorithm"}
    until(lambda: len(scraped("count by (run) (last_over_time(linklab_run_info[5m]))")) == 2, logs)

    published = stack(
        "exec",
        "-T",
        "emulator",
        "sh",
        "-c",
        "linklab run wifi-gone --out runs/virtual && "
        "linklab publish runs/virtual/* --output runs/published.om",
    )
    assert published.returncode == 0, published.stderr
    assert "wifi-gone-alg3-seed1: published" in published.stdout
    promtool = ("exec", "-T", "prometheus", "promtool", "tsdb")
    made = stack(
        *promtool, "create-blocks-from", "openmetrics", "/runs/published.om", "/prometheus"
    )
    assert made.returncode == 0, made.stderr
    assert len(stack(*promtool, "list", "/prometheus").stdout.splitlines()) == 2

    (container,) = stack("ps", "-q", "emulator").stdout.split()
    until(lambda: _health(container) == "healthy", logs)
    stopped = stack("stop")
    assert stopped.returncode == 0, stopped.stderr
    state = json.loads(docker("inspect", container).stdout)[0]["State"]
    assert (state["ExitCode"], state["OOMKilled"]) == (130, False)
    assert "everything that was started has been ended" in stack("logs", "emulator").stdout


def _use_the_page(url: str, token: str) -> None:
    """Does what a browser does with the page, by the port that is published."""
    with urllib.request.urlopen(f"{url}/", timeout=10) as page:
        assert "<title>linklab" in page.read().decode()
    with urllib.request.urlopen(f"{url}/news", timeout=10) as stream:
        assert b'"status"' in stream.readline()

    def change(origin: str) -> urllib.request.Request:
        return urllib.request.Request(
            f"{url}/lab/links/lte",
            b'{"loss": "0 %"}',
            {"X-Linklab": token, "Origin": origin},
            method="PATCH",
        )

    with urllib.request.urlopen(change(url), timeout=10) as answer:
        assert json.load(answer)["done"] == "lte: loss 0 %"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(change("http://127.0.0.1:1"), timeout=10)


def _health(container: str) -> str:
    return str(json.loads(docker("inspect", container).stdout)[0]["State"]["Health"]["Status"])


@pytest.mark.asked_for("LINKLAB_CONTAINERS")
def test_the_server_for_tests_on_hardware_serves_with_its_authority(
    stack: Stack, tmp_path: Path
) -> None:
    up = stack(
        "--profile",
        "field",
        "up",
        "--detach",
        "--no-build",
        "server",
        LINKLAB_FIELD_ADDRESS="127.0.0.1",
    )
    assert up.returncode == 0, up.stderr
    (container,) = stack("--profile", "field", "ps", "-q", "server").stdout.split()
    until(lambda: _health(container) == "healthy", lambda: docker("logs", container).stderr)
    authority = tmp_path / "ca.pem"
    copied = docker("cp", f"{container}:/var/cache/linklab/ca.pem", str(authority))
    assert copied.returncode == 0, copied.stderr
    trusting = ssl.create_default_context(cafile=str(authority))
    request = urllib.request.Request(
        "https://127.0.0.1:8443/payload-10000000-1.bin", headers={"Range": "bytes=5-14"}
    )
    with urllib.request.urlopen(request, context=trusting, timeout=10) as answer:
        assert answer.status == 206
        assert answer.headers["Content-Range"] == "bytes 5-14/10000000"
        assert len(answer.read()) == 10
    for path in ("ca.key", "authority/ca.key", "../authority/ca.key"):
        with pytest.raises(urllib.error.HTTPError, match="404|403|400"):
            urllib.request.urlopen(f"https://127.0.0.1:8443/{path}", context=trusting, timeout=10)
    running = docker("top", container).stdout.splitlines()[1:]
    assert running
    assert all(line.split()[0] not in ("root", "0") for line in running)


@pytest.mark.asked_for("LINKLAB_CONTAINERS")
def test_the_server_for_tests_on_hardware_needs_an_address(stack: Stack) -> None:
    done = stack("--profile", "field", "run", "--rm", "server", LINKLAB_FIELD_ADDRESS="")
    assert done.returncode == 1
    assert "LINKLAB_FIELD_ADDRESS must be the address of this machine" in done.stdout + done.stderr


@pytest.mark.asked_for("LINKLAB_CONTAINERS")
def test_a_server_and_a_client_of_the_user_s_with_the_links_between_them(stack: Stack) -> None:
    """The whole profile as it ships. Its containers have no linklab and no capability."""
    own = ("--profile", "own")
    begun_s = time.monotonic()
    up = stack(*own, "up", "--no-build", "--exit-code-from", "client", "client")
    said = up.stdout + up.stderr
    assert up.returncode == 0, said
    print(f"the client is through after {time.monotonic() - begun_s:.1f} s")
    (result,) = re.findall(r"20000000 bytes in (\S+) s", said)
    assert float(result) > 20e6 * 8 / 85e6, "the links of the scenario `live` at their best"

    started = stack(*own, "up", "--detach", "--no-build", "lab")
    assert started.returncode == 0, started.stderr
    (lab,) = stack(*own, "ps", "-q", "lab").stdout.split()
    until(lambda: _health(lab) == "healthy", lambda: stack(*own, "logs").stdout)
    config = json.loads(docker("inspect", lab).stdout)[0]["HostConfig"]
    assert (config["CapAdd"], config["CapDrop"], config["Privileged"]) == (None, ["ALL"], False)

    def took_s() -> float:
        done = stack(*own, "run", "--rm", "client", "--write-out", "%{time_total}", FILE_OF_WEB)
        assert done.returncode == 0, done.stderr
        return float(done.stdout.split()[-1])

    assert (
        "down 5 Mbit/s"
        in stack(*own, "exec", "-T", "lab", "linklab", "link", "wifi", "down", "5mbit").stdout
    )
    assert (
        "lte: carrier down"
        in stack(*own, "exec", "-T", "lab", "linklab", "link", "lte", "carrier", "down").stdout
    )
    assert took_s() > 20e6 * 8 / 5e6, "what is left is 5 Mbit/s"
    stopped = stack(*own, "stop", "web")
    assert stopped.returncode == 0
    done = stack(*own, "run", "--rm", "client", "--max-time", "20", FILE_OF_WEB)
    assert done.returncode != 0, "a server that has gone is an error of the client's"
