"""A made scenario and its traces as files, all of them or none."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import linklab
from linklab.core import whole_file
from linklab.field.making import Made, MakingError
from linklab.scenario import Scenario, ScenarioError, load, to_yaml
from linklab.traces import plain
from linklab.traces.trace import Sample


def write(made: Made, file: Path, sources: Sequence[str], *, overwrite: bool = False) -> Scenario:
    """Writes the scenario to `file` and its traces beside it, and reads it back. Raises MakingError
    where one of them is there already, OSError where one cannot be written; nothing is left then."""
    texts = {
        **{file.parent / name: _csv(samples, sources) for name, samples in made.traces.items()},
        file: _yaml(made, sources),
    }
    there = [path for path in texts if path.exists()]
    if there and not overwrite:
        raise MakingError(f"{there[0]}: exists; allowed: another name, or --force")
    written: list[Path] = []
    try:
        for path, text in texts.items():
            whole_file.write(path, text)
            written.append(path)
        return load(file)
    except (OSError, ScenarioError):
        for path in written:
            path.unlink(missing_ok=True)
        raise


def _csv(samples: Sequence[Sample], sources: Sequence[str]) -> str:
    text = io.StringIO()
    columns = ["rtt"] if any(one.rtt_s is not None for one in samples) else []
    plain.write(text, samples, columns, [_origin(sources)])
    return text.getvalue()


def _yaml(made: Made, sources: Sequence[str]) -> str:
    return f"# {_origin(sources)}\n{to_yaml(made.scenario)}"


def _origin(sources: Sequence[str]) -> str:
    return f"imported from: {', '.join(sources)}, by linklab {linklab.__version__}"
