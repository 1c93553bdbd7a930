"""A server of a user's, outside: files with ranges, and what is sent to it counted. Nothing of linklab.

usage: an_origin.py PORT DIRECTORY
"""

import asyncio
import hashlib
import logging
import sys

from tornado.web import Application, RequestHandler, StaticFileHandler, stream_request_body

MOST_BYTES = 1 << 30


@stream_request_body
class _Sum(RequestHandler):
    """Returns the number of bytes of an upload, and their SHA-256."""

    def prepare(self) -> None:
        self.request.connection.set_max_body_size(MOST_BYTES)  # type: ignore[union-attr]
        self._size = 0
        self._sum = hashlib.sha256()

    def data_received(self, chunk: bytes) -> None:
        self._size += len(chunk)
        self._sum.update(chunk)

    def post(self) -> None:
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
