"""Writes a made scenario and its traces to files: all of them, or none."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path

import linklab
from linklab.core import whole_file
from linklab.core.printable import printable
from linklab.core.scratch import scratch_prefix
from linklab.field.making import Made, MakingError
from linklab.scenario import Scenario, load, parse, to_yaml
from linklab.traces import plain
from linklab.traces.trace import TraceSample


def write(made: Made, file: Path, sources: Sequence[str], *, overwrite: bool = False) -> Scenario:
    """Writes the scenario to `file` and its traces beside it, and reads the scenario back.

    After an error the old files are unchanged. Raises MakingError if a file exists already,
    ScenarioError if the scenario cannot be read back, OSError if a file cannot be written.
    """
    texts = {
        **{file.parent / name: _csv(samples, sources) for name, samples in made.traces.items()},
        file: f"# {_origin(sources)}\n{to_yaml(made.scenario)}",
    }
    there = [path for path in texts if path.exists()]
    if there and not overwrite:
        raise MakingError(f"{there[0]}: exists; allowed: another name, or --force")
    for path in there:
        if path.is_dir():
            raise MakingError(f"{path}: is a directory; allowed: another name")
    with tempfile.TemporaryDirectory(prefix=scratch_prefix("field")) as scratch:
        for path, text in texts.items():
            Path(scratch, path.name).write_text(text, encoding="utf-8")
        parse(texts[file], str(file), path=Path(scratch, file.name), stem=file.stem)
    with contextlib.ExitStack() as replaced:  # At its end, the scenario after its traces.
        for path, text in reversed(texts.items()):
            replaced.enter_context(whole_file.replacing(path)).write(text.encode())
    return load(file)


def _csv(samples: Sequence[TraceSample], sources: Sequence[str]) -> str:
    text = io.StringIO()
    columns = ["rtt"] if any(one.rtt_s is not None for one in samples) else []
    plain.write(text, samples, columns, [_origin(sources)])
    return text.getvalue()


def _origin(sources: Sequence[str]) -> str:
    """Returns the sources in one line, whatever characters their names have."""
    names = printable(", ".join(sources), keep="")
    return f"imported from: {names}, by linklab {linklab.__version__}"
