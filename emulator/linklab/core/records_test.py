"""Tests records.py."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from linklab.core import records
from linklab.core.link_state import Direction, LinkState
from linklab.core.records import (
    FILES,
    ClientRecord,
    EventRecord,
    Follower,
    LinkRecord,
    MachineRecord,
    ProcessRecord,
    QueueRecord,
    Record,
    RecordError,
    Tail,
    line,
    read_all,
)

EVENT = {"t_s": 1.0, "link": "wifi", "kind": "rrc", "detail": "idle"}


def append(path: Path, text: str | bytes) -> None:
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def test_a_tail_gives_each_line_once_and_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = Tail(tmp_path, EventRecord)
    assert tail.read() == []
    event = json.dumps(EVENT) + "\n"
    append(path, event + event[:10])
    assert tail.read() == [EventRecord(1.0, "wifi", "rrc", "idle")]
    assert tail.read() == []
    append(path, event[10:] + event)
    assert len(tail.read()) == 2


def test_a_page_that_has_not_been_written_back_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = Tail(tmp_path, EventRecord)
    event = json.dumps(EVENT).encode() + b"\n"
    path.write_bytes(event + bytes(len(event)) + event)
    assert len(tail.read()) == 1
    path.write_bytes(3 * event)
    assert len(tail.read()) == 2


def sampled(
    t_s: float, link: str, sent_bytes: int, direction: Direction = "down", **changed: Any
) -> QueueRecord:
    """Returns a sample of a queue in which no packet waits or is lost."""
    counters = {"queue_bytes": 0, "dropped_packets": 0, "lost_packets": 0} | changed
    return QueueRecord(t_s=t_s, link=link, direction=direction, sent_bytes=sent_bytes, **counters)


def applied(t_s: float, late_s: float = 0.0) -> LinkRecord:
    """Returns the state of a link that is applied late."""
    return LinkRecord.of(LinkState(True, 1, 1, 0.0, 0.0, 0.0), t_s=t_s, late_s=late_s, link="wifi")


NEW = {
    LinkRecord.of(
        LinkState(
            up=True,
            down_rate_bps=80_000_000,
            up_rate_bps=8_000_000,
            delay_s=0.01,
            jitter_s=0.0,
            loss_ratio=0.001,
            signal_dbm=-61.5,
        ),
        t_s=1.5,
        late_s=0.0001,
        link="wifi",
    ): b'{"t_s":1.5,"late_s":0.0001,"link":"wifi","up":true,"down_rate_bps":80000000,'
    b'"up_rate_bps":8000000,"delay_s":0.01,"jitter_s":0.0,"loss_ratio":0.001,'
    b'"loss_burst_packets":1.0,"blackout":false,"hold_down":false,"hold_up":false,'
    b'"access_point":"","lease":0,"signal_dbm":-61.5,"carriers":1,"rrc":"connected"}',
    sampled(
        0.5, "lte", 66, "up", queue_bytes=1, dropped_packets=2, lost_packets=3
    ): b'{"t_s":0.5,"late_s":0.0,"link":"lte","direction":"up","sent_bytes":66,"queue_bytes":1,'
    b'"dropped_packets":2,"lost_packets":3}',
    EventRecord(2.0, "wifi", "handover", "ap2"): b'{"t_s":2.0,"link":"wifi","kind":"handover",'
    b'"detail":"ap2"}',
    MachineRecord(3.0, 0.25): b'{"t_s":3.0,"busy_ratio":0.25}',
    ProcessRecord(
        t_s=1.0, process="client", cpu_s=0.25, rss_bytes=None
    ): b'{"t_s":1.0,"process":"client","cpu_s":0.25,"rss_bytes":null}',
}


@pytest.mark.parametrize(("record", "written"), NEW.items(), ids=lambda one: type(one).__name__)
def test_a_record_is_written_and_read_as_the_same(
    record: LinkRecord | QueueRecord | EventRecord | MachineRecord | ProcessRecord,
    written: bytes,
    tmp_path: Path,
) -> None:
    assert line(record) == written + b"\n"
    append(tmp_path / FILES[type(record)], line(record))
    assert Tail(tmp_path, type(record)).read() == [record]


OLD = (
    (
        LinkRecord,
        '{"t_s":0.0,"late_s":0.0,"link":"wifi","up":true,"down_rate_bps":1000,'
        '"up_rate_bps":1000,"delay_s":0.01,"jitter_s":0.0,"loss_ratio":0.0}',
    ),
    (
        QueueRecord,
        '{"t_s":0.5,"link":"wifi","direction":"down","sent_bytes":1,"queue_bytes":0,'
        '"dropped_packets":0,"lost_packets":0}',
    ),
    (EventRecord, '{"t_s":1.0,"link":"","kind":"next"}'),
)


@pytest.mark.parametrize(("kind", "written"), OLD)
def test_lines_of_older_runs_are_read(kind: type[Record], written: str, tmp_path: Path) -> None:
    append(tmp_path / FILES[kind], written + "\n")
    (record,) = Tail(tmp_path, kind).read()
    assert isinstance(record, kind)


def test_a_run_directorys_files_come_in_the_order_of_time(tmp_path: Path) -> None:
    append(tmp_path / "links.jsonl", line(applied(0.0)))
    append(tmp_path / "queues.jsonl", line(sampled(1.5, "wifi", 1)))
    append(tmp_path / "events.jsonl", json.dumps(EVENT) + "\n")
    append(tmp_path / "client.jsonl", '{"t_ns": 1000000000, "event": "start", "links": []}\n')
    found = list(read_all(tmp_path, shift_s=1.0))
    assert [type(record) for _, record in found] == [
        LinkRecord,
        EventRecord,
        QueueRecord,
        ClientRecord,
    ]
    assert [t_s for t_s, _ in found] == [0.0, 1.0, 1.5, 2.0]
    follower = Follower(tmp_path)
    assert len(follower.read()) == 4
    append(tmp_path / "events.jsonl", json.dumps(EVENT) + "\n")
    assert [t_s for t_s, _ in follower.read()] == [1.0]


def test_a_links_state_counts_from_when_it_was_applied_and_what_was_noted_comes_first(
    tmp_path: Path,
) -> None:
    for late_s in (0.0, 0.1):
        append(tmp_path / "links.jsonl", line(applied(2.0, late_s)))
    append(tmp_path / "events.jsonl", json.dumps({**EVENT, "t_s": 2.0}) + "\n")
    found = list(read_all(tmp_path))
    assert [type(record) for _, record in found] == [EventRecord, LinkRecord, LinkRecord]
    assert [t_s for t_s, _ in found] == [2.0, 2.0, 2.1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"t_s": 1e308}, r"Expected `float` <= 604800\.0 - at `\$\.t_s`"),
        ({"t_s": -1}, r"Expected `float` >= 0\.0 - at `\$\.t_s`"),
        ({"kind": "k" * 2_000}, r"Expected `str` of length <= 1000 - at `\$\.kind`"),
        ({"detail": "k" * (2 << 20)}, r"is too long for a line; allowed: 1048576 bytes"),
    ],
)
def test_what_is_beyond_the_limits_is_named(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    append(tmp_path / "events.jsonl", json.dumps(EVENT) + "\n" + json.dumps(EVENT | changes) + "\n")
    with pytest.raises(RecordError, match=rf"events\.jsonl:2: {said}$"):
        Tail(tmp_path, EventRecord).read()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_number_that_is_none_is_refused(tmp_path: Path, number: str) -> None:
    append(tmp_path / "events.jsonl", f'{{"t_s": {number}, "link": "", "kind": ""}}\n')
    with pytest.raises(RecordError, match=r"events\.jsonl:1: "):
        Tail(tmp_path, EventRecord).read()


def test_holes_take_no_memory_and_too_many_lines_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    append(path, json.dumps(EVENT) + "\n")
    os.truncate(path, 1 << 40)
    assert len(Tail(tmp_path, EventRecord).read()) == 1
    monkeypatch.setattr(records, "MOST_LINES", 2)
    path.write_text(3 * (json.dumps(EVENT) + "\n"))
    with pytest.raises(RecordError, match=r"events\.jsonl:3: is one line too many; allowed: 2$"):
        Tail(tmp_path, EventRecord).read()


def test_a_document_is_read_within_limits_too(tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(EVENT))
    assert records.document(path, EventRecord).kind == "rrc"
    path.write_text("[" * 10_000)
    with pytest.raises(RecordError, match=r"event\.json: cannot be read: "):
        records.document(path, EventRecord)
