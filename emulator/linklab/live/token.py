"""Who may command a live lab: whoever knows its token.

The token of a lab of this account lies in a file that nobody else can read, where `linklab link`
finds it; for a lab of another account or machine it is given in the environment. It goes over plain
HTTP, so between machines through a tunnel, or a network whose members may know it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from linklab.core import locks, scratch, whole_file
from linklab.core.paths import in_cache
from linklab.live.address import is_loopback

ENVIRONMENT = "LINKLAB_LIVE_TOKEN"
"""The variable that names a token, to a lab and to those who command it."""

LEAST_LENGTH = 16
"""Of a token that a user thinks of: at 6 bits each out of reach of guessing over a network."""

_ANY = ("0.0.0.0", "::")
"""The addresses of a lab that listens on all of them."""


class TokenError(RuntimeError):
    """What the environment names is no token; the message says what is allowed."""


def chosen() -> str:
    """The token of a new lab: the environment's, or a random one of 192 bits.

    Raises TokenError where the environment's can be guessed or sent in no header.
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
    """Within the block a lab's token lies in this file, for this account's `linklab link`; None where
    it cannot. As long as the lab lives its file is locked: `linklab clean` removes what nobody
    has locked."""
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


def _forget(path: Path, token: str) -> None:
    """Removes a token, unless another lab has taken the address since."""
    with contextlib.suppress(OSError):
        if path.read_text().strip() == token:
            path.unlink()


def known(address: tuple[str, int]) -> str | None:
    """The token for a lab at an address: the environment's, or that of this account's lab there."""
    given = os.environ.get(ENVIRONMENT)
    if given is not None:
        return given
    host, port = address
    for one in (host, *_aliases(host)):
        with contextlib.suppress(OSError):
            return _file(one, port).read_text().strip()
    return None


def _aliases(host: str) -> tuple[str, ...]:
    """Other addresses under which a lab of this machine may have been started; none for those
    of other machines, which must not be told this one's tokens."""
    return ("127.0.0.1", "localhost", "::1", *_ANY) if is_loopback(host) else ()


def _file(host: str, port: int) -> Path:
    return in_cache("live") / f"{host.replace('/', '_')}-{port}{scratch.TOKEN}"
