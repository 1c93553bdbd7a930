"""Production code is as the formatter has it: no line is kept from it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("emulator/linklab", "dashboards")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not path.name.endswith("_test.py")
]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_kept_from_the_formatter(path: Path) -> None:
    assert re.findall(r"#\s*fmt:\s*(?:skip|off)", path.read_text()) == []
