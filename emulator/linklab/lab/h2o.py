"""H2O's configuration: server/h2o.conf filled in. Pure but for reading the template."""

from __future__ import annotations

import json
from pathlib import Path

from linklab.core.paths import SERVER_CONFIGURATION
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
) -> str:
    """H2O's configuration for serving `directory` on `address`.

    `user` is whom it becomes when started as root, None where it is not.
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
    }
    return filled(SERVER_CONFIGURATION.read_text(), values)


def _quoted(path: Path) -> str:
    """A path as a YAML string, whatever characters it has."""
    return json.dumps(str(path), ensure_ascii=False)
