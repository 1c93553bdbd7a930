from pathlib import Path

import pytest

from linklab.core.impairments import Impairments
from linklab.core.records import FILES, EventRecord, line
from linklab.lab.player import control
from linklab.lab.player.control import Command, Inbox
from linklab.models.events import REFUSED


def test_commands_arrive_in_order_and_once(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    assert inbox.read() == []
    sent = [
        Command(link="wifi", carrier="down"),
        Command(next=True),
        Command(link="lte", rtt_s=0.1, impair_up=Impairments(loss_ratio=0.01, in_order=False)),
    ]
    control.send(tmp_path, sent[0])
    control.send(tmp_path, sent[1])
    assert inbox.read() == sent[:2]
    assert inbox.read() == []
    control.send(tmp_path, sent[2])
    assert inbox.read() == sent[2:]


def test_a_command_waits_for_the_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number tells its records from those of other commands."""
    monkeypatch.setattr(control, "ANSWER_S", 0.0)
    numbers = [control.send(tmp_path, Command(link="wifi", carrier="down")) for _ in range(3)]
    assert numbers == [1, 2, 3]
    assert not control.wait_until_executed(tmp_path, 1)
    with (tmp_path / FILES[EventRecord]).open("wb") as events:
        events.write(line(EventRecord(0.1, "wifi", "carrier-down")))
        events.write(line(EventRecord(0.1, "wifi", "live", "carrier down", 1)))
        events.write(line(EventRecord(0.2, "wifi", REFUSED, "no radio", 2)))
    assert control.wait_until_executed(tmp_path, 1)
    with pytest.raises(ValueError, match="no radio"):
        control.wait_until_executed(tmp_path, 2)
    assert not control.wait_until_executed(tmp_path, 3)


def test_commands_are_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / control.FILE).symlink_to("victim")
    with pytest.raises(OSError, match="plain file"):
        control.send(tmp_path, control.Command(next=True))
    assert not (tmp_path / "victim").exists()


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    inbox, file = Inbox(tmp_path), tmp_path / control.FILE
    file.write_bytes(b'{"link":"wifi"}\n{"link":')
    assert inbox.read() == [Command(link="wifi")]
    with file.open("ab") as stream:
        stream.write(b'"lte"}\n')
    assert inbox.read() == [Command(link="lte")]


def test_what_is_no_command_is_named_and_the_next_one_counts(tmp_path: Path) -> None:
    inbox, file = Inbox(tmp_path), tmp_path / control.FILE
    file.write_bytes(b'{"lnik":"wifi"}\nnonsense\n\xff\n{"down_rate_bps":"x"}\n{"next":true}\n')
    *refused, last = inbox.read()
    assert last == Command(next=True)
    assert len(refused) == 4
    assert all(isinstance(one, str) and one.startswith("control.jsonl: ") for one in refused)
    assert "lnik" in str(refused[0])


def test_a_command_in_words_begins_each_change_with_its_name() -> None:
    impaired = Impairments(loss_ratio=0.01, bleach_ecn=True)
    command = Command(link="wifi", handover="ap2", impair_up=impaired, duration_s=0.05)
    assert set(command.in_words().split(", ")) == {
        "handover ap2 for 50 ms",
        "impair_up.loss 1 % for 50 ms",
        "impair_up.bleach_ecn true for 50 ms",
    }
