"""Tests that README.md shows what linklab prints."""

import re
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from conftest import REPOSITORY, TEST_ALL, Linklab, is_in_part, nightly
from linklab.regression import baseline, suite

README = (REPOSITORY / "README.md").read_text()


def shown_block(first_words: str) -> str:
    """Returns the README's indented block that begins with these words, without its indentation."""
    found = re.search(rf"(?:^    {re.escape(first_words)}.*\n)(?:^    .*\n)+", README, re.M)
    assert found, f"README.md has no block that begins with {first_words!r}"
    return textwrap.dedent(found[0]).rstrip()


@nightly
@pytest.mark.usefixtures("same_programs")
def test_the_demo_s_table_is_the_one_of_the_readme(linklab: Linklab) -> None:
    """The default suite sees with each `make test` what moves figures of hs-s7."""
    done = linklab("compare", "hs-s7", "--runs", "3")
    assert done.code == 0, done.err
    printed = "\n".join(line.rstrip() for line in done.out.splitlines())
    assert shown_block("hs-s7  Thesis") in printed


def part_of_default_suite(directory: Path) -> Path:
    """Writes the downloads of the default suite that `make test` runs, with their baseline: of each
    scenario some algorithms, of each algorithm some scenarios."""
    whole = yaml.safe_load(suite.DEFAULT.read_text())
    for row, entry in enumerate(whole["scenarios"]):
        entry["algorithms"] = [
            name
            for column, name in enumerate(entry.get("algorithms", whole["algorithms"]))
            if is_in_part(row, column, 4) or name not in whole["algorithms"]
        ]
    file = directory / "default.yaml"
    some = {"name": whole["name"], "scenarios": whole["scenarios"], "verify": 1}
    file.write_text(yaml.safe_dump(some))
    cells = {one.cell for one in suite.load(file).planned}
    old = baseline.load(suite.load(suite.DEFAULT).baseline)
    kept = {cell: values for cell, values in old.cells.items() if cell in cells}
    assert {cell.algorithm for cell in kept} == {cell.algorithm for cell in old.cells}
    assert {cell.scenario for cell in kept} == {cell.scenario for cell in old.cells}
    (directory / "default.baseline.yaml").write_text(baseline.write(replace(old, cells=kept)))
    return file


@pytest.mark.one_at_a_time
@pytest.mark.usefixtures("same_programs")
def test_the_default_suite_comes_out_to_the_digit(linklab: Linklab, tmp_path: Path) -> None:
    """It fills all cores by itself. CI also runs all of it, for its report."""
    file = suite.DEFAULT if TEST_ALL else part_of_default_suite(tmp_path)
    downloads = len(suite.load(file).planned)
    done = linklab("regress", file)
    assert done.code == 0, done.out + done.err
    assert f"default: {downloads} downloads, {downloads} same, 0 worse" in done.out


def test_make_test_has_all_that_the_workflow_runs() -> None:
    """The workflow splits `make test` into jobs. Its job `regression` runs the default suite once
    more, for its report."""
    makefile = (REPOSITORY / "Makefile").read_text()
    recipe = re.search(r"^test: .*\n((?:\t.*\n)+)", makefile, re.M)
    assert recipe is not None
    called = " ".join(re.findall(r"timed-,?([\w -]+)", recipe[1]))
    jobs = yaml.safe_load((REPOSITORY / ".github/workflows/test.yml").read_text())["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    ran = " ".join(step["run"] for step in steps if step.get("run", "").startswith("make "))
    assert set(ran.replace("make ", "").split()) == set(called.split())
    regress = [step for step in steps if step.get("uses", "").endswith("/linklab-regress")]
    assert [step["with"].get("real-clock", False) for step in regress] == [False, True]
    assert "exec make test" in (REPOSITORY / ".ci/run").read_text()
    nightly = (REPOSITORY / ".github/workflows/nightly.yml").read_text()
    assert "run: make test-all\n" in nightly
