"""Makes `reference/modules.md` from the modules' docstrings and the Go packages' comments.

.venv/bin/python emulator/handbook/modules.py
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[2]
PACKAGE: Final = REPOSITORY / "emulator" / "linklab"
CLIENT: Final = REPOSITORY / "client"
PAGE: Final = Path(__file__).parent / "reference" / "modules.md"

HEAD: Final = """\
# Modules

`emulator/handbook/modules.py` makes this page from the docstrings. Do not edit it by hand.

A *pure* module touches no file, clock, socket or process. It calls only pure modules. Its docstring says
`Pure.`, and `purity_test.py` checks it.
"""


def docstring(path: Path) -> str:
    """Returns a module's docstring in one line per paragraph, "" if there is none."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return "\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def is_pure(path: Path) -> bool:
    """Tells whether a module's docstring calls it pure."""
    return re.search(r"\bPure\.", docstring(path)) is not None


def modules() -> list[Path]:
    """Lists the package's modules without tests."""
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.name.endswith("_test.py") and path.name != "conftest.py"
    ]


def first_sentence(text: str) -> str:
    """Returns the first sentence of a text as a cell of a table."""
    sentence = re.split(r"(?<=[.!?:])\s+(?=[A-Z`])|\n", text)[0].strip()
    return sentence.removesuffix(".").removesuffix(":").replace("|", "\\|")


def package_comments(parent: Path) -> Iterator[tuple[str, str]]:
    """Yields a folder's Go packages and their comments (https://go.dev/doc/comment)."""
    comment = re.compile(r"((?:^// ?.*\n)+)^package \w+$", re.M)
    for folder in sorted(path for path in parent.iterdir() if path.is_dir()):
        for file in sorted(folder.glob("*.go")):
            found = comment.search(file.read_text())
            if found and found[1].startswith("// Package "):
                text = re.sub(r"^// ?", "", found[1], flags=re.M)
                yield folder.name, " ".join(text.split("\n\n")[0].split()[2:])
                break


def markdown() -> str:
    """Returns the page."""
    lines = [HEAD]
    folder = None
    for path in modules():
        text = docstring(path)
        inside = path.parent.relative_to(PACKAGE)
        if path.name == "__init__.py" and not text:
            continue
        if inside != folder:
            folder = inside
            name = "linklab" if inside == Path() else f"linklab/{inside}"
            lines.append(f"\n## `{name}`\n\n| module | what it does | pure |\n|---|---|---|\n")
        module = "the folder" if path.name == "__init__.py" else f"`{path.stem}`"
        pure = "yes" if is_pure(path) else ""
        lines.append(f"| {module} | {first_sentence(text)} | {pure}{' ' if pure else ''}|\n")
    for parent in (CLIENT, CLIENT / "internal"):
        title = parent.relative_to(REPOSITORY)
        lines.append(f"\n## `{title}`\n\n| package | what it does |\n|---|---|\n")
        for package, text in package_comments(parent):
            lines.append(f"| `{package}` | {first_sentence(text)} |\n")
    return "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(markdown())
