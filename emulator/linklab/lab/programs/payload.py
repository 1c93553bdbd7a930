"""Generates the file that is downloaded from a seed. It is never kept in the repository.

The bytes are the keystream of AES-128 in counter mode (NIST SP 800-38A 6.5) from counter
zero, with the first 16 bytes of SHA-256("linklab payload SEED") as the key. They are random noise as
in thesis 3.1.4, which cannot be compressed. These commands make the same bytes:

    key=$(printf 'linklab payload 1' | sha256sum | cut -c1-32)
    head -c 250000000 /dev/zero |
        openssl enc -aes-128-ctr -K $key -iv 00000000000000000000000000000000 | sha256sum
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from linklab.core import units, whole_file
from linklab.core.errors import LinklabError
from linklab.core.locks import locked
from linklab.scenario import Payload

MTIME_S = 946_684_800
"""2000-01-01T00:00:00Z. H2O derives the ETag from modification time and size, and the same download
must have the same ETag on every machine."""

_CHUNK_BYTES = 1 << 20


class PayloadError(LinklabError, RuntimeError):
    """The payload cannot be made: no space, no permission, or another hash than the scenario's."""


def ensure(payload: Payload, directory: Path) -> Path:
    """Returns the payload's file in `directory`, which is made if it is missing, truncated or
    altered.

    The directory is only for payloads, so that a server may serve it. Everyone can read the file.
    `NAME.sha256` beside it has the hash in the format of sha256sum. A cached file is valid if its
    size, modification time and recorded hash are unchanged. Its bytes are hashed only when they are
    generated. Raises PayloadError.
    """
    path = directory / f"payload-{payload.size_bytes}-{payload.seed}.bin"
    if _is_whole(path, payload):
        return path
    try:
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o755)
        with locked(directory / f".{path.name}.lock"):
            if not _is_whole(path, payload):
                _make(path, payload)
    except OSError as error:
        raise PayloadError(_explain(error, payload, directory)) from error
    return path


def sha256_of(path: Path) -> str:
    """Returns the SHA-256 of a payload that `ensure` recorded. Raises FileNotFoundError."""
    return _sidecar(path).read_text(encoding="ascii").split(maxsplit=1)[0]


def chunks(payload: Payload) -> Iterator[bytes]:
    """Yields the payload's bytes in pieces of at most 1 MiB."""
    # Imported here because cryptography is slow to load and the guest does not need it.
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import CTR

    key = hashlib.sha256(f"linklab payload {payload.seed}".encode()).digest()[:16]
    keystream = Cipher(AES(key), CTR(bytes(16))).encryptor()
    zeros = bytes(_CHUNK_BYTES)
    for offset in range(0, payload.size_bytes, _CHUNK_BYTES):
        yield keystream.update(zeros[: payload.size_bytes - offset])


def _sidecar(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _is_whole(path: Path, payload: Payload) -> bool:
    try:
        status = path.stat()
        recorded = sha256_of(path)
    except (OSError, ValueError, IndexError):
        return False
    return (
        status.st_size == payload.size_bytes
        and status.st_mtime_ns == MTIME_S * 10**9
        and len(recorded) == 64
        and payload.sha256 in (None, recorded)
    )


def _make(path: Path, payload: Payload) -> None:
    """Generates the file. Its checksum is written before the file appears."""
    with whole_file.replacing(path, 0o644) as file:
        sha256 = _write(file, payload)
        if payload.sha256 not in (None, sha256):
            raise PayloadError(
                f"payload of {units.format_size(payload.size_bytes)} from seed {payload.seed}: "
                f"its SHA-256 is {sha256}, but the scenario says {payload.sha256}"
            )
        file.flush()
        os.utime(file.fileno(), (MTIME_S, MTIME_S))
        whole_file.write(_sidecar(path), f"{sha256}  {path.name}\n", 0o644)


def _write(file: IO[bytes], payload: Payload) -> str:
    """Writes the bytes and returns their SHA-256."""
    digest = hashlib.sha256()
    for chunk in chunks(payload):
        digest.update(chunk)
        file.write(chunk)
    return digest.hexdigest()


def _explain(error: OSError, payload: Payload, directory: Path) -> str:
    size = units.format_size(payload.size_bytes)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        free = shutil.disk_usage(directory).free
        return (
            f"no room for the payload of {size} in {directory}: {os.strerror(error.errno)}, "
            f"{free / 1e6:.1f} MB free; make room or set LINKLAB_CACHE to a larger place"
        )
    return f"the payload of {size} cannot be written to {directory}: {error.strerror or error}"
