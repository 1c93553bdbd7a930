import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator

import pytest

from linklab.lab.terminal import READY, Frames, PseudoTerminal, Window, resized, typed

WINDOW = Window(rows=30, columns=100)


def test_frames_come_out_whole_however_they_arrive() -> None:
    sent = typed(b"ls\r") + resized(WINDOW) + typed(b"") + typed(b"x" * 70_000)
    wanted = [b"ls\r", WINDOW, b"", b"x" * 70_000]
    assert list(Frames().of(sent)) == wanted
    frames = Frames()
    assert [one for at in range(len(sent)) for one in frames.of(sent[at : at + 1])] == wanted


@pytest.fixture
def channel() -> Iterator[tuple[socket.socket, int]]:
    """The user's end; the other is a PseudoTerminal's, which closes it."""
    own, far = socket.socketpair()
    with own:
        own.settimeout(20)
        yield own, far.detach()


def on(joined: PseudoTerminal, script: str) -> subprocess.Popen[bytes]:
    end = joined.program_end
    # Whoever runs the tests by nohup(1) has all of their programs ignore that they are hung up on.
    argv = ["env", "--default-signal=HUP", "setsid", "--ctty", "sh", "-c", script]
    return subprocess.Popen(argv, stdin=end, stdout=end, stderr=end)


def all_of(own: socket.socket) -> bytes:
    parts = []
    while part := own.recv(65536):
        parts.append(part)
    return b"".join(parts)


def test_a_program_is_joined_to_the_user_s_terminal(channel: tuple[socket.socket, int]) -> None:
    own, far = channel
    joined = PseudoTerminal(far, WINDOW)
    with contextlib.closing(joined):
        assert own.recv(1) == READY
        own.sendall(resized(Window(5, 6)) + typed(b"hello\n"))
        program = on(joined, "read word; stty size; tty; echo $word; exit 3")
        assert program.wait(timeout=20) == 3
        name = os.ttyname(joined.program_end)
    assert all_of(own).decode() == f"hello\r\n5 6\r\n{name}\r\nhello\r\n"


def test_what_was_written_last_is_shown(channel: tuple[socket.socket, int]) -> None:
    own, far = channel
    with contextlib.closing(PseudoTerminal(far, WINDOW)) as joined:
        assert on(joined, "echo first; echo last").wait(timeout=20) == 0
    assert all_of(own) == READY + b"first\r\nlast\r\n"


def test_a_program_is_hung_up_on_when_the_channel_ends(
    channel: tuple[socket.socket, int],
) -> None:
    own, far = channel
    with contextlib.closing(PseudoTerminal(far, WINDOW)) as joined:
        program = on(joined, "echo here; sleep 600")
        assert own.recv(1) == READY
        while b"here" not in own.recv(100):
            pass
        own.close()
        assert program.wait(timeout=20) == -1
