"""Tests that an import inside a function says why it is not at the top of its file."""

import ast
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent
SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if not path.name.endswith("_test.py")]

Import = ast.Import | ast.ImportFrom
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def local_imports(tree: ast.Module) -> Iterator[list[Import]]:
    """The imports inside functions, those that follow one another together."""
    functions = [one for one in ast.walk(tree) if isinstance(one, FUNCTIONS)]
    for node in {node for function in functions for node in ast.walk(function)}:
        for statements in (getattr(node, part, None) for part in ("body", "orelse", "finalbody")):
            if isinstance(statements, list):
                for is_import, group in groupby(statements, lambda one: isinstance(one, Import)):
                    if is_import:
                        yield list(group)


def without_reason(text: str) -> list[int]:
    """The first lines of local imports with no comment on that line or the one above."""
    lines = ["", *text.splitlines()]
    first = sorted(group[0].lineno for group in local_imports(ast.parse(text)))
    return [number for number in first if "#" not in lines[number] + lines[number - 1]]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_an_import_inside_a_function_has_its_reason(path: Path) -> None:
    assert without_reason(path.read_text()) == []


def test_one_without_is_found() -> None:
    text = """\
def f():
    if x:
        import a
        import b
    # Slow to load.
    import c
    try:
        pass
    except ImportError:
        import d

        import e  # Few need it.
"""
    assert without_reason(text) == [3, 10]
