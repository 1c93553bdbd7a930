"""Serves HTTP by threads, and bounds what many, slow or silent clients can take."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MOST_CONNECTIONS = 64
"""The most connections at a time; each has a thread. Further ones are closed at once."""

PATIENCE_S = 10.0
"""The time for a whole request and its answer, and for a client to take what a stream sends."""


class BoundedServer(ThreadingHTTPServer):
    """Serves at most `MOST_CONNECTIONS` clients at a time, each for at most `PATIENCE_S`.

    A stream may last longer (`keep`).
    """

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self._deadlines: dict[Any, float] = {}
        self._guard = threading.Lock()
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self.closing = threading.Event()
        super().__init__(address, handler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Takes a client if there is a place for it."""
        if not self._places.acquire(blocking=False):
            return False
        with self._guard:
            self._deadlines[request] = time.monotonic() + PATIENCE_S
        return True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves a client, and gives its place to another one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.keep(request)
            self._places.release()

    def keep(self, request: Any) -> None:
        """Lets a client stay without a deadline."""
        with self._guard:
            self._deadlines.pop(request, None)

    def service_actions(self) -> None:
        """Ends clients that have had their time. Their threads then see the end of the connection."""
        now_s = time.monotonic()
        with self._guard:
            late = [one for one, deadline in self._deadlines.items() if now_s > deadline]
        for one in late:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a client that closes its connection early."""
