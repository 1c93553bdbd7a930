"""Scenario files: by path, by name, all of them; over the links of one, another workload."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from linklab.core import plain_file
from linklab.core.paths import PROFILES
from linklab.scenario import workload_file
from linklab.scenario.reading import parse
from linklab.scenario.settings import Scenario
from linklab.scenario.workload_file import JOINED, WorkloadFile
from linklab.schema import document
from linklab.schema.document import ScenarioError
from linklab.schema.named_files import NamedFiles

_ENDINGS: Final = (".yaml", ".yml")
_FILES: Final = NamedFiles("scenario", _ENDINGS, ScenarioError)
_WORKLOADS: Final = NamedFiles("workload", _ENDINGS, ScenarioError)

WORKLOADS: Final = PROFILES / "workloads"
"""Where the workloads are that ship."""


def load(path: str | os.PathLike[str], *, any_name: bool = False) -> Scenario:
    """The scenario in a file. Raises ScenarioError.

    `any_name` lifts the rule that the file is called after the scenario, for the copy in a
    run directory.
    """
    file = Path(path)
    shown = _shown(file)
    if any_name:
        text = document.read(file, shown, opener=plain_file.opened)
        return parse(text, shown, path=file, of_a_run=True)
    return parse(document.read(file, shown), shown, path=file, stem=file.stem)


def find(name_or_path: str, directory: Path = PROFILES) -> Scenario:
    """The scenario of a name in `directory`, or of a path; of `SCENARIO+WORKLOAD`, that workload over
    that scenario's links. Raises ScenarioError.

    Anything with a slash or the ending .yaml or .yml is a path, of a workload too.
    """
    base, joined, workload = _parted(name_or_path)
    in_directory = "/" in workload and Path(name_or_path).parent.is_dir()
    if joined and not in_directory and not Path(name_or_path).is_file():
        return with_workload(find(base, directory), workload, name_or_path)
    return load(_FILES.find(name_or_path, directory))


def with_workload(scenario: Scenario, workload: str, shown: str) -> Scenario:
    """The workload of a name or path over a scenario's links; `shown` names both in errors. Raises
    ScenarioError."""
    made = _workload(_WORKLOADS.find(workload, WORKLOADS)).over(scenario)
    why = made.workload.misfit(made.payload.size_bytes)
    if why is not None:
        raise ScenarioError(f"{shown}: payload.size: {why}")
    return made


def _parted(name: str) -> tuple[str, str, str]:
    """What stands before and after the last `JOINED` that belongs to no directory of a workload."""
    parts = name.split(JOINED)
    for begin in range(len(parts) - 1, 0, -1):
        workload = JOINED.join(parts[begin:])
        if "/" not in workload or Path(workload).parent.is_dir():
            return JOINED.join(parts[:begin]), JOINED, workload
    return name.rpartition(JOINED)


def _workload(file: Path) -> WorkloadFile:
    shown = _shown(file)
    return workload_file.parse(document.read(file, shown), shown, file.stem)


def workload_names() -> list[str]:
    """The names of the workloads that ship, sorted."""
    return _WORKLOADS.names(WORKLOADS)


def ships(name: str) -> bool:
    """Whether a scenario of that name ships, or one and a workload of which it is made."""
    base, joined, workload = name.rpartition(JOINED)
    if joined:
        return base in names_in() and workload in workload_names()
    return name in names_in()


def names_in(directory: Path = PROFILES) -> list[str]:
    """The names of the scenarios in `directory`, sorted, without reading them."""
    return _FILES.names(directory)


def list_all(directory: Path = PROFILES) -> list[Scenario]:
    """Every scenario in `directory`, by name. Raises ScenarioError at the first bad one."""
    return [load(directory / f"{name}.yaml") for name in names_in(directory)]


def _shown(path: Path) -> str:
    """A path as messages give it: relative to the working directory where it lies below."""
    try:
        return str(path.resolve().relative_to(Path.cwd().resolve()))
    except (OSError, ValueError):
        return str(path)
