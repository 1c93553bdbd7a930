import random
import socket
from pathlib import Path

import pytest

from linklab.core.free_ports import free_ports


def test_no_connection_that_somebody_opens_takes_one() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(free_ports(4) + 4 <= lowest for _ in range(200))


def test_a_range_with_a_port_that_is_taken_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_ports(6)
    other = first + 3
    drawn = iter([first, other])
    monkeypatch.setattr(random.SystemRandom, "randrange", lambda *_: next(drawn))
    with socket.create_server(("127.0.0.1", first + 2)):
        assert free_ports(3) == other
