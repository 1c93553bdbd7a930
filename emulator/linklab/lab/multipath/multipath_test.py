"""Tests Multipath TCP on a kernel without it. With it: tests/multipath_test.py."""

import errno
import os
from types import SimpleNamespace
from typing import cast

import pytest

from linklab.lab.kernel.netlink import NetlinkError
from linklab.lab.multipath import multipath
from linklab.lab.multipath.multipath import Multipath
from linklab.lab.network.hosts import LabError
from linklab.lab.network.lab import Lab


class Refusing:
    """A netlink socket of a kernel that refuses."""

    closed = 0

    def __init__(self, code: int) -> None:
        self._code = code

    def request(self, message: bytes) -> bytes:
        raise NetlinkError(self._code, os.strerror(self._code))

    def close(self) -> None:
        Refusing.closed += 1


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (errno.ENOENT, LabError, "this kernel has no Multipath TCP .*; use the guest"),
        (errno.EPERM, NetlinkError, "Operation not permitted"),
    ],
)
def test_a_kernel_that_refuses_is_said_and_no_socket_stays(
    code: int, kind: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multipath, "_generic", lambda host: Refusing(code))
    monkeypatch.setattr(Refusing, "closed", 0)
    ends = {name: SimpleNamespace(name=name) for name in ("client", "server")}
    lab = cast(Lab, SimpleNamespace(**ends, links={}))
    with pytest.raises(kind, match=words):
        Multipath(lab)
    assert Refusing.closed == 2
