"""Makes the OpenAPI document of the HTTP API from its operations and types."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import msgspec

from linklab.realtime.link_command import GUARD
from linklab.realtime.messages import Problem
from linklab.realtime.operations import OPERATIONS, Operation, found

_JSON: Final = "application/json"
_VARIABLES: Final = {"name": ("a link's name, such as wifi", "wifi")}
"""The variables of paths, each with its description and an example."""


def document(version: str) -> dict[str, Any]:
    """Returns the OpenAPI 3.1 document of the API of a version of linklab."""
    types = [kind for one in OPERATIONS for kind in (one.asks, one.says) if kind is not None]
    _, schemas = msgspec.json.schema_components(
        dict.fromkeys([*types, Problem]), ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, Any] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "linklab",
            "version": version,
            "description": "Starts a lab of emulated links, changes its links and stops it.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": GUARD},
            },
        },
    }


def _operation(one: Operation) -> dict[str, Any]:
    says: dict[str, Any] = {"description": one.success.phrase}
    if one.says is not None:
        says["content"] = _content(one.says)
    answers = {str(one.success.value): says} | {
        str(status.value): {"description": why, "content": _content(Problem)}
        for status, why in sorted(one.failures.items())
    }
    made: dict[str, Any] = {"operationId": one.name, "summary": one.does, "responses": answers}
    _, variables = found(one.path)
    if variables:
        made["parameters"] = [_parameter(name) for name in variables]
    if one.asks is not None:
        content = _content(one.asks)
        content[_JSON]["example"] = one.example
        made["requestBody"] = {"required": True, "content": content}
    if one.changes:
        made["security"] = [{"token": []}]
    return made


def _parameter(name: str) -> dict[str, Any]:
    about, example = _VARIABLES[name]
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": about,
        "schema": {"type": "string", "minLength": 1},
        "example": example,
    }


def _content(kind: Any) -> dict[str, Any]:
    return {_JSON: {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}


def statuses(one: Operation) -> list[tuple[HTTPStatus, str]]:
    """Returns all statuses of an operation, and what they mean."""
    return [(one.success, "done"), *sorted(one.failures.items())]
