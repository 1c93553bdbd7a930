"""Tests that docstrings of the package are in plain English, as far as that can be counted."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent
MODULES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if not path.name.endswith("_test.py") and path.name != "conftest.py"
)

Documented = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

BEGINNING = re.compile(r"(?:`python -m [^`]+`: )?[A-Za-z][A-Za-z0-9]*s[,.]?\s")
"""A verb in the third person: `Returns`, `Tells`, `Applies`."""

OURS = re.compile(
    r"\b(?:hangs? on|in vain|by how much|footing|what those|anew where|came to nothing|who (?:is|are|has)"
    r"|(?:some|any)body|whoever|whomever)\b"
)
"""Words that only linklab used for what the field has other words for."""


def documented(path: Path) -> Iterator[tuple[Documented, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, Documented) and (text := ast.get_docstring(node)):
            yield node, text


def is_property(node: Documented) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any("property" in ast.unparse(decorator) for decorator in decorators)


def begins_with_a_verb(text: str) -> bool:
    return BEGINNING.match(f"{text} ") is not None


def test_a_docstring_that_begins_otherwise_is_found() -> None:
    assert begins_with_a_verb("Returns the rate.")
    assert begins_with_a_verb("Decides, and returns when to decide again.")
    assert not begins_with_a_verb("The rate of each link.")
    assert not begins_with_a_verb("Of each link what it carried.")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_and_functions_say_what_they_do(path: Path) -> None:
    """Classes and properties are things. They may begin with what they are."""
    assert [
        f"{getattr(node, 'name', 'module')}: {text.splitlines()[0]}"
        for node, text in documented(path)
        if not isinstance(node, ast.ClassDef) and not is_property(node)
        if not begins_with_a_verb(text)
    ] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_docstrings_use_the_field_s_words(path: Path) -> None:
    assert [found for _, text in documented(path) for found in OURS.findall(text)] == []
