"""Downloads a file over one link, hides random losses from the sender, and fetches what was lost over
another link (super-aggregation, mirroring-loss-fetching). It is a separate program that needs root:

    python -m linklab.lab.super_aggregation.loss_fetching URL ADDRESS DEVICE OUTPUT SHA256 [all]

ADDRESS is this host's on the link of the TCP connection, DEVICE the other link's. The URL begins with
http://, because bytes that TLS encrypts for one connection are useless on another. With `all` the
other link also helps in the ways of `other_way.py`: super-aggregation as a whole.
"""

from __future__ import annotations

import hashlib
import os
import select
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from linklab.lab.super_aggregation import http_ranges
from linklab.lab.super_aggregation.http_ranges import AnswerError
from linklab.lab.super_aggregation.loss_hiding import Receiver
from linklab.lab.super_aggregation.mirror import Mirror
from linklab.lab.super_aggregation.raw_tcp import RawConnection

if TYPE_CHECKING:
    from linklab.lab.super_aggregation.other_way import OtherWay

_HTTP_PORT: Final = 80

GIVE_UP_S: Final = 300.0
"""The download fails after this time without a byte, as multilink's does."""


_ALL: Final = "all"


def command(
    url: str, address: str, device: str, output: str, sha256: str, *, helps: bool = False
) -> list[str]:
    """Returns the command of this program. Python neither looks for compiled modules nor writes
    them, so that every start behaves the same."""
    package = str(Path(__file__).parents[3])
    python = [sys.executable, "-S", "-P", "-B", "-X", "pycache_prefix=/dev/null"]
    words = [
        "-m",
        "linklab.lab.super_aggregation.loss_fetching",
        url,
        address,
        device,
        output,
        sha256,
        *([_ALL] if helps else []),
    ]
    return ["env", f"PYTHONPATH={package}", *python, *words]


class _Download:
    """Downloads a file. Each byte comes over one of two links."""

    def __init__(self, url: str, address: str, device: str, output: int, *, helps: bool) -> None:
        host, _, path = url.removeprefix("http://").partition("/")
        server = (host, _HTTP_PORT)
        request = http_ranges.question(host, f"/{path}", {"Connection": "close"})
        self._output = output
        self._receiver = Receiver()
        self._early: list[tuple[int, bytes]] = []
        self._content_at: int | None = None
        self._since_s = time.monotonic()
        self._mirror = Mirror(device, address, server, f"/{path}", self._since_s)
        self._stream = RawConnection(
            address,
            server,
            request,
            self._arrived,
            lambda: self._receiver.acknowledged,
            lambda: self._receiver.beyond,
            _other_way(device, address, host) if helps else None,
        )

    def run(self) -> None:
        """Downloads the file. Raises OSError, AnswerError."""
        while not self._receiver.is_whole:
            now_s = time.monotonic()
            dues = (self._stream.due_s, self._mirror.due_s, self._since_s + GIVE_UP_S)
            wait_s = max(0.0, min(one for one in dues if one is not None) - now_s)
            reads = [self._stream.fileno(), *self._mirror.reads]
            select.select(reads, self._mirror.writes, [], wait_s)
            now_s = time.monotonic()
            self._stream.look(now_s)
            for begin, some in self._mirror.look(now_s):
                self._fetched(begin, some, now_s)
            if now_s > self._since_s + GIVE_UP_S:
                raise TimeoutError(f"nothing came for {GIVE_UP_S:.0f} s")
        self._stream.end()
        self._mirror.close()

    def _arrived(self, position: int, content: bytes, trip_s: float, now_s: float) -> bool:
        self._since_s = now_s
        at_once, lost = self._receiver.arrived(
            position,
            position + len(content),
            trip_s,
            keeps_up=self._mirror.keeps_up(now_s),
        )
        if self._content_at is None:
            self._begin(position, content)
        else:
            os.pwrite(self._output, content, position - self._content_at)
            for begin, end in lost:
                self._mirror.fetch(begin - self._content_at, end - self._content_at, now_s)
        return at_once

    def _begin(self, position: int, content: bytes) -> None:
        """Collects content until the answer's head is complete. Losses before that are not hidden."""
        self._early.append((position, content))
        begun = b""
        for at, some in sorted(self._early):
            if at > len(begun):
                break
            begun += some[len(begun) - at :]
        answer = http_ranges.head(begun)
        if answer is None:
            return
        file = http_ranges.whole_file(answer)
        self._mirror.of(file)
        self._content_at = answer.bytes
        self._receiver.end = answer.bytes + file.size_bytes
        for at, some in self._early:
            os.pwrite(self._output, some[max(0, answer.bytes - at) :], max(0, at - answer.bytes))
        self._early.clear()

    def _fetched(self, begin: int, content: bytes, now_s: float) -> None:
        assert self._content_at is not None
        self._since_s = now_s
        os.pwrite(self._output, content, begin)
        begin += self._content_at
        self._receiver.fetched(begin, begin + len(content))


def _other_way(device: str, address: str, host: str) -> OtherWay:
    from linklab.lab.super_aggregation.other_way import OtherWay  # Not needed without `all`.

    return OtherWay(device, address, host)


def main(arguments: list[str]) -> int:
    """Downloads and checks the file. Returns 0, or prints one line of error and returns 1."""
    url, address, device, output, sha256, *more = arguments
    try:
        with Path(output).open("w+b") as file:
            _Download(url, address, device, file.fileno(), helps=more == [_ALL]).run()
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != sha256:
            raise AnswerError(f"the file's SHA-256 is {found} instead of {sha256}")
    except (OSError, AnswerError) as error:
        print(f"loss-fetching: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
