"""The traces that ship with linklab: found by name, and made again from their recipes."""

from __future__ import annotations

import difflib
import io
from pathlib import Path
from typing import Final

from linklab.core.paths import PROFILES
from linklab.traces import plain
from linklab.traces.generator import generate
from linklab.traces.recipes import SHIPPED, Shipped, comments
from linklab.traces.trace import TraceError

TRACES: Final = PROFILES / "traces"


def names(directory: Path = TRACES) -> list[str]:
    """The names of the traces in `directory`, sorted."""
    return sorted(file.stem for file in directory.glob("*.csv"))


def find(name_or_path: str, base: Path | None = None, directory: Path = TRACES) -> Path:
    """The file of a trace: by name in `directory`, or a path, relative to `base`.

    What has a slash or ends in .csv is a path. Raises TraceError where there is no such file.
    """
    if "/" in name_or_path or name_or_path.endswith(".csv"):
        file = (base or Path()) / name_or_path
        if not file.is_file():
            raise TraceError(f"{file}: there is no such trace; allowed: the path of a CSV file")
        return file
    known = names(directory)
    if name_or_path in known:
        return directory / f"{name_or_path}.csv"
    close = difflib.get_close_matches(name_or_path, known, n=1)
    guess = f" (did you mean {close[0]!r}?)" if close else ""
    raise TraceError(
        f"no trace is called {name_or_path!r}{guess}; allowed: {', '.join(known) or 'none'}, "
        "or a path that ends in .csv"
    )


def content(shipped: Shipped) -> bytes:
    """What the file of a shipped trace holds, made from its recipe."""
    text = io.StringIO()
    plain.write(text, generate(shipped.recipe), ["up"], comments(shipped))
    return text.getvalue().encode()


def make_all(directory: Path = TRACES) -> list[Path]:
    """Writes all shipped traces into `directory`; raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for shipped in SHIPPED:
        file = directory / f"{shipped.name}.csv"
        file.write_bytes(content(shipped))
        files.append(file)
    return files
