"""Makes the certificate authority of a machine's labs at first use, and server certificates.

Downloads are encrypted and verified as outside the lab, so the lab has an authority of its own. A
client trusts it only if it is given the authority's file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from linklab.core.locks import locked
from linklab.lab.network.topology import SERVER_ADDRESS, SERVER_NAME

SERVER_NAMES = (SERVER_NAME, "localhost", SERVER_ADDRESS)
"""The names of the lab's server: its name, its address, and the loopback device for tests."""


class AuthorityError(RuntimeError):
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
    # cryptography is slow to load, and the guest does not need it.
    from linklab.lab.programs import certificates

    wanted = tuple(sorted(set(names)))
    if not wanted:
        raise AuthorityError("a certificate needs at least one name")
    # Each set of names has its own files. Two labs with different names do not replace each other's
    # certificate, nor share one whose size depends on the order of labs.
    stem = f"server-{certificates.digest(wanted).hex()[:16]}"
    made = Authority(
        ca_cert=directory / "ca.pem",
        cert=directory / f"{stem}.pem",
        key=directory / f"{stem}.key",
    )
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        with locked(directory / ".lock"):
            certificates.ensure((made.ca_cert, directory / "ca.key"), (made.cert, made.key), wanted)
    except OSError as error:
        raise AuthorityError(
            f"certificates cannot be kept in {directory}: {error.strerror or error}"
        ) from error
    return made
