from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from linklab.core.ip_family import Families
from linklab.lab.network.services import OwnServer
from linklab.runs import environment
from linklab.runs.clients import Task
from linklab.runs.job_test import JOB
from linklab.scenario import Scenario
from linklab.scenario.network import NetworkSettings


@pytest.fixture
def task(small: Scenario) -> Task:
    return Task(
        small,
        "https://10.0.0.1/p",
        "/ca.pem",
        "/out",
        "/run",
        "/payload.bin",
        "abcd",
        "/multilink",
        "/wireless",
        "/run/energy.yaml",
    )


def test_words_of_the_user_s_may_name_what_the_environment_has(task: Task) -> None:
    assert environment.for_client(JOB, task) == {
        "url": "https://10.0.0.1/p",
        "ca": "/ca.pem",
        "output": "/out",
        "address": "10.0.0.1",
        "port": 443,
    }
    served = msgspec.structs.replace(JOB, server=OwnServer(("serve",), 8080))
    assert environment.for_server(served, task.scenario) == {
        "address": "10.0.0.1",
        "port": 8080,
        "certificate": "/cache/authority/server.pem",
        "key": "/cache/authority/server.key",
        "directory": Path("/cache/payloads"),
    }


def test_a_port_of_one_s_own_is_in_the_url(small: Scenario, tmp_path: Path) -> None:
    served = msgspec.structs.replace(JOB, server=OwnServer(("serve",), 8080))
    made = environment.task_of(served, small, tmp_path, tmp_path / "payload")
    assert made.url == "https://10.0.0.1:8080/payload-1-1.bin"
    made = environment.task_of(JOB, small, tmp_path, tmp_path / "payload")
    assert made.url == "https://10.0.0.1/payload-1-1.bin"


@pytest.mark.parametrize(
    ("families", "of_client", "of_server"),
    [
        ((4,), "10.0.0.1", "10.0.0.1"),
        ((6,), "2001:db8::1", "2001:db8::1"),
        ((4, 6), "server.linklab", "::"),
    ],
)
def test_a_server_with_ipv6_is_called_by_name(
    task: Task, tmp_path: Path, families: Families, of_client: str, of_server: str
) -> None:
    scenario = replace(task.scenario, network=NetworkSettings(families))
    made = environment.task_of(JOB, scenario, tmp_path, tmp_path / "payload")
    host = "10.0.0.1" if families == (4,) else "server.linklab"
    assert made.url == f"https://{host}/payload-1-1.bin"
    assert environment.for_client(JOB, made)["address"] == of_client
    assert environment.for_server(JOB, scenario)["address"] == of_server


def test_a_program_of_the_user_s_has_the_environment_of_the_manifest(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing of the lab's own process."""
    for name in ("PATH", "LANG", "HTTPS_PROXY", "GODEBUG"):
        monkeypatch.setenv(name, "of the lab's own process")
    job = msgspec.structs.replace(JOB, client=None, environment={"PATH": "/bin"})
    assert environment.of_client(job, task, Path("/home")) == {
        "PATH": "/bin",
        "HOME": "/home",
        "LINKLAB_URL": "https://10.0.0.1/p",
        "LINKLAB_CA": "/ca.pem",
        "LINKLAB_OUTPUT": "/out",
        "LINKLAB_ADDRESS": "10.0.0.1",
        "LINKLAB_PORT": "443",
        "LINKLAB_SHA256": "abcd",
        "LINKLAB_RUN_DIR": "/run",
        "LINKLAB_WIRELESS": "/wireless",
        "SSL_CERT_FILE": "/ca.pem",
        "CURL_CA_BUNDLE": "/ca.pem",
    }


def test_in_virtual_time_our_own_client_keeps_its_course(task: Task) -> None:
    for client, clock in (("alg3", "virtual"), ("alg3", "real"), (None, "virtual")):
        job = msgspec.structs.replace(JOB, client=client, clock=clock)
        given = environment.of_client(job, task, Path("/home"))
        assert ("GOGC" in given) == (client is not None and clock == "virtual")
        for name in ("GOMEMLIMIT", "GODEBUG"):
            assert (name in given) == ("GOGC" in given)


def test_our_own_client_has_nothing_of_the_user_s_environment(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its length would move figures."""
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setenv("HTTPS_PROXY", "http://elsewhere")
    job = msgspec.structs.replace(JOB, environment={"PATH": "/home/me/bin", "VIRTUAL_ENV": "/v"})
    given = environment.of_client(job, task, Path("/home"))
    assert given["PATH"] == "/bin"
    assert not {"VIRTUAL_ENV", "HTTPS_PROXY"} & given.keys()
