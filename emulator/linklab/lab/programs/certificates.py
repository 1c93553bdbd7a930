"""Makes and checks certificates and keys in files.

Runs on different machines must send the same number of bytes. So all parts of a certificate have a
fixed size: RSA-2048 (an ECDSA signature varies by a few bytes), fixed serial numbers, names and
dates. Certificates are valid from 2000 to 2100, which includes a guest's virtual date.
"""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from linklab.core import whole_file

NOT_BEFORE = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
NOT_AFTER = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)

_CA_SERIAL = 1 << 62
_KEY_BITS = 2048

Files = tuple[Path, Path]
"""A certificate and its key, in PEM."""


def ensure(authority: Files, server: Files, names: tuple[str, ...], digest: bytes) -> None:
    """Makes an authority and a server certificate for exactly these names, unless the files have
    valid ones that belong together. `digest` is a hash that identifies the names. Raises OSError."""
    ca = _read_pair(*authority)
    if ca is None or not _is_sound_ca(ca[0]):
        ca = _make_ca()
        _write_pair(*authority, ca)
    made = _read_pair(*server)
    if made is None or not _is_sound_server(made[0], ca[0], names):
        _write_pair(*server, _make_server(ca, names, digest))


def _read_pair(cert_file: Path, key_file: Path) -> tuple[x509.Certificate, RSAPrivateKey] | None:
    """Reads a certificate and its key. Returns None unless both exist, are valid and belong
    together."""
    try:
        cert = x509.load_pem_x509_certificate(cert_file.read_bytes())
        key = load_pem_private_key(key_file.read_bytes(), password=None)
        key_mode = key_file.stat().st_mode & 0o777
    except (FileNotFoundError, ValueError, TypeError):
        return None
    if not isinstance(key, RSAPrivateKey) or key_mode != 0o600:
        return None
    return (cert, key) if cert.public_key() == key.public_key() else None


def _is_sound_ca(cert: x509.Certificate) -> bool:
    return cert.serial_number == _CA_SERIAL and cert.subject == _name(_CA_NAME) and _has_dates(cert)


def _is_sound_server(cert: x509.Certificate, ca: x509.Certificate, names: tuple[str, ...]) -> bool:
    try:
        cert.verify_directly_issued_by(ca)
        found = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (InvalidSignature, ValueError, TypeError, x509.ExtensionNotFound):
        return False
    return found == _alternative_names(names) and _has_dates(cert)


def _has_dates(cert: x509.Certificate) -> bool:
    return cert.not_valid_before_utc == NOT_BEFORE and cert.not_valid_after_utc == NOT_AFTER


_CA_NAME = "linklab laboratory authority"


def _make_ca() -> tuple[x509.Certificate, RSAPrivateKey]:
    key = _new_key()
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        _builder(_CA_NAME, _CA_SERIAL, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(key_cert_sign=True), critical=True)
        .add_extension(identifier, critical=False)
    )
    return _signed(builder, key), key


def _make_server(
    ca: tuple[x509.Certificate, RSAPrivateKey], names: tuple[str, ...], digest: bytes
) -> tuple[x509.Certificate, RSAPrivateKey]:
    ca_cert, ca_key = ca
    key = _new_key()
    issuer = ca_cert.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        _builder("linklab server", _serial(digest), key)
        .add_extension(_alternative_names(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer),
            critical=False,
        )
    )
    return _signed(builder, ca_key), key


def _new_key() -> RSAPrivateKey:
    return generate_private_key(public_exponent=65537, key_size=_KEY_BITS)


def _builder(common_name: str, serial: int, key: RSAPrivateKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(common_name))
        .issuer_name(_name(_CA_NAME))
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(NOT_BEFORE)
        .not_valid_after(NOT_AFTER)
    )


def _signed(builder: x509.CertificateBuilder, key: RSAPrivateKey) -> x509.Certificate:
    return builder.sign(key, SHA256())


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative_names(names: tuple[str, ...]) -> x509.SubjectAlternativeName:
    general: list[x509.GeneralName] = []
    for name in names:
        try:
            general.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            general.append(x509.DNSName(name))
    return x509.SubjectAlternativeName(general)


def _key_usage(*, key_cert_sign: bool = False, digital_signature: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=key_cert_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _serial(digest: bytes) -> int:
    """Returns a serial number of always 8 bytes, fixed for a set of names and different from the
    authority's."""
    return _CA_SERIAL | (int.from_bytes(digest[:7], "big") | 1)


def _write_pair(
    cert_file: Path, key_file: Path, pair: tuple[x509.Certificate, RSAPrivateKey]
) -> None:
    """Writes the key, then the certificate. If the process is killed in between, the next use
    notices."""
    cert, key = pair
    key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    whole_file.write(key_file, key_pem, 0o600)
    whole_file.write(cert_file, cert.public_bytes(Encoding.PEM), 0o644)
