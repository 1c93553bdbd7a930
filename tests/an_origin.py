"""A server of a user's, outside: files with ranges, and what is sent to it counted. Nothing of linklab.

usage: an_origin.py PORT DIRECTORY
"""

import asyncio
import hashlib
import logging
import sys
from typing import ClassVar

from tornado.web import Application, RequestHandler, StaticFileHandler, stream_request_body

MOST_BYTES = 1 << 30


@stream_request_body
class _Sum(RequestHandler):
    """Counts uploads. POST /sum?NAME returns the number of bytes received and their SHA-256. GET
    /sum?NAME returns the number received so far."""

    come: ClassVar[dict[str, int]] = {}

    def prepare(self) -> None:
        self.request.connection.set_max_body_size(MOST_BYTES)  # type: ignore[union-attr]
        self._size = 0
        self._sum = hashlib.sha256()

    def data_received(self, chunk: bytes) -> None:
        self._size += len(chunk)
        self._sum.update(chunk)
        self.come[self.request.query] = self._size

    def get(self) -> None:
        self.write(str(self.come.get(self.request.query, 0)))

    def post(self) -> None:
        self.come.pop(self.request.query, None)
        self.write({"bytes": self._size, "sha256": self._sum.hexdigest()})


async def serve(port: int, directory: str) -> None:
    """Serves until it is ended."""
    logging.getLogger("tornado.access").disabled = True
    Application([("/sum", _Sum), ("/(.*)", StaticFileHandler, {"path": directory})]).listen(
        port, "127.0.0.1", max_buffer_size=MOST_BYTES
    )
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2]))
