"""Keeps the tokens of live labs; anyone who knows a lab's token may command it.

The token of this account's lab is in a private file, where `linklab link` finds it. For a lab of
another account or machine the user sets an environment variable. The token is sent over plain HTTP.
So between machines it needs a tunnel, or a network whose members may know it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from linklab.core import locks, scratch, whole_file
from linklab.core.errors import LinklabError
from linklab.core.paths import in_cache
from linklab.realtime.address import is_loopback

ENVIRONMENT = "LINKLAB_LIVE_TOKEN"
"""The environment variable with the token, for a lab and for its commands."""

LEAST_LENGTH = 16
"""The least length of a user's token. With 6 bits a character nobody can guess it over a network."""

_ANY = ("0.0.0.0", "::")
"""The addresses of a lab that listens on all interfaces."""


class TokenError(LinklabError, RuntimeError):
    """The environment has an invalid token. The message says what is allowed."""


def chosen() -> str:
    """Returns the token for a new lab: the environment's, or a random one of 192 bits.

    Raises TokenError if the environment's is too short or cannot be sent in a header.
    """
    given = os.environ.get(ENVIRONMENT)
    if given is None:
        return secrets.token_urlsafe(24)
    if len(given) < LEAST_LENGTH or not all("!" <= letter <= "~" for letter in given):
        raise TokenError(
            f"{ENVIRONMENT} is no token; allowed: at least {LEAST_LENGTH} letters, digits and signs"
        )
    return given


@contextlib.contextmanager
def kept(address: tuple[str, int], token: str) -> Iterator[Path | None]:
    """Keeps a lab's token in a file during the block, for this account's `linklab link`.

    Yields the file; None if it cannot be written. The file is locked, because `linklab clean`
    removes unlocked token files.
    """
    path = _file(*address)
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locks.locked_directory(path.parent), whole_file.replacing(path, 0o600) as file:
                file.write(f"{token}\n".encode())
                held = os.dup(file.fileno())
                stack.callback(os.close, held)
                locks.take(held)
        except OSError:
            yield None
            return
        stack.callback(_forget, path, token)
        yield path


def whereabouts(path: Path | None, token: str) -> str:
    """Says where a server's token is, if `kept` has written it to a file or not. A token that the
    user chose is not printed."""
    if path is not None:
        return str(path)
    is_chosen = os.environ.get(ENVIRONMENT) == token
    return f"that of {ENVIRONMENT}" if is_chosen else f"{ENVIRONMENT}={token}"


def _forget(path: Path, token: str) -> None:
    """Removes a token file, unless another lab has taken the address since."""
    with contextlib.suppress(OSError):
        if path.read_text().strip() == token:
            path.unlink()


def known(address: tuple[str, int]) -> str | None:
    """Returns the token for a lab at an address: the environment's, else that of the token file."""
    given = os.environ.get(ENVIRONMENT)
    if given is not None:
        return given
    host, port = address
    for one in (host, *_aliases(host)):
        with contextlib.suppress(OSError):
            return _file(one, port).read_text().strip()
    return None


def _aliases(host: str) -> tuple[str, ...]:
    """Returns other addresses that a lab of this machine may have been started with.

    There are none for other machines, which must not receive this machine's tokens.
    """
    return ("127.0.0.1", "localhost", "::1", *_ANY) if is_loopback(host) else ()


def _file(host: str, port: int) -> Path:
    return in_cache("live") / f"{host.replace('/', '_')}-{port}{scratch.TOKEN}"
