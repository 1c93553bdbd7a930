"""Makes a web site with search of the documents, by Sphinx and MyST. A broken link is an error.

The site has the pages as they are, at the same places as in the repository. Only pages of contents
are made: README is the first one, and each heading of the handbook's contents is a part. Mermaid
diagrams become pictures, so pages need no script. A diagram with an error ends the build.

usage: website.py DIRECTORY
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import mmdr
from sphinx.application import Sphinx

REPOSITORY: Final = Path(__file__).parents[2]
HANDBOOK: Final = Path("emulator/handbook")
TOP: Final = (
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "REFERENCES.md"),
    *("client/README.md", "dashboards/README.md", "profiles/README.md"),
)
"""Pages outside the handbook."""

SETTINGS: Final[dict[str, Any]] = {
    "project": "linklab",
    "extensions": ["myst_parser"],
    "root_doc": "index",
    "html_theme": "pydata_sphinx_theme",
    "html_theme_options": {
        "show_prev_next": False,
        "show_toc_level": 2,
        "navigation_with_keys": False,
        "secondary_sidebar_items": ["page-toc"],
        "navbar_align": "left",
        "header_links_before_dropdown": 6,
        "footer_start": [],
        "footer_end": [],
    },
    "html_title": "linklab",
    "html_css_files": ["site.css"],
    "html_static_path": ["_static"],
    "html_show_sourcelink": False,
    "html_use_index": False,
    "html_copy_source": False,
    "myst_heading_anchors": 4,
    "highlight_language": "text",
}

CSS: Final = """\
.bd-article table { display: block; overflow-x: auto; font-size: 0.9em; border: 0; }
.bd-article td, .bd-article th { border-color: var(--pst-color-border); }
.bd-sidebar-primary { flex-basis: 17rem; }
.bd-main .bd-content .bd-article-container { min-width: 0; }
.bd-article h1 { font-size: 2rem; }
.bd-article h2 { font-size: 1.5rem; }
.bd-article h3 { font-size: 1.2rem; }
"""


MERMAID: Final = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def draw(page: Path) -> None:
    """Replaces the Mermaid diagrams of a page by pictures beside it. Ends the build at an error."""
    drawn = 0

    def picture(diagram: re.Match[str]) -> str:
        nonlocal drawn
        drawn += 1
        file = page.with_name(f"{page.stem}-diagram-{drawn}.svg")
        try:
            svg = mmdr.render(diagram[1]).svg()
        except ValueError as error:
            raise SystemExit(f"{page}: a Mermaid diagram: {error}") from None
        # As wide as its text needs, not as wide as the page.
        file.write_text(
            re.sub(r' width="100%"(.*?viewBox="\S+ \S+ (\S+))', r' width="\2"\1', svg, count=1)
        )
        headings = re.findall(r"^#+ (.+)$", diagram.string[: diagram.start()], re.MULTILINE)
        return f"![{headings[-1]}]({file.name})"

    page.write_text(MERMAID.sub(picture, page.read_text()))


def toctree(pages: list[str]) -> str:
    """Returns a part of the navigation, which the page itself does not show."""
    listed = "\n".join(pages)
    return f"\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"


def sections(contents: str) -> dict[str, str]:
    """Returns a page for each heading of the handbook's contents, by its file's name."""
    found = {}
    for part in re.split(r"^## ", contents, flags=re.M)[1:]:
        title, _, text = part.partition("\n")
        pages = [
            re.sub(r"^\.\./\.\./", "/", page) for page in re.findall(r"\]\(([^)#\s]+)\.md\)", text)
        ]
        found[title.lower()] = f"# {title}\n{text}" + toctree(list(dict.fromkeys(pages)))
    return found


def stage(source: Path) -> None:
    """Copies pages and pictures into a directory, and writes the pages of contents there."""
    shutil.rmtree(source, ignore_errors=True)
    for name in TOP:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, source / name)
    kept = shutil.ignore_patterns("*.py", "__pycache__")
    shutil.copytree(REPOSITORY / HANDBOOK, source / HANDBOOK, ignore=kept)
    for folder in ("dashboards/pictures", "emulator/examples"):
        shutil.copytree(REPOSITORY / folder, source / folder)
    contents = sections((REPOSITORY / HANDBOOK / "README.md").read_text())
    for name, text in contents.items():
        (source / HANDBOOK / f"{name}.md").write_text(text)
    listed = "".join(contents.values())
    others = [name.removesuffix(".md") for name in TOP[1:]]
    others = [name for name in others if f"\n/{name}\n" not in listed]
    project = "# The project\n\n" + "".join(f"- [](/{name}.md)\n" for name in others)
    (source / "project.md").write_text(project + toctree(others))
    readme = (REPOSITORY / "README.md").read_text()
    parts = [*(f"{HANDBOOK}/{name}" for name in contents), "project"]
    (source / "index.md").write_text(readme + toctree(parts))
    for page in source.rglob("*.md"):  # They link to README, which is the first page.
        up = "../" * len(page.relative_to(source).parent.parts)
        page.write_text(page.read_text().replace(f"]({up}README.md", f"]({up}index.md"))
        draw(page)
    (source / "README.md").unlink()
    whole = source / HANDBOOK / "README.md"
    whole.write_text(
        "---\norphan: true\n---\n" + whole.read_text()
    )  # The parts' pages have all of it.
    (source / "_static").mkdir()
    (source / "_static" / "site.css").write_text(CSS)


def build(directory: Path) -> int:
    """Builds the site; returns 0, or 1 if something is wrong with a page."""
    source = directory / "source"
    stage(source)
    app = Sphinx(
        srcdir=source,
        confdir=None,
        outdir=directory / "html",
        doctreedir=directory / "doctrees",
        buildername="html",
        confoverrides=SETTINGS,
        freshenv=True,
        warningiserror=True,
        status=None,
    )
    app.build(force_all=True)
    return int(app.statuscode)


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]).absolute()))
