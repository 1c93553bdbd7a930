import contextlib
import errno
import os
import socket
from pathlib import Path

import dpkt
import pytest

from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import inside
from linklab.lab.kernel.netlink import Channel
from linklab.lab.network import packets
from linklab.lab.network.hosts import LabError

FRAME = bytes(12) + b"\x88\xb5"
"""Nowhere, and the type for experiments (IEEE 802)."""


def sent(namespace: int, *payloads: bytes) -> None:
    with inside(namespace), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind(("one", 0))
        for payload in payloads:
            wire.send(FRAME + payload)


@pytest.fixture
def cable(namespace: int) -> int:
    with inside(namespace), contextlib.closing(Channel()) as channel:
        channel.request(rtnetlink.add_pair("one", "two"))
        for device in ("one", "two"):
            channel.request(rtnetlink.set_up(socket.if_nametoindex(device), up=True))
    return namespace


def test_every_packet_is_there_with_its_time(cable: int, tmp_path: Path) -> None:
    payloads = [bytes([n]) * 60 for n in range(200)]
    with packets.recorded(cable, {"wifi": "one", "lte": "two"}, tmp_path):
        sent(cable, *payloads)
    for link in ("wifi", "lte"):
        with (tmp_path / f"{link}.pcap").open("rb") as file:
            reader = dpkt.pcap.Reader(file)
            assert reader.datalink() == dpkt.pcap.DLT_EN10MB
            found = [(t_s, content) for t_s, content in reader if content[:14] == FRAME]
        assert [content[14:] for _, content in found] == payloads
        times = [t_s for t_s, _ in found]
        assert times == sorted(times)
        assert 0 <= times[-1] - times[0] < 60
        assert len(set(times)) > 1


def test_missed_packets_are_said(
    cable: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packets, "_ROOM_BYTES", 4096)
    monkeypatch.setattr(packets, "_write", lambda *_: sent(cable, *[bytes(1000)] * 100))
    with (
        pytest.raises(LabError, match="packets of wifi came faster than they could be recorded"),
        packets.recorded(cable, {"wifi": "two"}, tmp_path),
    ):
        pass


def test_a_full_disk_is_said(cable: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(packets, "_write", fail)
    with (
        pytest.raises(LabError, match="packets of wifi could not be recorded: No space left"),
        packets.recorded(cable, {"wifi": "one"}, tmp_path),
    ):
        pass
