"""Tests that linklab's types read multilink's run files as multilink's own tests write them.

A field that is added, dropped or renamed on one side fails here.
"""

import json
from collections.abc import Mapping

import msgspec

from linklab.core.paths import REPOSITORY
from linklab.core.records import ClientRecord, Tail
from linklab.runs.run_figures import ClientSummary, LinkSummary

GOLDEN = REPOSITORY / "client" / "internal" / "rundir" / "testdata" / "golden"

UNREAD = {"algorithm", "links", "options", "protocol", "etag", "to", "retry_ns", "download_ns"}
"""Fields of `client.jsonl` that records leave out. The first line's are read by `field/recording`."""

UNREAD_SUMMARY = {"warning"}
UNREAD_LINK = {"failovers"}


def fields(kind: type[msgspec.Struct]) -> set[str]:
    return set(kind.__struct_encode_fields__)


def assert_read(document: Mapping[str, object], record: msgspec.Struct) -> None:
    """The record has what the document says."""
    kind = type(record)
    for attribute, name in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        if name in document:
            assert getattr(record, attribute) == document[name], name


def test_every_field_of_an_event_is_read_or_known_not_to_be() -> None:
    file = GOLDEN / "client.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    written = {name for line in lines for name in line}
    assert written - UNREAD == fields(ClientRecord)
    assert written >= UNREAD
    records = Tail(GOLDEN, ClientRecord).read()
    assert len(records) == len(lines)
    for line, record in zip(lines, records, strict=True):
        assert_read(line, record)


def test_every_field_of_the_summary_is_read_or_known_not_to_be() -> None:
    content = (GOLDEN / "client.json").read_bytes()
    document = json.loads(content)
    assert document.keys() - UNREAD_SUMMARY == fields(ClientSummary)
    assert document.keys() >= UNREAD_SUMMARY
    summary = msgspec.json.decode(content, type=ClientSummary)
    links = document.pop("links")
    assert_read(document, summary)
    for name, link in links.items():
        assert link.keys() - UNREAD_LINK == fields(LinkSummary)
        assert link.keys() >= UNREAD_LINK
        assert_read(link, summary.links[name])
