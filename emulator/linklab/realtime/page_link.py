"""Leads the user to the lab's page, with the token that its buttons need.

The token stands after the `#` of the URL, which browsers send to nobody. It is printed to terminals
only, because logs are kept and read by others. A browser gets a private file that leads to the page,
because all users can see the arguments of a program.
"""

from __future__ import annotations

import contextlib
import html
import os
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from linklab.core.error_report import report_error
from linklab.core.scratch import scratch_prefix
from linklab.realtime.address import from_here, to_text


def url(address: tuple[str, int], token: str | None) -> str:
    """Returns the page's URL on this machine, with the token if there is one. Pure."""
    page = f"http://{to_text(from_here(address))}/"
    return page if token is None else f"{page}#token={quote(token, safe='')}"


@contextlib.contextmanager
def shown(address: tuple[str, int], token: str, *, opens: bool) -> Iterator[None]:
    """Prints the page's URL, and opens it in a browser if that is wanted, during the block."""
    if sys.stderr.isatty():
        print(f"page: {url(address, token)}", file=sys.stderr)
    else:
        print(f"page: {url(address, None)} (its buttons need the token)", file=sys.stderr)
    with contextlib.ExitStack() as stack:
        if opens:
            directory = stack.enter_context(
                tempfile.TemporaryDirectory(prefix=scratch_prefix("page"))
            )
            _open(Path(directory) / "open.html", url(address, token))
        yield


def _open(file: Path, to: str) -> None:
    text = (
        "<!doctype html><meta charset=utf-8><title>linklab</title>"
        f'<meta http-equiv=refresh content="0;url={html.escape(to)}">'
    )
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    if not webbrowser.open(file.as_uri()):
        report_error("no browser can be opened here; the page's address is above")
