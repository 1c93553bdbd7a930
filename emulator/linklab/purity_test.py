"""Tests that a module whose docstring says `Pure.` touches no file, clock, socket or process.

It calls no function of an impure module either. Every module has a docstring.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent

OUTSIDE = frozenset(
    [
        *("asyncio", "ctypes", "fcntl", "glob", "http", "mininet", "multiprocessing"),
        *("os", "psutil", "pyroute2", "secrets", "select", "shutil", "signal", "socket"),
        *("subprocess", "sys", "tempfile", "threading", "time", "urllib"),
    ]
)
"""Modules that reach files, clocks, sockets or processes. `pathlib` is judged by its calls: a
path is also a value."""

TOUCHING = frozenset(
    [
        *("open", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir"),
        *("unlink", "rmdir", "exists", "is_file", "is_dir", "iterdir", "glob", "rglob"),
        *("stat", "readlink", "resolve", "touch", "rename", "replace_file"),
        *("now", "today"),
    ]
)

READS_PROFILES = frozenset(
    {"find", "load", "list_all", "names_in", "with_workload", "finding", "reading"}
)
"""What of `linklab.scenario` reads files; the rest of the package are values."""


def modules() -> list[Path]:
    """The package's modules without tests."""
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.name.endswith("_test.py") and path.name != "conftest.py"
    ]


def docstring(path: Path) -> str:
    """A module's docstring, "" if there is none."""
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def pure_modules() -> list[Path]:
    """The modules that their docstrings call pure."""
    return [path for path in modules() if re.search(r"\bPure\.", docstring(path))]


def dotted(path: Path) -> str:
    """A file's name as an import knows it."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PURE = frozenset(map(dotted, pure_modules()))


def touches(source: str) -> Iterator[str]:
    """What in a module's source reaches outside. Types and constants of other modules do not."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.partition(".")[0] in OUTSIDE)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.partition(".")[0] in OUTSIDE:
                yield module
            if module.partition(".")[0] == "linklab" and module not in PURE:
                names = {one.name for one in node.names if one.name.islower()}
                if module == "linklab.scenario":
                    names &= READS_PROFILES
                yield from (
                    f"{module}.{name}" for name in sorted(names) if f"{module}.{name}" not in PURE
                )
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in TOUCHING:
                yield f"{name}()"


def test_docstrings_are_read() -> None:
    names = {path.stem for path in pure_modules()}
    assert {"units", "oracle", "carriers", "verdict"} <= names
    assert len(names) > 100


def test_every_module_says_what_it_does() -> None:
    assert [path for path in modules() if path.stat().st_size and not docstring(path)] == []


@pytest.mark.parametrize("path", pure_modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_pure_is_pure(path: Path) -> None:
    assert list(touches(path.read_text())) == []
