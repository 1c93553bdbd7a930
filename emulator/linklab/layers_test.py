"""Tests that modules started by name obey the layers of `.importlinter`, which only sees imports."""

import ast
import configparser
from pathlib import Path

from linklab.core.paths import REPOSITORY

PACKAGE = Path(__file__).parent
MODULES = [path for path in PACKAGE.glob("*/**/*.py") if not path.stem.endswith("_test")]


def layers() -> dict[str, int]:
    """How high each folder stands; the lowest is 0."""
    config = configparser.ConfigParser()
    config.read_string((REPOSITORY / ".importlinter").read_text())
    lines = config["importlinter:contract:layers"]["layers"].split("\n")
    rows = [line.split("|") for line in reversed(lines) if line.strip()]
    return {name.strip(): height for height, row in enumerate(rows) for name in row}


def higher(path: Path, text: str) -> set[str]:
    """Modules above, or beside, that of a path in the package which the module names in its text."""
    heights = layers()
    own = path.parts[0]
    named = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    folders = {
        one: folder
        for one in named
        if isinstance(one, str) and one.startswith("linklab.")
        for folder in [one.split(".")[1]]
        if folder in heights and folder != own
    }
    return {name for name, folder in folders.items() if heights[folder] >= heights[own]}


def test_no_module_names_one_above_it() -> None:
    found = {path: higher(path.relative_to(PACKAGE), path.read_text()) for path in MODULES}
    assert {path: names for path, names in found.items() if names} == {}
