"""What a host really refuses is in tests/hosts_test.py."""

import ctypes
import errno
import platform
from pathlib import Path

import pytest

from linklab.places.guest import system_calls

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86-64")


@pytest.mark.parametrize(
    ("number", "allowed"),
    [(errno.EFAULT, True), (errno.EPERM, False), (errno.ENOSYS, False), (errno.EINVAL, False)],
)
def test_filters_are_allowed_if_the_kernel_looks_for_one(
    monkeypatch: pytest.MonkeyPatch, number: int, allowed: bool
) -> None:
    monkeypatch.setattr(system_calls._libc, "syscall", lambda *_: ctypes.set_errno(number))
    assert system_calls.allows_filters() is allowed


def test_looking_changes_nothing() -> None:
    def filters() -> list[str]:
        status = Path("/proc/self/status").read_text().splitlines()
        return [line for line in status if line.startswith(("Seccomp", "TracerPid"))]

    before = filters()
    system_calls.allows_filters()
    system_calls.allows_ptrace.__wrapped__()
    assert filters() == before
