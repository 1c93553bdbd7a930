"""Tests which workers and schedulers cluster.py accepts, with real processes. Whole runs:
tests/campaign_test.py."""

import asyncio
import contextlib
import http.client
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shlex import split

import psutil
import pytest
from distributed import Client
from distributed.comm.core import connect
from distributed.security import Security

from linklab.campaign import cluster
from linklab.campaign.cluster import Certificates, ClusterError, embedded, existing


@pytest.fixture(scope="module")
def own() -> Iterator[Client]:
    with embedded(1) as client:
        yield client


def told(_: str) -> None:
    """Nobody listens."""


def listening() -> list[tuple[str, int]]:
    """Where this process and its children listen for TCP."""
    found: list[tuple[str, int]] = []
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [
                (one.laddr.ip, one.laddr.port)
                for one in process.net_connections("inet")
                if one.status == psutil.CONN_LISTEN
            ]
    return found


def lets_in(address: str, security: Security | None, patience_s: float) -> bool:
    """Whether what listens at an address takes a stranger: then it unpickles what they send."""

    async def shake_hands() -> None:
        arguments = security.get_connection_args("client") if security else {}
        comm = await connect(address, timeout=patience_s, **arguments)
        try:
            await comm.write({"op": "identity", "reply": True})
            await comm.read()
        finally:
            comm.abort()

    try:
        asyncio.run(asyncio.wait_for(shake_hands(), 2 * patience_s))
    except (OSError, TimeoutError):
        return False
    return True


def test_its_own_process_is_let_in_and_its_workers_work(own: Client) -> None:
    assert own.submit(os.getppid).result(timeout=60) > 0
    (worker,) = own.scheduler_info()["workers"]
    for address in (own.scheduler_info()["address"], worker):
        assert address.startswith("tls://127.0.0.1:")
        assert lets_in(address, own.security, 60)


def test_nobody_else_on_the_machine_is(own: Client) -> None:
    places = listening()
    assert len(places) >= 3  # The scheduler, a nanny, its worker.
    for host, port in places:
        assert host == "127.0.0.1"
        assert not lets_in(f"tcp://{host}:{port}", None, 2)
        assert not lets_in(f"tls://{host}:{port}", Security.temporary(), 2)


def test_its_pages_say_nothing(own: Client) -> None:
    pages = 0
    for host, port in listening():
        for path in ("/info/main/workers.html", "/json/counts.json", "/metrics", "/health", "/"):
            connection = http.client.HTTPConnection(host, port, timeout=60)
            try:
                connection.request("GET", path)
                assert connection.getresponse().status == 404
                pages += 1
            except (OSError, http.client.HTTPException):  # Not one of those that speak HTTP.
                break
            finally:
                connection.close()
    assert pages == 2 * 5


def test_the_key_is_on_no_command_line_and_in_no_file(own: Client) -> None:
    key = own.security.get_tls_config_for_role("worker")["key"]
    words = key.splitlines()[3]
    for child in psutil.Process().children(recursive=True):
        assert words not in " ".join(child.cmdline())
        assert words not in str(child.environ())
    (scratch,) = {
        Path(one) for one in own.run(lambda dask_worker: dask_worker.local_directory).values()
    }
    top = next(one for one in scratch.parents if one.name.startswith("linklab-run-"))
    assert top.stat().st_mode & 0o777 == 0o700
    assert not [path for path in top.rglob("*") if path.is_file() and words in path.read_text()]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """As the manual makes them."""
    at = tmp_path_factory.mktemp("certificates")
    subprocess.run(
        [
            *split("openssl req -x509 -newkey rsa:2048 -noenc -days 365 -subj /CN=campaign"),
            "-keyout",
            at / "tls.key",
            "-out",
            at / "tls.pem",
        ],
        check=True,
        capture_output=True,
    )
    return Certificates(at / "tls.pem", at / "tls.pem", at / "tls.key")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE_S", 1.0)


@pytest.mark.usefixtures("impatient")
def test_a_scheduler_that_is_not_there(certificates: Certificates) -> None:
    for address, files in (("tcp://127.0.0.1:1", None), ("tls://127.0.0.1:1", certificates)):
        said = f"no scheduler answers at {address}, or not to these certificates"
        with pytest.raises(ClusterError, match=said), existing(address, files, told):
            pass


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (
            "tcp://192.0.2.7:8786",
            "is without TLS: anyone who reaches a scheduler or worker can run",
        ),
        ("192.0.2.7:8786", "is without TLS"),
        ("tcp://scheduler.example:8786", "is without TLS"),
        ("tcp://127.0.0.1.example:8786", "is without TLS"),
        ("tls://192.0.2.7:8786", "needs certificates; needed: --tls-ca, --tls-cert and --tls-key"),
        ("nonsense://x", "is no scheduler's address; allowed: such as tls://"),
        ("ws://127.0.0.1:8786", "is no scheduler's address"),
    ],
)
def test_schedulers_that_are_not_spoken_to(address: str, said: str) -> None:
    with pytest.raises(ClusterError, match=said), existing(address, None, told):
        pass


def test_certificates_that_are_none(certificates: Certificates, tmp_path: Path) -> None:
    key = certificates.key
    for files, said in (
        (
            Certificates(tmp_path / "no.pem", certificates.cert, key),
            "no.pem: cannot be read: No such",
        ),
        (Certificates(key, certificates.cert, key), "none that belong together"),
        (Certificates(certificates.ca, key, key), "none that belong together"),
    ):
        with pytest.raises(ClusterError, match=said), existing("tls://127.0.0.1:1", files, told):
            pass
    with (
        pytest.raises(ClusterError, match="certificates go with tls://127.0.0.1:1"),
        existing("tcp://127.0.0.1:1", certificates, told),
    ):
        pass


@pytest.mark.usefixtures("impatient")
def test_a_loopback_without_tls_is_taken_with_a_warning() -> None:
    lines: list[str] = []
    with pytest.raises(ClusterError), existing("tcp://localhost:1", None, lines.append):
        pass
    (line,) = lines
    assert "any user of this machine can run programs" in line
