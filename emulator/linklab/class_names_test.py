"""Tests that every public class name occurs once in the whole package."""

import ast
from collections import defaultdict
from pathlib import Path

import linklab

PACKAGE = Path(linklab.__file__).parent


def _is_production(path: Path) -> bool:
    return not path.name.endswith("_test.py") and path.name != "conftest.py"


def test_every_public_class_name_occurs_once() -> None:
    found = defaultdict(list)
    for path in filter(_is_production, PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(PACKAGE)))
    assert len(found) > 200
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}
