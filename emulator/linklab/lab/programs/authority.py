"""Makes the certificate authority of a machine's labs at first use, and server certificates.

Downloads are encrypted and verified as outside the lab, so the lab has an authority of its own. A
client trusts it only if it is given the authority's file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from linklab.core import whole_file
from linklab.core.errors import LinklabError
from linklab.core.locks import locked
from linklab.lab.network.topology import SERVER_ADDRESS, SERVER_NAME

SERVER_NAMES = (SERVER_NAME, "localhost", SERVER_ADDRESS)
"""The names of the lab's server: its name, its address, and the loopback device for tests."""


class AuthorityError(LinklabError, RuntimeError):
    """Certificates cannot be made or kept. The message says why."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Holds files in PEM: the authority's certificate for clients, and the server's certificate and
    key."""

    ca_cert: Path
    cert: Path
    key: Path


def ensure(directory: Path, names: Iterable[str] = SERVER_NAMES) -> Authority:
    """Returns the authority in `directory` and a server certificate for exactly `names`.

    Names are DNS names or IP addresses. Missing, damaged or mismatched files are made anew. A valid
    authority is kept, so that clients that trust it go on. The directory must be used for nothing
    else. It gets mode 0700, keys 0600. Raises AuthorityError.
    """
    wanted = tuple(sorted(set(names)))
    if not wanted:
        raise AuthorityError("a certificate needs at least one name")
    # Each set of names has its own files. Two labs with different names do not replace each other's
    # certificate, nor share one whose size depends on the order of labs.
    digest = hashlib.sha256("\0".join(wanted).encode()).digest()
    stem = f"server-{digest.hex()[:16]}"
    made = Authority(
        ca_cert=directory / "ca.pem",
        cert=directory / f"{stem}.pem",
        key=directory / f"{stem}.key",
    )
    ca_key, checked = directory / "ca.key", directory / f".{stem}.checked"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        with locked(directory / ".lock"):
            if not (checked.is_file() and checked.read_bytes() == _state(made, ca_key)):
                # cryptography is slow to load, and the guest does not need it.
                from linklab.lab.programs import certificates

                certificates.ensure((made.ca_cert, ca_key), (made.cert, made.key), wanted, digest)
                whole_file.write(checked, _state(made, ca_key), 0o600)
    except OSError as error:
        raise AuthorityError(
            f"certificates cannot be kept in {directory}: {error.strerror or error}"
        ) from error
    return made


def _state(made: Authority, ca_key: Path) -> bytes:
    """Changes with the content and the rights of the files, and with the rules that they follow.

    Files in the state of the last check need no other. A check takes ten times as long.
    """
    rules = Path(__file__).with_name("certificates.py")
    hashed = hashlib.sha256()
    for file in (rules, made.ca_cert, ca_key, made.cert, made.key):
        if not file.is_file():
            return b"incomplete"
        content = file.read_bytes()
        hashed.update(b"%o %d " % (file.stat().st_mode if file != rules else 0, len(content)))
        hashed.update(content)
    return hashed.hexdigest().encode()
