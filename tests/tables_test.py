"""Tests that the documents' tables of measured figures are those of this checkout."""

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import REPOSITORY, TEST_ALL, nightly

HANDBOOK = REPOSITORY / "emulator" / "handbook"
_spec = importlib.util.spec_from_file_location("tables", HANDBOOK / "tables.py")
assert _spec is not None
assert _spec.loader is not None
tables = importlib.util.module_from_spec(_spec)
sys.modules["tables"] = tables  # Where dataclasses look up names.
_spec.loader.exec_module(tables)

TABLES = {one.name: one for one in tables.tables()}
CHEAP = (
    ("energy", "emptcp-256kb-good-bad"),
    pytest.param("links-of-today", "leave-home", marks=nightly),
    pytest.param("uploads", "static-80-50+upload", marks=nightly),
)
"""A scenario of each table. The others are films of two minutes. One shows that the command makes what
stands there; the test above and the default suite see what moves figures."""


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.usefixtures("same_programs")
def test_no_table_is_older_than_what_decides_its_figures(name: str) -> None:
    assert TABLES[name].inputs == TABLES[name].now(), f"make tables NAME={name}, and commit it"


@pytest.mark.parametrize(("name", "scenario"), CHEAP)
@pytest.mark.usefixtures("same_programs")
def test_a_row_comes_out_to_the_digit(name: str, scenario: str, tmp_path: Path) -> None:
    """`make test` runs the last client of one table."""
    whole = TABLES[name]
    one = replace(whole, scenarios=(scenario,), clients=whole.clients[0 if TEST_ALL else -1 :])

    def row(body: str) -> list[str]:
        (found,) = [line for line in body.splitlines() if line.startswith(f"| `{scenario}`")]
        return found.split(" | ")

    made, shown = row(tables.body(one, tables.measured(one, tmp_path))), row(whole.body)
    rest = len(made) - len(one.clients)
    assert made == shown[:rest] + shown[-len(one.clients) :]


PAGE = """\
# A page
<!-- table one: seconds of wifi-gone by alg3 seeds 1 -->
old
<!-- end one none -->
<!-- table two: energy of hs-s7 by alg3 seeds 3 -->
<!-- end two none -->
"""


def test_a_table_is_replaced_between_its_lines(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    one, two = tables.tables([page])
    row = {"algorithm": "alg3", "download_s": 11.26}
    body = tables.body(one, [{"scenario": "wifi-gone", "oracle_s": 10.04, "rows": [row]}])
    assert "| `wifi-gone` | 10.0 | 17.0 (wifi) | 11.3 |\n" in body
    assert "*`make tables NAME=one`: linklab " in body
    text = tables.replaced(one, body)
    assert text == PAGE.replace("old\n", body).replace("end one none", f"end one {one.now()}")
    assert one.now() != two.now()


def test_another_scenario_client_or_seed_makes_a_table_stale() -> None:
    one = TABLES["energy"]
    for other in (
        replace(one, scenarios=one.scenarios[1:]),
        replace(one, clients=one.clients[1:]),
        replace(one, seeds=one.seeds + 1),
    ):
        assert other.now() != one.now()


def test_comments_and_tests_of_the_client_decide_nothing(tmp_path: Path) -> None:
    code = tmp_path / "cmd" / "multilink" / "a.go"
    code.parent.mkdir(parents=True)
    code.write_text("package a\n\nconst x = 1\n")
    before = tables.engine(tmp_path)
    code.write_text("// Package a is one.\npackage a\n\tconst x = 1\n")
    code.with_name("a_test.go").write_text("package a\n")
    assert tables.engine(tmp_path) == before
    code.write_text("package a\n\nconst x = 2\n")
    assert tables.engine(tmp_path) != before


def test_each_package_of_the_client_decides_that_go_builds_it_from() -> None:
    words = (REPOSITORY / "emulator/setup/client", "go", "list", "-deps", "./cmd/multilink")
    said = subprocess.check_output(words, cwd=REPOSITORY / "client", text=True)
    module = "github.com/linklab/linklab/client/"
    built = [line.removeprefix(module) for line in said.split() if line.startswith(module)]
    assert tables.packages() == sorted(built)


def test_an_unknown_figure_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("seconds", "hours"))
    with pytest.raises(ValueError, match=r"page.md: table one: 'hours' is no figure; allowed: s"):
        list(tables.tables([page]))
