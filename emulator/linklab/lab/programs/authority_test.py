import itertools
import shutil
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from socket import socketpair

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from linklab.lab.programs import authority, certificates
from linklab.lab.programs.authority import Authority, AuthorityError


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def made(cache: Path) -> Authority:
    return authority.ensure(cache)


@pytest.fixture(scope="module")
def other_keys(made: Authority) -> Iterator[RSAPrivateKey]:
    """Three keys in turn, none of them one of `made`: making a new one takes 0.1 s."""
    return itertools.cycle([certificates._new_key() for _ in range(3)])


@pytest.fixture(autouse=True)
def few_keys(other_keys: Iterator[RSAPrivateKey], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "_new_key", lambda: next(other_keys))


def shake_hands(made: Authority, name: str, ca_cert: Path | None = None) -> str | None:
    """A TLS handshake over a socket pair, verified by the client; the protocol spoken."""
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(made.cert, made.key)
    client_context = ssl.create_default_context(cafile=str(ca_cert or made.ca_cert))
    ours, theirs = socketpair()

    def serve() -> None:
        try:
            with server_context.wrap_socket(theirs, server_side=True) as server:
                server.send(b"hello")
        except OSError:
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client_context.wrap_socket(ours, server_hostname=name) as client:
            assert client.recv(5) == b"hello"
            return client.version()
    finally:
        ours.close()
        thread.join()


@pytest.mark.parametrize("name", authority.SERVER_NAMES)
def test_a_client_that_verifies_accepts_every_name(made: Authority, name: str) -> None:
    assert shake_hands(made, name) == "TLSv1.3"


def test_a_client_refuses_other_names_and_other_authorities(
    made: Authority, tmp_path: Path
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(made, "example.org")
    other = authority.ensure(tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(made, "localhost", other.ca_cert)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize("date", ["2000-01-02", "2026-06-01", "2099-12-31"])
def test_openssl_verifies_the_chain_strictly_at_any_virtual_date(
    made: Authority, date: str
) -> None:
    import datetime

    at = int(datetime.datetime.fromisoformat(date + "T00:00:00+00:00").timestamp())
    command = ["openssl", "verify", "-x509_strict", "-attime", str(at), "-purpose", "sslserver"]
    command += ["-verify_ip", "10.0.0.1", "-CAfile", str(made.ca_cert), str(made.cert)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_rights(made: Authority) -> None:
    directory = made.key.parent
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()}
    keys = {name for name in modes if name.endswith(".key")}
    assert keys == {"ca.key", made.key.name}
    assert all(modes[name] == 0o600 for name in keys)
    assert {name for name in modes if not name.startswith(".")} == keys | {
        "ca.pem",
        made.cert.name,
    }


def test_a_second_call_changes_nothing(cache: Path, made: Authority) -> None:
    before = {file: file.read_bytes() for file in made.key.parent.iterdir()}
    assert authority.ensure(cache, reversed(authority.SERVER_NAMES)) == made
    assert {file: file.read_bytes() for file in made.key.parent.iterdir()} == before


def test_what_was_checked_is_not_checked_again(cache: Path, made: Authority) -> None:
    """Loading cryptography and checking two keys is a sixth of the processor time of a small run."""
    program = (
        "import pathlib, sys; from linklab.lab.programs import authority;"
        "authority.ensure(pathlib.Path(sys.argv[1])); print('cryptography' in sys.modules)"
    )
    called = [sys.executable, "-c", program, str(cache)]
    done = subprocess.run(called, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_other_names_get_a_certificate_of_the_same_authority(cache: Path, made: Authority) -> None:
    before = made.cert.read_bytes()
    other = authority.ensure(cache, ["phone.example", "fd00::1"])
    assert shake_hands(other, "phone.example", made.ca_cert)
    assert shake_hands(other, "fd00::1", made.ca_cert)
    assert made.cert.read_bytes() == before
    files = (made.cert, other.cert, made.ca_cert)
    serials = {x509.load_pem_x509_certificate(one.read_bytes()).serial_number for one in files}
    assert [one.bit_length() for one in serials] == [63] * 3
    with pytest.raises(AuthorityError, match="at least one name"):
        authority.ensure(cache, [])


@pytest.mark.parametrize("damage", ["cert", "key", "ca_cert", "ca key", "key rights"])
def test_damage_is_repaired(tmp_path: Path, cache: Path, made: Authority, damage: str) -> None:
    shutil.copytree(cache, tmp_path, dirs_exist_ok=True)
    mine = authority.ensure(tmp_path)
    match damage:
        case "cert":
            mine.cert.write_text("no certificate")
        case "key":
            mine.key.write_bytes((mine.key.parent / "ca.key").read_bytes())
        case "ca_cert":
            mine.ca_cert.unlink()
        case "ca key":
            (mine.key.parent / "ca.key").unlink()
        case _:
            mine.key.chmod(0o644)
    again = authority.ensure(tmp_path)
    assert shake_hands(again, "server.linklab")
    assert stat.S_IMODE(again.key.stat().st_mode) == 0o600


def test_the_sizes_of_a_handshake_are_the_same_on_every_machine(
    made: Authority, tmp_path: Path
) -> None:
    other = authority.ensure(tmp_path)
    for ours, theirs in ((made.cert, other.cert), (made.ca_cert, other.ca_cert)):
        one, two = (x509.load_pem_x509_certificate(f.read_bytes()) for f in (ours, theirs))
        assert len(ours.read_bytes()) == len(theirs.read_bytes())
        assert one.serial_number == two.serial_number
        assert one.public_key() != two.public_key()


def test_no_place_to_keep_them_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(AuthorityError, match="cannot be kept in"):
        authority.ensure(tmp_path / "file")


def test_labs_at_once_share_one_authority(tmp_path: Path) -> None:
    """Threads stand for processes: flock(2) keeps apart whoever opened the lock file anew."""
    together = threading.Barrier(3)

    def ensure(_: int) -> tuple[bytes, bytes]:
        together.wait()
        made = authority.ensure(tmp_path)
        return made.key.read_bytes(), made.ca_cert.read_bytes()

    with ThreadPoolExecutor(3) as pool:
        assert len(set(pool.map(ensure, range(3)))) == 1
