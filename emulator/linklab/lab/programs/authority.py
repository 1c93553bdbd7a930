"""The certificate authority of a machine's labs, made at first use, and server certificates.

Downloads are encrypted and verified as outside the lab, so the lab has an authority of its
own; nothing trusts it unless told to by its file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from linklab.core.locks import locked
from linklab.lab.network.topology import SERVER_ADDRESS, SERVER_NAME

SERVER_NAMES = (SERVER_NAME, "localhost", SERVER_ADDRESS)
"""What the lab's server is called: its name, its address, and the loopback for tests."""


class AuthorityError(RuntimeError):
    """Certificates cannot be made or kept; the message says why."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Files in PEM: the authority's certificate for clients, the server's and its key."""

    ca_cert: Path
    cert: Path
    key: Path


def ensure(directory: Path, names: Iterable[str] = SERVER_NAMES) -> Authority:
    """The authority in `directory` and a server certificate for exactly `names`.

    Names are DNS names or IP addresses. What is missing, damaged or does not belong
    together is made anew; the authority itself stays as long as it is sound, so that
    whoever trusts it may go on. The directory, which is for it alone, becomes 0700, keys 0600. Raises AuthorityError.
    """
    # cryptography is slow to load; the guest needs it not.
    from linklab.lab.programs import certificates

    wanted = tuple(sorted(set(names)))
    if not wanted:
        raise AuthorityError("a certificate needs at least one name")
    # Every set of names has files of its own: two labs with different names neither
    # replace each other's nor share one whose size depends on who came first.
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
