"""Tests standalone_server.py. The server itself: tests/compose_test.py."""

from pathlib import Path

import pytest
import yaml
from cryptography import x509

from linklab.commands import standalone_server
from linklab.commands.standalone_server import address_of, prepare


@pytest.mark.parametrize("good", ["192.0.2.7", "2001:db8::7", "laptop", "a-b.example.org"])
def test_addresses_and_names(good: str) -> None:
    assert address_of(good) == good


@pytest.mark.parametrize("bad", ["", "192.0.2", "999.1.1.1", "-x", "a b", "https://x", "x/y"])
def test_what_is_neither_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="LINKLAB_FIELD_ADDRESS must be the address"):
        address_of(bad)


def test_the_certificate_names_the_address_and_the_authority_is_exported(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standalone_server, "SIZES_BYTES", (1000,))
    conf = yaml.safe_load(prepare("192.0.2.7", tmp_path).read_text())
    listen = conf["listen"]["ssl"]
    cert = x509.load_pem_x509_certificate(Path(listen["certificate-file"]).read_bytes())
    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "192.0.2.7" in [str(one) for one in names.get_values_for_type(x509.IPAddress)]
    exported = x509.load_pem_x509_certificate((cache / "ca.pem").read_bytes())
    cert.verify_directly_issued_by(exported)
    served = Path(conf["hosts"]["default"]["paths"]["/"]["file.dir"])
    assert (served / "payload-1000-1.bin").stat().st_size == 1000
    assert not list(served.rglob("*.key"))
