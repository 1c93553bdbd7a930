"""Tests the documents' web site: it has every page, and a broken link stops its build."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import REPOSITORY, ran

PYTHON = REPOSITORY / "build" / "site-python" / "bin" / "python"

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="make site has not been called")


def build(repository: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    return ran([PYTHON, repository / "emulator" / "handbook" / "website.py", directory])


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    done = build(REPOSITORY, directory)
    assert (done.returncode, done.stderr) == (0, "")
    return directory / "html"


def test_every_page_of_the_handbook_is_in_the_site(html: Path) -> None:
    handbook = REPOSITORY / "emulator" / "handbook"
    for page in handbook.rglob("*.md"):
        assert (html / page.relative_to(REPOSITORY).with_suffix(".html")).exists()
    assert "Quick start" in (html / "index.html").read_text()


def test_pages_load_nothing_from_elsewhere(html: Path) -> None:
    for page in html.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img|iframe)[^>]*(?:src|href)="([^"]+)', page.read_text()
        )
        assert [one for one in loaded if "//" in one] == []


def test_diagrams_are_drawn(html: Path) -> None:
    page = (html / "ARCHITECTURE.html").read_text()
    pictures = re.findall(r'<img alt="How a run flows" src="([^"]+\.svg)"', page)
    assert len(pictures) == 1
    svg = (html / pictures[0]).read_text()
    words = " ".join(re.findall(r">([^<>]+)<", svg)).split()
    assert "asks the models over time" in " ".join(words)
    assert [one for one in html.rglob("*.html") if "flowchart TB" in one.read_text()] == []


def test_a_broken_link_is_an_error(tmp_path: Path) -> None:
    """To a page, and to a heading."""
    links = "[broken](no-such-page.md) [broken](virtual-time.md#no-such-heading)"
    done = build_with(tmp_path, links)
    assert done.returncode == 1
    assert "the-lab.md" in done.stderr
    assert "no-such-page" in done.stderr
    assert "no-such-heading" in done.stderr


def test_a_broken_diagram_is_an_error(tmp_path: Path) -> None:
    done = build_with(tmp_path, "```mermaid\nflowchart TB\n  a[[ -->\n```")
    assert done.returncode == 1
    assert "the-lab.md: a Mermaid diagram: " in done.stderr


def build_with(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Builds the site of a repository in which a page ends with `text`."""
    repository = tmp_path / "repository"
    kept = shutil.ignore_patterns("*.py", "*.go", "node_modules", "__pycache__")
    for name in ("emulator/examples", "dashboards/pictures", "emulator/handbook"):
        shutil.copytree(REPOSITORY / name, repository / name)
    for name in ("client", "profiles", "dashboards"):
        shutil.copytree(REPOSITORY / name, repository / name, ignore=kept, dirs_exist_ok=True)
    for page in REPOSITORY.glob("*.md"):
        shutil.copy(page, repository)
    page = repository / "emulator/handbook/explanation/the-lab.md"
    page.write_text(page.read_text() + f"\n{text}\n")
    return build(repository, tmp_path / "site")
