"""Finds the traces that ship with linklab, and makes them again from their recipes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

from linklab.core import whole_file
from linklab.schema.named_files import NamedFiles
from linklab.traces import plain
from linklab.traces.generator import generate
from linklab.traces.recipes import SHIPPED, TRACES, comments
from linklab.traces.trace import TraceError

_FILES: Final = NamedFiles("trace", (".csv",), TraceError)


def names(directory: Path = TRACES) -> list[str]:
    """Lists the names of the traces in `directory`, sorted."""
    return _FILES.names(directory)


def find(name_or_path: str, base: Path | None = None, directory: Path = TRACES) -> Path:
    """Returns the file of a trace, by name in `directory` or by path relative to `base`.

    Raises TraceError if there is no such file.
    """
    return _FILES.find(name_or_path, directory, base)


def make_all(directory: Path = TRACES) -> list[Path]:
    """Writes all shipped traces into `directory`. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for shipped in SHIPPED:
        file = directory / f"{shipped.name}.csv"
        samples = list(generate(shipped.recipe))
        text = io.StringIO()
        plain.write(text, samples, ["up"], comments(shipped, samples))
        whole_file.write(file, text.getvalue().encode())
        files.append(file)
    return files
