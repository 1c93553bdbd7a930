"""Tests that README.md shows what linklab prints."""

from __future__ import annotations

import re
import textwrap

import pytest
import yaml
from conftest import REPOSITORY, Linklab

README = (REPOSITORY / "README.md").read_text()
HANDBOOK = REPOSITORY / "emulator" / "handbook"


def shown_block(first_words: str) -> str:
    """Returns the README's indented block that begins with these words, without its indentation."""
    found = re.search(rf"(?:^    {re.escape(first_words)}.*\n)(?:^    .*\n)+", README, re.M)
    assert found, f"README.md has no block that begins with {first_words!r}"
    return textwrap.dedent(found[0]).rstrip()


@pytest.mark.usefixtures("same_programs")
def test_the_demo_s_table_is_the_one_of_the_readme(linklab: Linklab) -> None:
    done = linklab("compare", "hs-s7", "--runs", "3")
    assert done.code == 0, done.err
    printed = "\n".join(line.rstrip() for line in done.out.splitlines())
    assert shown_block("hs-s7  Thesis") in printed


@pytest.mark.one_at_a_time
@pytest.mark.usefixtures("same_programs")
def test_the_default_suite_comes_out_to_the_digit(linklab: Linklab) -> None:
    """It fills all cores by itself."""
    done = linklab("regress")
    assert done.code == 0, done.out + done.err
    pages = (README, (HANDBOOK / "how-to" / "run-in-ci.md").read_text())
    (downloads,) = {re.findall(r"compares (\d+) downloads", page)[0] for page in pages}
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
