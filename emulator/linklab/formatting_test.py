"""Tests that the formatter lays out every Python file, without comments that switch it off."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("emulator", "tests", "dashboards")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_kept_from_the_formatter(path: Path) -> None:
    assert re.findall(r"#\s*fmt:\s*(?:skip|off|on)\b", path.read_text()) == []
