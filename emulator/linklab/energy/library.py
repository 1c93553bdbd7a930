"""Energy models: those that ship, by name, and a user's own, by path."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from linklab.core import plain_file
from linklab.core.paths import PROFILES
from linklab.energy.model import TABLE, EnergyModel
from linklab.schema import document
from linklab.schema.document import ScenarioError
from linklab.schema.mapping import Mapping, guess

MODELS: Final = PROFILES / "energy"


def names(directory: Path = MODELS) -> list[str]:
    """The names of the models in `directory`, sorted."""
    return sorted(file.stem for file in directory.glob("*.yaml"))


def find(name_or_path: str, base: Path | None = None, directory: Path = MODELS) -> Path:
    """The file of a model: by name in `directory`, or a path, relative to `base`.

    What has a slash or ends in .yaml or .yml is a path. Raises ScenarioError where there is none.
    """
    if "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        file = (base or Path()) / name_or_path
        if not file.is_file():
            raise ScenarioError(f"{file}: there is no such energy model; allowed: a YAML file")
        return file
    known = names(directory)
    if name_or_path in known:
        return directory / f"{name_or_path}.yaml"
    raise ScenarioError(
        f"no energy model is called {name_or_path!r}{guess(name_or_path, known)}; "
        f"allowed: {', '.join(known) or 'none'}, or a path that ends in .yaml"
    )


def parse(text: str, shown: str = "<text>", *, stem: str | None = None) -> EnergyModel:
    """The model in YAML text. `shown` names the file in errors, `stem` must be its name.

    Raises ScenarioError with file, line and key.
    """
    root = document.compose(text, shown, ", ".join(TABLE.keys.needed))
    top = Mapping(shown, root, "", TABLE.keys)
    model = TABLE.of(top)
    if stem is not None and model.name != stem:
        top.fail("name", f"{model.name!r} differs from the file's name; allowed: {stem!r}")
    return model


def load(file: Path, *, any_name: bool = False) -> EnergyModel:
    """The model in a file. Raises ScenarioError. `any_name` is for the copy in a run directory."""
    if any_name:
        return parse(document.read(file, str(file), opener=plain_file.opened), str(file))
    return parse(document.read(file, str(file)), str(file), stem=file.stem)


def get(name_or_path: str, base: Path | None = None) -> EnergyModel:
    """The model of a name, or of a path relative to `base`. Raises ScenarioError."""
    return load(find(name_or_path, base))
