import os
import socket
import sys

import pytest

from linklab.lab.network.listening import Listening, all_listening, listening

TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0100000A:01BB 0200010A:8E24 01 00000000:00000000 00:00000000 00000000     0        0 2 1
   2: 0100000A:01BB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 3 1
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue
   0: 00000000000000000000000000000000:01BB 00000000000000000000000000000000:0000 0A 00000000:0
   1: 0000000000000000FFFF00000100000A:01BB 00000000000000000000000000000000:0000 0A 00000000:0
   2: B80D0120000000000000000001000000:01BB 00000000000000000000000000000000:0000 0A 00000000:0
"""


def test_sockets_that_wait_are_read_as_the_kernel_prints_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "byteorder", "little")
    assert listening(TCP, "tcp") == [
        Listening("tcp", "127.0.0.1", 8080),
        Listening("tcp", "10.0.0.1", 443),
    ]
    assert listening(TCP6, "tcp") == [
        Listening("tcp", "::", 443),
        Listening("tcp", "::ffff:10.0.0.1", 443),
        Listening("tcp", "2001:db8::1", 443),
    ]
    reached = [one.families for one in (*listening(TCP, "tcp"), *listening(TCP6, "tcp"))]
    assert reached == [(), (4,), (4, 6), (4,), (6,)]


def test_what_a_process_can_see_is_found() -> None:
    before = set(all_listening(os.getpid()))
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        for one in (tcp, udp):
            one.bind(("127.0.0.1", 0))
        tcp.listen()
        wanted = {
            Listening("tcp", *tcp.getsockname()),
            Listening("udp", *udp.getsockname()),
        }
        assert wanted <= set(all_listening(os.getpid()))
    assert not wanted & before
