import json
import random
import socket
import struct
import subprocess
import sys

import pytest

from linklab.lab.network import name_server
from linklab.lab.network.name_server import answer

KNOWN = {
    "server": ("10.0.0.1",),
    "server.linklab": ("10.0.0.1",),
    "both.linklab": ("10.0.0.1", "2001:db8::1"),
}
A, AAAA, PTR = 1, 28, 12


def question(name: str, kind: int = A, flags: int = 0x0100) -> bytes:
    labels = b"".join(bytes([len(one)]) + one.encode() for one in name.split(".") if one)
    head = struct.pack("!HHHHHH", 7, flags, 1, 0, 0, 0)
    return head + labels + b"\0" + struct.pack("!HH", kind, 1)


FOUND, NOT_FOUND = 0x8580, 0x8583
IPV4, IPV6 = socket.inet_aton("10.0.0.1"), socket.inet_pton(socket.AF_INET6, "2001:db8::1")


@pytest.mark.parametrize(
    ("name", "kind", "flags", "address"),
    [
        ("server", A, FOUND, IPV4),
        ("Server.Linklab", A, FOUND, IPV4),
        ("server", AAAA, FOUND, b""),
        ("both.linklab", A, FOUND, IPV4),
        ("both.linklab", AAAA, FOUND, IPV6),
        ("nothing.example", A, NOT_FOUND, b""),
        ("server.example", AAAA, NOT_FOUND, b""),
        ("1.0.0.10.in-addr.arpa", PTR, NOT_FOUND, b""),
        ("", A, NOT_FOUND, b""),
    ],
)
def test_a_name_has_its_address_of_each_family(
    name: str, kind: int, flags: int, address: bytes
) -> None:
    asked = question(name, kind)
    head = struct.pack("!HHHHHH", 7, flags, 1, bool(address), 0, 0)
    record = struct.pack("!HHHIH", 0xC00C, kind, 1, 0, len(address)) + address
    assert answer(asked, KNOWN) == head + asked[12:] + (record if address else b"")


def test_what_follows_the_question_is_not_repeated() -> None:
    """EDNS, for one (RFC 6891)."""
    asked = question("server")
    more = asked[:10] + b"\0\1" + asked[12:] + b"\0\0\x29\x04\xd0\0\0\0\0\0\0"
    assert answer(more, KNOWN) == answer(asked, KNOWN)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        question("server")[:11],
        question("server")[:-1],
        question("server")[:15],
        question("server", flags=0x8180),  # An answer.
        question("server", flags=0x2800),  # An update.
        question("server")[:4] + b"\0\2" + question("server")[6:],
        question("server")[:12] + b"\xc0\x0c\0\1\0\1",  # A name that points at itself.
    ],
)
def test_what_is_no_question_gets_no_answer(message: bytes) -> None:
    assert answer(message, KNOWN) is None


def test_nothing_that_comes_ends_it() -> None:
    """A socket's buffer may hold anything."""
    source = random.Random(1)
    for _ in range(20_000):
        message = bytearray(question("server.linklab"))
        for _ in range(source.randrange(4)):
            message[source.randrange(len(message))] = source.randrange(256)
        said = answer(bytes(message[: source.randrange(len(message) + 1)]), KNOWN)
        assert said is None or len(said) <= len(message) + 16


def test_it_answers_on_every_socket() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as two,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking,
    ):
        for sock in (one, two):
            sock.bind(("127.0.0.1", 0))
        descriptors = [one.fileno(), two.fileno()]
        command = [sys.executable, "-I", "-S", name_server.__file__, json.dumps(KNOWN)]
        program = subprocess.Popen([*command, *map(str, descriptors)], pass_fds=descriptors)
        try:
            asking.settimeout(10)
            for sock in (one, two, one):
                asking.sendto(b"nonsense", sock.getsockname())
                asking.sendto(question("server"), sock.getsockname())
                assert asking.recv(512) == answer(question("server"), KNOWN)
        finally:
            program.kill()
            program.wait()
