"""H2O's configuration: server/h2o.conf filled in. Pure but for reading the templates."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

from linklab.core.paths import SERVER_CONFIGURATION, SERVER_EXCHANGE
from linklab.core.placeholders import filled


def configuration(
    address: tuple[str, int],
    certificate: Path,
    key: Path,
    directory: Path,
    *,
    access_log: Path,
    error_log: Path,
    user: str | None = None,
    uploads: Path | None = None,
    plain_port: int | None = None,
) -> str:
    """H2O's configuration for serving `directory` on `address`.

    `user` is whom it becomes when started as root, None where it is not. With `uploads` it also
    answers messages, and keeps there what is sent to it (server/exchange.rb). On `plain_port` it
    speaks HTTP without TLS too.
    """
    values = {
        "address": address[0],
        "port": address[1],
        "certificate": _quoted(certificate),
        "key": _quoted(key),
        "directory": _quoted(directory),
        "become": "" if user is None else f"user: {user}",
        "access_log": _quoted(access_log),
        "error_log": _quoted(error_log),
        "plain": "" if plain_port is None else _plain(address[0], plain_port),
        "exchange": "" if uploads is None else _exchange(directory, uploads),
    }
    return filled(SERVER_CONFIGURATION.read_text(), values)


def _plain(host: str, port: int) -> str:
    return f"    listen:\n      host: {host}\n      port: {port}\n"


def _exchange(directory: Path, uploads: Path) -> str:
    """The handler, which H2O reads with its configuration, before it gives up its rights."""
    places = f"DIRECTORY = {_in_ruby(directory)}\nUPLOADS = {_in_ruby(uploads)}\n"
    code = textwrap.indent(places + SERVER_EXCHANGE.read_text(), " " * 10)
    return f"        mruby.handler: |\n{code}"


def _in_ruby(path: Path) -> str:
    """A path as a Ruby string: # would begin an expression."""
    return _quoted(path).replace("#", "\\#")


def _quoted(path: Path) -> str:
    """A path as a YAML string, whatever characters it has."""
    return json.dumps(str(path), ensure_ascii=False)
