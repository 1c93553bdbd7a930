import socket
import tempfile
from pathlib import Path

import pytest

from linklab.core.free_ports import first_of, held_ports
from linklab.places.guest import boot, gateway
from linklab.places.guest.ending import GuestError
from linklab.places.guest.gateway import Gateway, GatewayError, Way

needs_program = pytest.mark.skipif(gateway.obstacle() is not None, reason=str(gateway.obstacle()))


def test_a_guest_in_virtual_time_never_has_the_device() -> None:
    with pytest.raises(GuestError, match="no way outside in virtual time"):
        boot.kernel_arguments("virtual", 1, 1 << 30, device=7)
    assert not any("vec" in one for one in boot.kernel_arguments("virtual", 1, 1 << 30))
    assert "vec0:transport=fd,fd=7,mtu=16000" in boot.kernel_arguments("real", 1, 1 << 30, device=7)


@needs_program
def test_ports_of_the_wanted_address_are_open_as_long_as_it_runs() -> None:
    held = held_ports("127.0.0.3", 0, 1)
    port = first_of(held)

    def is_open(address: str) -> bool:
        with socket.socket() as peer:
            return peer.connect_ex((address, port)) == 0

    way = Gateway(Way(held))
    held[0].close()
    assert (is_open("127.0.0.3"), is_open("127.0.0.1")) == (True, False)
    way.close()
    assert not is_open("127.0.0.3")


@needs_program
def test_a_temporary_directory_too_long_for_sockets_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / ("d" * 100)
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    with pytest.raises(GatewayError, match=r"d{100} is too long .*: set TMPDIR to a shorter one"):
        Gateway(Way())
    assert list(directory.iterdir()) == []


@needs_program
@pytest.mark.parametrize("free", [True, False])
def test_a_port_that_somebody_took_first_is_left_to_them(
    monkeypatch: pytest.MonkeyPatch, *, free: bool
) -> None:
    unused = gateway._unused_port
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        socket.create_server(("127.0.0.1", 0)) as own,
    ):
        port = taken.getsockname()[1]
        found = iter([port] * 4 + [unused() if free else port])
        monkeypatch.setattr(gateway, "_unused_port", lambda: next(found))
        monkeypatch.setattr(gateway, "_LANES", 1)
        if free:
            Gateway(Way((own,))).close()
        else:
            with pytest.raises(GatewayError, match=f"port {port} of 127.0.0.1: "):
                Gateway(Way((own,)))
    assert next(found, None) is None


def test_a_missing_program_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(GatewayError, match=r"slirp4netns is missing: apt-get install slirp4netns"):
        Gateway(Way())
