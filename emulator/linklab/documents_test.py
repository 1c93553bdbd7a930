"""What the documents name is there: files, tests, `make` targets, sources."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not {"node_modules", ".venv", "build", "runs"} & set(path.relative_to(ROOT).parts)
)
PARTS = ("client", "dashboards", "emulator", "server", "profiles", "tests", ".github")
FILES = [
    f"/{path.relative_to(ROOT)}"
    for path in (*ROOT.iterdir(), *(path for part in PARTS for path in (ROOT / part).rglob("*")))
]
FILE = re.compile(r"`([\w.-]+(?:/[\w.-]+)*\.(?:py|go|sh|patch|config|yaml|yml|in|txt|md|csv))`")
EXAMPLES = frozenset({"X_test.py", "x_test.go", "scenario.yaml", "mine.yaml", "my-scenario.yaml"})
"""Names that stand for any file, or for one that a user or a run makes."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_exist(document: Path) -> None:
    named = set(FILE.findall(document.read_text())) - EXAMPLES
    assert [
        name for name in sorted(named) if not any(file.endswith(f"/{name}") for file in FILES)
    ] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"(?:^    |`)make ([a-z][a-z-]*)", document.read_text(), re.M))
    assert named <= targets


def test_tests_named_in_security_exist() -> None:
    words = (ROOT / "SECURITY.md").read_text()
    sources = "".join(path.read_text() for path in (ROOT / "client").rglob("*_test.go"))
    named = set(re.findall(r"`(Test\w+)`", words))
    assert named
    assert [name for name in sorted(named) if f"func {name}(" not in sources] == []
