"""Makes `reference/http-api.md` from the operations and types of linklab's HTTP API.

.venv/bin/python emulator/handbook/http_api.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from linklab.realtime import openapi
from linklab.realtime.operations import OPERATIONS, Operation

KEYS: Final = "../../../profiles/README.md"
EVERYWHERE: Final = (400, 411, 413)
"""Refusals that the head of the page explains."""

PAGE: Final = Path(__file__).parent / "reference" / "http-api.md"

HEAD: Final = """\
# HTTP API

`emulator/handbook/http_api.py` makes this page from the code. Do not edit it by hand. `linklab live` and `linklab serve`
serve the API, and its OpenAPI document at `/openapi.json`. `live` begins with a lab, `serve` waits for one.
[How to use it](../how-to/use-linklab-from-any-language.md) has examples.

What changes a lab needs the token in the header `X-Linklab`. A request whose body is no such JSON, has no length or
more than 4 kB is refused with 400, 411 or 413. The body of a refusal is a [Problem](#problem). Bodies are JSON. Quantities
are text with units, as in [scenario files](../../../profiles/README.md).

| request | what it does |
|---|---|
"""


def cell(text: str) -> str:
    """Returns text as a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())


def type_of(schema: dict[str, Any]) -> str:
    """Returns a property's type in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(type_of(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if schema["type"] == "array":
        return f"list of {type_of(schema['items'])}"
    if isinstance(inner := schema.get("additionalProperties"), dict):
        return f"{type_of(inner)} by name"
    return str(schema["type"])


def operation(one: Operation) -> Iterator[str]:
    """Yields the lines of an operation."""
    yield f"\n## {one.method} {one.path}\n\n"
    if one.asks is not None:
        yield f"The body is a [{one.asks.__name__}](#{one.asks.__name__.lower()}). "
    says = "" if one.says is None else f" with [{one.says.__name__}](#{one.says.__name__.lower()})"
    yield f"The answer is {one.success.value}{says}, or:\n\n| refusal | why |\n|---|---|\n"
    for status, why in openapi.statuses(one):
        if status.value not in EVERYWHERE and status != one.success:
            yield f"| {status.value} | {why} |\n"


def kind(name: str, schema: dict[str, Any]) -> Iterator[str]:
    """Yields the lines of a type."""
    yield f"\n## {name}\n\n{schema['description']}\n"
    if name == "LinkImpairments":
        yield f"The fields are the [keys of `impair_down`]({KEYS}), as text or as true and false.\n"
        return
    yield "\n| field | type | meaning |\n|---|---|---|\n"
    for field, about in schema["properties"].items():
        said = about.get("description", "").replace("; allowed: ", ". Allowed: ")
        needed = " Needed." if field in schema.get("required", ()) and "Start" in name else ""
        said = f"{said}.{needed}" if needed else said
        yield f"| `{field}` | {cell(type_of(about))} | {cell(said)}{' ' if said else ''}|\n"


def markdown() -> str:
    """Returns the page."""
    parts = [HEAD]
    for one in OPERATIONS:
        place = f"{one.method} {one.path}".lower()
        anchor = "".join(c for c in place if c.isalnum() or c == " ").replace(" ", "-")
        parts.append(f"| [`{one.method} {one.path}`](#{anchor}) | {cell(one.does)} |\n")
    for one in OPERATIONS:
        parts += operation(one)
    for name, schema in openapi.document("")["components"]["schemas"].items():
        parts += kind(name, schema)
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(markdown())
