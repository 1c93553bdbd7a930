"""Finds and loads energy models: by name those that ship with linklab, by path a user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from linklab.core import plain_file
from linklab.core.paths import PROFILES
from linklab.energy.model import TABLE, EnergyModel
from linklab.schema import document
from linklab.schema.document import ScenarioError
from linklab.schema.mapping import Mapping
from linklab.schema.named_files import NamedFiles

MODELS: Final = PROFILES / "energy"


_FILES: Final = NamedFiles("energy model", (".yaml", ".yml"), ScenarioError)


def names() -> list[str]:
    """Lists the names of the models that ship, sorted."""
    return _FILES.names(MODELS)


def find(name_or_path: str, base: Path | None = None) -> Path:
    """Returns the file of a model, by name or by path relative to `base`. Raises ScenarioError."""
    return _FILES.find(name_or_path, MODELS, base)


def measured() -> list[str]:
    """Lists the models that ship with the rows that they were fitted to, in `rows_of`."""
    return [name for name in names() if rows_of(name).exists()]


def rows_of(name: str) -> Path:
    return MODELS / f"{name}.csv"


def parse(text: str, file_name: str = "<text>", *, stem: str | None = None) -> EnergyModel:
    """Reads a model from YAML text.

    `file_name` names the file in errors. If `stem` is given, the model's name must equal it.
    Raises ScenarioError with file, line and key.
    """
    root = document.compose(text, file_name, ", ".join(TABLE.keys.needed))
    top = Mapping(file_name, root, "", TABLE.keys)
    model = TABLE.of(top)
    if stem is not None and model.name != stem:
        top.fail("name", f"{model.name!r} differs from the file's name; allowed: {stem!r}")
    return model


def load(file: Path, *, any_name: bool = False) -> EnergyModel:
    """Reads a model from a file. Raises ScenarioError.

    `any_name` is for the copy in a run directory, whose file is not named like the model.
    """
    if any_name:
        return parse(document.read(file, str(file), opener=plain_file.opened), str(file))
    return parse(document.read(file, str(file)), str(file), stem=file.stem)


def get(name_or_path: str, base: Path | None = None) -> EnergyModel:
    """Loads a model, by name or by path relative to `base`. Raises ScenarioError."""
    return load(find(name_or_path, base))
