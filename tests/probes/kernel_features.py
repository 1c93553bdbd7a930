"""Uses every part of a kernel that linklab's programs, its peers and a user's may use; prints what
cannot be used, one line each. `kernel_features.py CONGESTION_CONTROL…`"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import mmap
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000  # linux/sched.h
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
IPC_PRIVATE, IPC_CREAT, IPC_RMID = 0, 0o1000, 0
IN_NONBLOCK = TFD_NONBLOCK = EFD_NONBLOCK = os.O_NONBLOCK
SFD_NONBLOCK, CLOCK_MONOTONIC, F_OFD_SETLK = os.O_NONBLOCK, 1, 37
TUNSETIFF, IFF_TUN_NO_PI = 0x400454CA, 0x1001
AT_FDCWD, MEMBARRIER_QUERY, NR_MEMBARRIER = -100, 0, 324
SOCK_DIAG_BY_FAMILY, NETLINK_SOCK_DIAG, NLM_F_DUMP_REQUEST = 20, 4, 0x301


def checked(result: int) -> int:
    """Returns the result of a function of the C library. Raises OSError for -1."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def in_a_namespace(flag: int) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0 if LIBC.unshare(flag) == 0 else ctypes.get_errno())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))


def both_ends(listener: socket.socket) -> None:
    with (
        listener as server,
        socket.create_connection(("127.0.0.1", server.getsockname()[1])) as client,
    ):
        client.sendall(b"x")
        assert server.accept()[0].recv(1) == b"x"


def unix_sockets() -> None:
    one, two = socket.socketpair()
    one.sendall(b"x")
    assert two.recv(1) == b"x"


def congestion_control(name: str) -> None:
    with socket.socket() as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


def diagnosed(family: int, protocol: int) -> None:
    """Sends ss(8)'s request, `inet_diag_req_v2`, for all sockets."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as link:
        body = bytes([family, min(protocol, 255), 0, 0]) + b"\xff" * 4 + bytes(48)
        head = (16 + len(body)).to_bytes(4, "little") + SOCK_DIAG_BY_FAMILY.to_bytes(2, "little")
        link.send(head + NLM_F_DUMP_REQUEST.to_bytes(2, "little") + bytes(8) + body)
        answer = link.recv(65536)
        assert int.from_bytes(answer[4:6], "little") != 2, "refused"


def epoll_and_descriptors() -> None:
    poll = select.epoll()
    for descriptor in (
        checked(LIBC.eventfd(1, EFD_NONBLOCK)),
        checked(LIBC.timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK)),
        checked(LIBC.signalfd(-1, bytes(128), SFD_NONBLOCK)),
        os.pidfd_open(os.getpid()),
        os.memfd_create("probe"),
    ):
        with contextlib.suppress(PermissionError):  # For a file in memory, which never blocks.
            poll.register(descriptor, select.EPOLLIN)


def watched_directory() -> None:
    watcher = checked(LIBC.inotify_init1(IN_NONBLOCK))
    with tempfile.TemporaryDirectory() as directory:
        checked(LIBC.inotify_add_watch(watcher, directory.encode(), 0x100))
        Path(directory, "new").touch()
        assert b"new" in os.read(watcher, 4096)


def locks_and_attributes() -> None:
    with tempfile.NamedTemporaryFile() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        fcntl.lockf(file, fcntl.LOCK_EX)
        os.setxattr(file.name, "trusted.probe", b"x")
        file.truncate(4096)
        mmap.mmap(file.fileno(), 4096).madvise(mmap.MADV_DONTNEED)
        # A file system may lack handles, but a kernel has the call.
        if LIBC.name_to_handle_at(AT_FDCWD, b"/", bytes(136), ctypes.byref(ctypes.c_int()), 0) < 0:
            assert ctypes.get_errno() != errno.ENOSYS, "no handles"


def shared_memory_of_system_v() -> None:
    identity = checked(LIBC.shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0o600))
    checked(LIBC.shmctl(identity, IPC_RMID, None))


def posix_timer() -> None:
    fired = []
    signal.signal(signal.SIGALRM, lambda *_: fired.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    signal.pause()
    assert fired


def pseudo_terminal() -> None:
    ours, theirs = os.openpty()
    os.write(theirs, b"x")
    assert os.read(ours, 1) == b"x"


def tunnel() -> None:
    with Path("/dev/net/tun").open("r+b", buffering=0) as device:
        fcntl.ioctl(
            device, TUNSETIFF, b"probe0".ljust(16, b"\0") + IFF_TUN_NO_PI.to_bytes(24, "little")
        )


def script() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "script")
        path.write_text("#!/bin/sh\nexit 7\n")
        path.chmod(0o755)
        assert subprocess.run([path], check=False).returncode == 7


def file_system(kind: str) -> None:
    assert kind in Path("/proc/filesystems").read_text().split(), f"no {kind}"


def writable_sysctl(name: str) -> None:
    assert os.access(f"/proc/sys/{name}", os.W_OK), f"no {name}"


PROBES: dict[str, Callable[[], object]] = {
    "IPv4": lambda: both_ends(socket.create_server(("", 0))),
    "IPv6 that takes IPv4 too": lambda: both_ends(
        socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    ),
    "Unix sockets": unix_sockets,
    "MPTCP": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).close(),
    "MPTCP over IPv6": lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 262).close(),
    "packet sockets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(),
    "multicast": lambda: socket.socket(type=socket.SOCK_DGRAM).setsockopt(
        socket.IPPROTO_IP,
        socket.IP_ADD_MEMBERSHIP,
        socket.inet_aton("224.1.1.1") + bytes([127, 0, 0, 1]),
    ),
    "ss of TCP": lambda: diagnosed(socket.AF_INET, socket.IPPROTO_TCP),
    "ss of UDP": lambda: diagnosed(socket.AF_INET, socket.IPPROTO_UDP),
    "syncookies": lambda: writable_sysctl("net/ipv4/tcp_syncookies"),
    "process numbers": lambda: writable_sysctl("kernel/ns_last_pid"),
    "epoll and descriptors": epoll_and_descriptors,
    "inotify": watched_directory,
    "locks, attributes, handles": locks_and_attributes,
    "System V": shared_memory_of_system_v,
    "timers": posix_timer,
    "pseudo-terminals": pseudo_terminal,
    "tunnels": tunnel,
    "scripts": script,
    "membarrier": lambda: checked(LIBC.syscall(NR_MEMBARRIER, MEMBARRIER_QUERY, 0, 0)),
    **{
        f"namespace {name}": functools.partial(in_a_namespace, flag)
        for name, flag in {
            "mount": CLONE_NEWNS,
            "uts": CLONE_NEWUTS,
            "ipc": CLONE_NEWIPC,
            "user": CLONE_NEWUSER,
            "pid": CLONE_NEWPID,
            "net": CLONE_NEWNET,
        }.items()
    },
    **{
        f"file system {kind}": functools.partial(file_system, kind)
        for kind in ("hostfs", "overlay", "proc", "sysfs", "tmpfs", "devtmpfs", "devpts")
    },
}


def main(congestion_controls: list[str]) -> int:
    probes = dict(PROBES)
    for name in congestion_controls:
        probes[f"congestion control {name}"] = functools.partial(congestion_control, name)
    missing = 0
    for name, probe in probes.items():
        try:
            probe()
        except (OSError, AssertionError) as error:
            number = getattr(error, "errno", None)
            print(f"{name}: {errno.errorcode.get(number, '') if number else ''} {error}")
            missing += 1
    print(f"{len(probes) - missing} of {len(probes)}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
