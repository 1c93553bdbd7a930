"""What README.md shows is what linklab prints."""

from __future__ import annotations

import re
import textwrap

import pytest
from conftest import REPOSITORY, Linklab
from linklab.core.paths import PROFILES
from linklab.regression import baseline, fingerprint, suite

README = (REPOSITORY / "README.md").read_text()


def shown_block(first_words: str) -> str:
    """The indented block of the README that begins with these words, without its indentation."""
    found = re.search(rf"(?:^    {re.escape(first_words)}.*\n)(?:^    .*\n)+", README, re.M)
    assert found, f"README.md has no block that begins with {first_words!r}"
    return textwrap.dedent(found[0]).rstrip()


def differing_programs() -> list[str]:
    """The programs that make figures here and are others than those of the baseline."""
    folder = PROFILES / "regression"
    then = baseline.load(folder / "default.baseline.yaml")
    now = fingerprint.taken(suite.load(folder / "default.yaml"))
    return fingerprint.differences(
        fingerprint.Fingerprint(then.fingerprint.programs, {}),
        fingerprint.Fingerprint(now.programs, {}),
    )


def test_the_demo_s_table_is_the_one_of_the_readme(linklab: Linklab) -> None:
    if different := differing_programs():
        pytest.skip(f"other programs than the figures in README.md: {'; '.join(different)}")
    done = linklab("compare", "hs-s7", "--runs", "3")
    assert done.code == 0, done.err
    printed = "\n".join(line.rstrip() for line in done.out.splitlines())
    assert shown_block("hs-s7  Thesis") in printed
