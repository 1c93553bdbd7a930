import os
import zlib
from pathlib import Path

import msgspec
import pytest

from linklab.campaign import wire_format
from linklab.campaign.wire_format import ParcelError
from linklab.lab.network.services import OwnServer
from linklab.models.trace import Trace
from linklab.runs.runner import RunRequest
from linklab.scenario import find, to_yaml


def test_a_request_arrives_as_it_was_sent(tmp_path: Path) -> None:
    sent = RunRequest(find("live"), "alg3", 7, shift_s=0.5)
    assert any(link.model(Trace) for link in sent.scenario.links.values()), "a scenario with traces"
    encoded = msgspec.msgpack.encode(wire_format.wrap(sent, None, {}))
    got = wire_format.unwrap(msgspec.msgpack.decode(encoded, type=wire_format.Parcel), tmp_path)
    assert (got.client, got.seed, got.shift_s) == ("alg3", 7, 0.5)
    assert got.label == sent.label
    for name, link in got.scenario.links.items():
        theirs = sent.scenario.links[name].model(Trace)
        trace = link.model(Trace)
        if trace is not None and theirs is not None:
            assert trace.file.is_relative_to(tmp_path)
            assert trace.file.name == theirs.file.name
            assert trace.file.read_bytes() == theirs.file.read_bytes()


def test_a_command_of_the_users_arrives(tmp_path: Path) -> None:
    server = OwnServer(("serve", "{port}"), 8080)
    sent = RunRequest(
        find("static-80-50"),
        None,
        1,
        command=("curl", "{url}"),
        name="mine",
        server=server,
        beside="/data",
    )
    encoded = msgspec.msgpack.encode(wire_format.wrap(sent, None, {}))
    got = wire_format.unwrap(msgspec.msgpack.decode(encoded, type=wire_format.Parcel), tmp_path)
    assert (got.server, got.beside) == (server, "/data")
    assert (got.command, got.name, got.label) == (
        ("curl", "{url}"),
        "mine",
        "static-80-50-mine-seed1",
    )
    assert to_yaml(got.scenario) == to_yaml(sent.scenario)


def test_only_plain_files_travel(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("a secret")
    there = tmp_path / "there"
    (there / "traces").mkdir(parents=True)
    (there / "traces" / "kept").write_text("kept")
    (there / "link").symlink_to(tmp_path / "victim")
    (there / "directory").symlink_to(tmp_path)
    os.mkfifo(there / "pipe")
    wire_format.unpack(wire_format.pack(there), tmp_path / "back")
    assert [path.name for path in (tmp_path / "back").rglob("*")] == ["traces", "kept"]


def test_a_directory_comes_back_byte_for_byte(tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / "traces").mkdir(parents=True)
    (there / "run.json").write_bytes(b"{}\n")
    (there / "traces" / "x.csv").write_bytes(bytes(range(256)))
    here = tmp_path / "out" / "one"
    wire_format.unpack(wire_format.pack(there), here)
    assert (here / "run.json").read_bytes() == b"{}\n"
    assert (here / "traces" / "x.csv").read_bytes() == bytes(range(256))
    assert [path.name for path in here.parent.iterdir()] == ["one"]


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", ""])
def test_nothing_is_written_outside_the_directory(tmp_path: Path, name: str) -> None:
    packed = zlib.compress(msgspec.msgpack.encode({"good": b"", name: b""}))
    with pytest.raises(ParcelError, match="is no file of a run directory"):
        wire_format.unpack(packed, tmp_path / "out" / "one")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("packed", [b"", b"junk", zlib.compress(b"\xc1")])
def test_damage_is_noticed(tmp_path: Path, packed: bytes) -> None:
    with pytest.raises(ParcelError, match="one: what came back is damaged"):
        wire_format.unpack(packed, tmp_path / "one")
    assert not (tmp_path / "one").exists()
