"""Proves that a program and a lab know the same token, without telling it.

Another program may listen at a lab's address before it starts or once it has ended. So linklab's own
programs send no token. They ask for a challenge, and sign their command with challenge and token. The
lab's answer is signed likewise. Nobody can use a signed command twice, because a challenge is good for
one command. Browsers and users' programs send the token itself.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections import OrderedDict
from typing import Final

HEADER: Final = "X-Linklab-Proof"
"""The header of a command, `CHALLENGE:SIGNATURE`, and of its answer, `SIGNATURE`."""

PATH: Final = "/challenge"
"""Where a lab gives challenges."""

ANSWER: Final = "answer"
"""What is signed of an answer, in place of a path."""

_MOST: Final = 1024
"""The most challenges at a time. Older ones are forgotten."""


def signature(token: str, about: str, challenge: str, body: bytes) -> str:
    """Signs a body that is sent by a method to a path, such as `PATCH /lab`, or the `ANSWER`. Pure."""
    said = f"{about}\n{challenge}\n".encode() + body
    return hmac.new(token.encode(), said, "sha256").hexdigest()


def is_signed(given: str, token: str, about: str, challenge: str, body: bytes) -> bool:
    """Tells whether a signature is right, in a time that does not tell how much of it. Pure."""
    wanted = signature(token, about, challenge, body)
    return hmac.compare_digest(given.encode(), wanted.encode())


class Challenges:
    """The challenges of a server that no command has used yet. Threads may share it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._given: OrderedDict[str, bool | None] = OrderedDict()

    def new(self) -> str:
        made = secrets.token_hex(16)
        with self._guard:
            self._given[made] = None
            if len(self._given) > _MOST:
                self._given.popitem(last=False)
        return made

    def use(self, challenge: str) -> bool:
        """Tells whether a challenge is good, which it is once."""
        with self._guard:
            return self._given.pop(challenge, False) is None
