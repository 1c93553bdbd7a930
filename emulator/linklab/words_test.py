"""Tests that comments and docstrings do without words that only linklab used."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from linklab.core.paths import REPOSITORY

SOURCES = sorted(
    path
    for folder in ("emulator/linklab", "client")
    for path in (REPOSITORY / folder).rglob("*")
    if path.suffix in (".py", ".go") and not path.stem.endswith("_test")
)

OURS = re.compile(
    r"\b(?:hangs? on|in vain|by how much|footing|what those|anew where|came to nothing|who (?:is|are)"
    r"|somebody|whoever|whomever|twins?|complaints?)\b",
    re.IGNORECASE,
)
"""Words for which the field has others (glossary)."""


def prose(path: Path) -> Iterator[str]:
    """Yields the comments of a source file, and its docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".go":
        yield from re.findall(r"^\s*//.*|\s// .*", text, re.MULTILINE)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield ast.get_docstring(node) or ""


@pytest.mark.parametrize("folder", sorted({path.parent for path in SOURCES}), ids=str)
def test_comments_use_the_field_s_words(folder: Path) -> None:
    found = [
        f"{path.name}: {word}"
        for path in SOURCES
        if path.parent == folder
        for text in prose(path)
        for word in OURS.findall(text)
    ]
    assert found == []
