"""Tests that the example notebooks show their cells' current results."""

import copy
from pathlib import Path
from typing import Any

import notebooks
import pytest
from conftest import REPOSITORY, nightly
from notebooks import Notebook

EXAMPLES = sorted((REPOSITORY / "emulator" / "examples").glob("*.ipynb"))


def told(notebook: Notebook) -> list[tuple[str, Any]]:
    """Returns sources and outputs of code cells. Of pictures only their presence counts."""
    found = copy.deepcopy([one for one in notebook["cells"] if one["cell_type"] == "code"])
    for cell in found:
        for output in cell["outputs"]:
            if "image/png" in output.get("data", {}):
                output["data"]["image/png"] = "a picture"
    return [("".join(cell["source"]), cell["outputs"]) for cell in found]


def test_there_is_an_example() -> None:
    (one,) = EXAMPLES
    assert one.stat().st_size < 100_000, "small outputs"


@nightly
@pytest.mark.usefixtures("same_programs")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_notebook_comes_to_what_it_shows(path: Path) -> None:
    shown = notebooks.read(path)
    assert told(notebooks.executed(shown)) == told(shown)


@pytest.mark.usefixtures("same_programs")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_two_runs_of_a_notebook_come_to_what_it_shows(path: Path) -> None:
    """Of its nine. The other cells are executed with those."""
    shown = notebooks.read(path)
    fewer = {'"3"': '"1"', "single-wifi,naive,alg3": "naive,alg3"}
    first = shown["cells"][1]
    for whole, part in fewer.items():
        assert sum(whole in line for line in first["source"]) == 1
        first["source"] = [line.replace(whole, part) for line in first["source"]]
    _, printed, *others = [found for _, found in told(notebooks.executed(shown))]
    (_, before) = told(notebooks.read(path))[1]
    lines = printed[0]["text"]
    assert len(lines) == 2
    assert set(lines) < set(before[0]["text"])
    assert [len(one) for one in others] == [len(one) for _, one in told(shown)[2:]]


def test_printed_text_values_and_pictures_are_outputs() -> None:
    sources = [
        "import os\nprint(os.listdir())",
        "x = 1",
        "x + 1",
        "import pandas\npandas.DataFrame({'x': [x]})",
        "from matplotlib import pyplot\npyplot.plot([x, 2])\npyplot.show()",
    ]
    cells = [{"cell_type": "code", "source": [one], "outputs": []} for one in sources]
    done = notebooks.executed({"cells": [{"cell_type": "markdown", "source": []}, *cells]})
    outputs = [one["outputs"] for one in done["cells"][1:]]
    assert outputs[0] == [{"name": "stdout", "output_type": "stream", "text": ["[]\n"]}]
    assert outputs[1] == []
    assert outputs[2][0]["data"] == {"text/plain": ["2"]}
    assert set(outputs[3][0]["data"]) == {"text/plain", "text/html"}
    assert list(outputs[4][0]["data"]) == ["image/png"]
    assert [one.get("execution_count") for one in done["cells"]] == [None, 1, 2, 3, 4, 5]
    assert "x" not in globals()


def test_a_cell_that_fails_is_an_error() -> None:
    broken = {"cells": [{"cell_type": "code", "source": ["1 / 0"], "outputs": []}]}
    with pytest.raises(ZeroDivisionError):
        notebooks.executed(broken)
