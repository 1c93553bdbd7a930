"""Finds scenario files by path or name, and combines a scenario's links with another workload."""

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

SCENARIOS: Final = PROFILES / "scenarios"
"""The directory of the shipped scenarios. They lie in its folders."""

WORKLOADS: Final = PROFILES / "workloads"
"""The directory of the shipped workloads."""


def load(path: str | os.PathLike[str], *, any_name: bool = False) -> Scenario:
    """Reads a scenario from a file. Raises ScenarioError.

    `any_name` is for the copy in a run directory, whose file is not named like the scenario.
    """
    file = Path(path)
    file_name = _display_path(file)
    if any_name:
        text = document.read(file, file_name, opener=plain_file.opened)
        return parse(text, file_name, path=file, of_a_run=True)
    return parse(document.read(file, file_name), file_name, path=file, stem=file.stem)


def find(name_or_path: str, directory: Path = SCENARIOS) -> Scenario:
    """Finds a scenario, by name in `directory` and its folders, or by path. Raises ScenarioError.

    `SCENARIO+WORKLOAD` gives that workload over that scenario's links. A text with a slash, or with
    the ending .yaml or .yml, is a path, also for workloads.
    """
    base, joined, workload = _parted(name_or_path)
    in_directory = "/" in workload and Path(name_or_path).parent.is_dir()
    if joined and not in_directory and not Path(name_or_path).is_file():
        return with_workload(find(base, directory), workload, name_or_path)
    return load(file_of(name_or_path, directory))


def file_of(name_or_path: str, directory: Path = SCENARIOS) -> Path:
    """Returns the file of a scenario, found as `find` does. Raises ScenarioError."""
    return _FILES.find(name_or_path, directory)


def with_workload(scenario: Scenario, workload: str, full_name: str) -> Scenario:
    """Returns the scenario's links with a workload, by name or path.

    `full_name` names both in errors. Raises ScenarioError.
    """
    made = _workload(_WORKLOADS.find(workload, WORKLOADS)).over(scenario)
    why = made.workload.misfit(made.payload.size_bytes)
    if why is not None:
        raise ScenarioError(f"{full_name}: payload.size: {why}")
    return made


def _parted(name: str) -> tuple[str, str, str]:
    """Splits a name at the last `JOINED` that is not in a directory of the workload's path."""
    parts = name.split(JOINED)
    for begin in range(len(parts) - 1, 0, -1):
        workload = JOINED.join(parts[begin:])
        if "/" not in workload or Path(workload).parent.is_dir():
            return JOINED.join(parts[:begin]), JOINED, workload
    return name.rpartition(JOINED)


def _workload(file: Path) -> WorkloadFile:
    file_name = _display_path(file)
    return workload_file.parse(document.read(file, file_name), file_name, file.stem)


def workload_names() -> list[str]:
    """Lists the names of the shipped workloads, sorted."""
    return _WORKLOADS.names(WORKLOADS)


def ships(name: str) -> bool:
    """Tells whether a scenario of that name ships, or its scenario and its workload do."""
    base, joined, workload = name.rpartition(JOINED)
    if joined:
        return base in names_in() and workload in workload_names()
    return name in names_in()


def names_in(directory: Path = SCENARIOS) -> list[str]:
    """Lists the names of the scenarios in `directory` and its folders, sorted, without reading them."""
    return _FILES.names(directory)


def list_all(directory: Path = SCENARIOS) -> list[Scenario]:
    """Reads all scenarios in `directory` and its folders, ordered by name.

    Raises ScenarioError at the first error.
    """
    return [load(file) for file in _FILES.files(directory).values()]


def _display_path(path: Path) -> str:
    """Returns a path for messages: relative to the working directory if it lies below."""
    try:
        return str(path.resolve().relative_to(Path.cwd().resolve()))
    except (OSError, ValueError):
        return str(path)
