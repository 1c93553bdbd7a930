import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator

import pytest

from linklab.lab.programs.terminal import (
    READY,
    Frames,
    PseudoTerminal,
    Window,
    resized,
    taken,
    text,
)

WINDOW = Window(rows=30, columns=100)


def test_frames_come_out_whole_however_they_arrive() -> None:
    most = b"x" * (1 << 16)
    sent = text(b"ls\r") + resized(WINDOW) + text(b"") + taken(7) + text(most)
    wanted = [b"ls\r", WINDOW, b"", 7, most]
    assert list(Frames().of(sent)) == wanted
    frames = Frames()
    assert [one for at in range(len(sent)) for one in frames.of(sent[at : at + 1])] == wanted


@pytest.mark.parametrize("said", [b"t\x00\x01\x00\x01", b"s\x00\x00\x00\x05", b"hello, world"])
def test_what_is_no_frame_is_not_waited_for(said: bytes) -> None:
    with pytest.raises(OSError, match="Protocol error"):
        list(Frames().of(said))


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


def all_of(own: socket.socket) -> tuple[bytes, int]:
    """What is shown, and how much of what was sent has been taken."""
    frames, shown, count = Frames(), b"", 0
    while part := own.recv(65536):
        for one in frames.of(part):
            if isinstance(one, bytes):
                shown += one
            elif isinstance(one, int):
                count += one
    return shown, count


def test_a_program_is_joined_to_the_user_s_terminal(channel: tuple[socket.socket, int]) -> None:
    own, far = channel
    joined = PseudoTerminal(far, WINDOW)
    with contextlib.closing(joined):
        assert own.recv(1) == READY
        sent = resized(Window(5, 6)) + text(b"hello\n")
        own.sendall(sent)
        program = on(joined, "read word; stty size; tty; echo $word; exit 3")
        assert program.wait(timeout=20) == 3
        name = os.ttyname(joined.program_end)
    shown, count = all_of(own)
    assert shown.decode() == f"hello\r\n5 6\r\n{name}\r\nhello\r\n"
    assert count == len(sent)


def test_what_was_written_last_is_shown(channel: tuple[socket.socket, int]) -> None:
    own, far = channel
    with contextlib.closing(PseudoTerminal(far, WINDOW)) as joined:
        assert on(joined, "echo first; echo last").wait(timeout=20) == 0
    assert own.recv(1) == READY
    assert all_of(own) == (b"first\r\nlast\r\n", 0)


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
