"""Executes a Jupyter notebook of Python cells, so that its outputs are those of this linklab.

usage: python -m notebooks FILE.ipynb… (writes each anew)

It does what Jupyter does with such cells, as far as the examples need: what is printed, the value of
the last expression as text and HTML, open figures of matplotlib as PNG. Jupyter itself would be 80
packages more.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib

Notebook = dict[str, Any]


def read(path: Path) -> Notebook:
    """Reads the notebook in a file (nbformat 4)."""
    made: Notebook = json.loads(path.read_text())
    return made


def write(notebook: Notebook, path: Path) -> None:
    """Writes a notebook as Jupyter does."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def executed(notebook: Notebook) -> Notebook:
    """Returns the notebook with the outputs of its cells. These run in order in an empty directory,
    with this environment's `linklab`."""
    matplotlib.use("agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with (
        mock.patch.dict(os.environ, PATH=path),
        tempfile.TemporaryDirectory() as empty,
        contextlib.chdir(empty),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                cells.append(cell)
                continue
            count += 1
            outputs = _outputs("".join(cell["source"]), names, count)
            cells.append({**cell, "execution_count": count, "outputs": outputs})
    return {**notebook, "cells": cells}


def _outputs(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    from matplotlib import pyplot

    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append(
            {"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())}
        )
    for number in pyplot.get_fignums():
        png = io.BytesIO()
        pyplot.figure(number).savefig(png, format="png", dpi=72, bbox_inches="tight")
        pyplot.close(number)
        picture = {"image/png": base64.b64encode(png.getvalue()).decode()}
        found.append({"data": picture, "metadata": {}, "output_type": "display_data"})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data = {"text/html": _lines(value._repr_html_()), **data}
        found.append(
            {
                "data": data,
                "execution_count": count,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(executed(read(Path(name))), Path(name))
        print(f"{name}: executed")
