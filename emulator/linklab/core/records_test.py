"""Tests of records.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from linklab.core.records import (
    ClientRecord,
    EventRecord,
    Follower,
    LinkRecord,
    QueueRecord,
    RecordError,
    Tail,
    read_all,
)

EVENT = {"t_s": 1.0, "link": "wifi", "kind": "rrc", "detail": "idle"}


def append(path: Path, text: str | bytes) -> None:
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def test_a_tail_gives_each_line_once_and_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = Tail(path, EventRecord)
    assert tail.read() == []
    line = json.dumps(EVENT) + "\n"
    append(path, line + line[:10])
    assert tail.read() == [EventRecord(1.0, "wifi", "rrc")]
    assert tail.read() == []
    append(path, line[10:] + line)
    assert len(tail.read()) == 2


def test_a_page_that_has_not_been_written_back_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = Tail(path, EventRecord)
    line = json.dumps(EVENT).encode() + b"\n"
    path.write_bytes(line + bytes(len(line)) + line)
    assert len(tail.read()) == 1
    path.write_bytes(3 * line)
    assert len(tail.read()) == 2


def test_what_is_no_record_is_named_by_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    append(path, json.dumps(EVENT) + '\n{"t_s": "soon", "link": "", "kind": ""}\n')
    with pytest.raises(RecordError, match=r"events\.jsonl:2: .*t_s"):
        Tail(path, EventRecord).read()


def test_a_run_directorys_files_come_in_the_order_of_time(tmp_path: Path) -> None:
    link = {"t_s": 0.0, "late_s": 0.0, "link": "wifi", "up": True, "down_rate_bps": 1,
            "up_rate_bps": 1, "delay_s": 0.0, "loss_ratio": 0.0, "jitter_s": 0.0, "lease": 0}  # fmt: skip
    queue = {"t_s": 1.5, "link": "wifi", "direction": "down", "sent_bytes": 1, "queue_bytes": 0,
             "dropped_packets": 0, "lost_packets": 0}  # fmt: skip
    for name, line in (
        ("links.jsonl", link), ("queues.jsonl", queue), ("events.jsonl", EVENT),
        ("client.jsonl", {"t_ns": 10**9, "event": "start", "links": []}),
    ):  # fmt: skip
        append(tmp_path / name, json.dumps(line) + "\n")
    found = list(read_all(tmp_path, shift_s=1.0))
    assert [type(record) for _, record in found] == [
        LinkRecord, EventRecord, QueueRecord, ClientRecord,
    ]  # fmt: skip
    assert [t_s for t_s, _ in found] == [0.0, 1.0, 1.5, 2.0]
    follower = Follower(tmp_path)
    assert len(follower.read()) == 4
    append(tmp_path / "events.jsonl", json.dumps(EVENT) + "\n")
    assert [t_s for t_s, _ in follower.read()] == [1.0]
