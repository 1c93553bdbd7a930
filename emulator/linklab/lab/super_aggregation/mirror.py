"""Fetches parts of a file over another link (super-aggregation, mirroring-loss-fetching).

It uses one persistent HTTP/1.1 connection, and requests each part as soon as it is missed. If the
connection breaks, it opens a new one and repeats the unanswered requests. It alternates between the
link that lost the parts and the other link, because the other may be gone for good.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Final

from linklab.lab.super_aggregation import http_ranges
from linklab.lab.super_aggregation.http_ranges import File, RangeAnswers
from linklab.lab.super_aggregation.loss_hiding import Pace

AGAIN_S: Final = 1.0
"""The wait after a failure before the next connection."""

_SILENCE_S: Final = 10.0
"""A connection is broken after this time without an expected byte."""


class Mirror:
    """The connection to a server by `device`, the other link's, or from `address`, this host's on
    the link that lost the parts. Times are of `time.monotonic`."""

    def __init__(
        self, device: str, address: str, server: tuple[str, int], path: str, now_s: float
    ) -> None:
        self._pace = Pace()
        self._device, self._address, self._server, self._path = device, address, server, path
        self._is_own = False
        self._file: File | None = None
        self._parts: RangeAnswers | None = None
        self._socket: socket.socket | None = None
        self._is_open = False
        self._since_s = self._heard_s = now_s
        self._connect(now_s)

    @property
    def reads(self) -> list[int]:
        return [self._socket.fileno()] if self._socket is not None and self._is_open else []

    @property
    def writes(self) -> list[int]:
        return [self._socket.fileno()] if self._socket is not None and not self._is_open else []

    @property
    def due_s(self) -> float | None:
        """The time of the next action without any event, None if there is none."""
        if self._socket is None:
            return self._since_s + AGAIN_S
        return None if self._is_open and not self._has_unanswered else self._heard_s + _SILENCE_S

    def keeps_up(self, now_s: float) -> bool:
        """Tells whether more may be requested, only over the other link."""
        return self._is_open and not self._is_own and self._pace.keeps_up(now_s)

    def of(self, file: File) -> None:
        """Sets the file of the parts, before the first one."""
        self._file, self._parts = file, RangeAnswers(file)

    def fetch(self, begin: int, end: int, now_s: float) -> None:
        """Requests the bytes from `begin` to before `end` of the file."""
        assert self._parts is not None
        if not self._has_unanswered:
            self._heard_s = now_s
        self._parts.asked(begin, end)
        if self._is_open:
            self._ask(begin, end, now_s)

    def look(self, now_s: float) -> Iterator[tuple[int, bytes]]:
        """Does what can be done now. Yields received content with its position. Raises AnswerError."""
        if self._socket is None:
            if now_s >= self._since_s + AGAIN_S:
                self._connect(now_s)
            return
        if not self._is_open:
            self._opened(now_s)
        try:
            content = self._socket.recv(1 << 16) if self._is_open else None
        except BlockingIOError:
            content = None
        except OSError:
            content = b""
        if content is None:
            if self.due_s is not None and now_s >= self.due_s:
                self._broke(now_s)
            return
        if not content or self._parts is None:
            self._broke(now_s)
            return
        self._heard_s = now_s
        for begin, some, is_end in self._parts.read(content):
            if is_end:
                self._pace.answered(now_s)
            yield begin, some
        if self._is_own and not self._has_unanswered:
            self._broke(now_s)

    @property
    def _has_unanswered(self) -> bool:
        return self._parts is not None and bool(self._parts.missing)

    def _connect(self, now_s: float) -> None:
        self._since_s = self._heard_s = now_s
        self._socket = socket.socket()
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if self._is_own:
                self._socket.bind((self._address, 0))
            else:
                device = self._device.encode()
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
            self._socket.connect(self._server)
        except BlockingIOError:
            pass
        except OSError:
            self._broke(now_s)

    def _opened(self, now_s: float) -> None:
        assert self._socket is not None
        if self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._broke(now_s)
            return
        try:
            self._socket.getpeername()
        except OSError:  # It is still connecting.
            return
        self._is_open, self._heard_s = True, now_s
        self._pace.connected(now_s - self._since_s)
        if self._parts is not None and self._file is not None:
            owed, self._parts = self._parts.missing, RangeAnswers(self._file)
            for begin, end in owed:
                self.fetch(begin, end, now_s)

    def _ask(self, begin: int, end: int, now_s: float) -> None:
        assert self._socket is not None
        assert self._file is not None
        words = http_ranges.part(self._server[0], self._path, begin, end, self._file)
        try:
            is_sent = self._socket.send(words) == len(words)
        except OSError:
            is_sent = False
        if is_sent:
            self._pace.asked(now_s)
        else:
            self._broke(now_s)

    def _broke(self, now_s: float) -> None:
        self.close()
        self._is_open, self._since_s = False, now_s
        self._is_own = self._has_unanswered and not self._is_own

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
