import json
import runpy
from http import HTTPStatus

import msgspec

from linklab.core.paths import REPOSITORY
from linklab.realtime import openapi
from linklab.realtime.messages import decoded
from linklab.realtime.operations import OPERATIONS, found


def test_every_operation_is_in_the_document_with_its_statuses() -> None:
    made = openapi.document("1")
    for one in OPERATIONS:
        described = made["paths"][one.path][one.method.lower()]
        assert set(described["responses"]) == {
            str(status.value) for status in (one.success, *one.failures)
        }
        assert ("security" in described) == (one.method != "GET")
        assert HTTPStatus.FORBIDDEN in one.failures
        if one.asks is not None:
            decoded(json.dumps(one.example).encode(), one.asks)


def test_every_type_that_is_named_is_there() -> None:
    made = openapi.document("1")
    text = json.dumps(made)
    named = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert named == set(made["components"]["schemas"])
    assert msgspec.json.decode(text) == made


def test_paths_are_found_with_their_variables() -> None:
    assert set(found("/lab")[0]) == {"GET", "POST", "PATCH", "DELETE"}
    assert found("/lab/links/w%2Fi%20fi")[1] == {"name": "w/i fi"}
    for path in ("/", "/lab/", "/lab/links/", "/lab/links/a/b", "//lab", "/lab/links"):
        assert found(path) == ({}, {})


def test_the_page_of_the_http_api_is_of_the_code() -> None:
    handbook = REPOSITORY / "emulator" / "handbook"
    made = runpy.run_path(str(handbook / "http_api.py"))["markdown"]()
    page = handbook / "reference" / "http-api.md"
    assert page.read_text() == made, "python emulator/handbook/http_api.py"
