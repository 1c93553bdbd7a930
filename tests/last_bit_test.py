"""Tests that no link state depends on the C library's results, whose last bit differs between
machines.

Logarithms and the like differ in it between libraries, versions and processors. A model must not
compare such a result with a threshold. One packet more or less before a change makes another
download.
"""

import ast
import math
import random
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

import pytest
from conftest import is_in_part
from linklab import models
from linklab.links import full_load
from linklab.scenario import find
from linklab.scenario.finding import names_in

SECONDS = 150
"""Longer than any carrier, handover or station of a scenario needs."""

_LIBRARY = """
acos acosh asin asinh atan atan2 atanh cbrt cos cosh dist erf erfc exp exp2 expm1 gamma
hypot lgamma log log10 log1p log2 pow sin sinh sumprod tan tanh
"""
LIBRARY = frozenset(_LIBRARY.split())
"""The functions of `math` that may differ in the last bit. The square root does not (IEEE 754)."""


def history(name: str) -> str:
    """Returns every time and state of a scenario's links under full load, to the last bit."""
    scenario = find(name)
    spans = takewhile(
        lambda span: span.start_s < SECONDS, full_load.spans(scenario, 1, scenario.links)
    )
    return repr([(span.start_s, span.end_s, span.states) for span in spans])


def moved(function: Callable[..., object], towards: float) -> Callable[..., object]:
    """Returns the function with its results moved by one bit."""

    def moving(*arguments: object) -> object:
        result = function(*arguments)
        return math.nextafter(result, towards) if isinstance(result, float) else result

    return moving


def move_library(monkeypatch: pytest.MonkeyPatch, towards: float) -> None:
    for name in LIBRARY:
        if hasattr(math, name):
            monkeypatch.setattr(math, name, moved(getattr(math, name), towards))
    for name in ("_acos", "_cos", "_exp", "_log", "_sin"):
        if hasattr(random, name):
            monkeypatch.setattr(random, name, moved(getattr(random, name), towards))


@pytest.mark.parametrize(("row", "name"), [*enumerate(names_in())])
def test_a_last_bit_of_the_c_library_changes_no_instant_and_no_state(
    row: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make test` moves it up or down, in turn."""
    plain = history(name)
    for column, towards in enumerate((math.inf, -math.inf)):
        if is_in_part(row, column, 2):
            with monkeypatch.context() as patch:
                move_library(patch, towards)
                assert history(name) == plain


def is_whole(node: ast.expr) -> bool:
    """Tells whether an expression is a literal whole number."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def faults(source: str) -> list[str]:
    """Returns the uses of the C library's functions in a source, with their lines."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                inexact = {"cmath", "numpy", "scipy", "statistics"}
                found += [(node.lineno, one.name) for one in names if one.name in inexact]
            case ast.ImportFrom(module="math" | "cmath" | "statistics" | "numpy" as module):
                found.append((node.lineno, f"from {module}"))
            case ast.Attribute(value=ast.Name(id="math"), attr=name) if name in LIBRARY:
                found.append((node.lineno, f"math.{name}"))
            case ast.Attribute(attr=name) if name.endswith("variate") or name == "gauss":
                found.append((node.lineno, name))
            case ast.BinOp(op=ast.Pow(), left=base, right=power) if not (
                is_whole(base) and is_whole(power)
            ):
                found.append((node.lineno, "**"))
            case ast.Call(func=ast.Name(id="pow")):
                found.append((node.lineno, "pow"))
    return [f"{line}: {what}" for line, what in sorted(found)]


SOURCES = [
    file
    for directory in (Path(models.__file__).parent, Path(full_load.__file__).parent)
    for file in sorted(directory.glob("*.py"))
    if not file.name.endswith("_test.py") and file.stem != "calibration"
]
"""All modules that define link states. Calibration only finds values for a profile."""


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_no_model_takes_a_result_from_the_c_library(file: Path) -> None:
    assert faults(file.read_text()) == []
