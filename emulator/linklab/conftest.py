"""Shares a scenario, a network namespace and a private cache between the unit tests."""

import asyncio
import inspect
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import settings

from linklab import scenario
from linklab.core import scratch as leftovers
from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.namespace import inside, new_network
from linklab.lab.kernel.netlink import Channel
from linklab.scenario import Scenario

# A shell starts background jobs with SIGINT ignored, and whatever is tested would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says something of the machine and nothing of the code. `make test` tries a
# few, `make test-all` every night many.
TEST_ALL = os.environ.get("LINKLAB_TEST_ALL") == "1"
settings.register_profile("linklab", deadline=None, max_examples=250 if TEST_ALL else 25)
settings.load_profile("linklab")


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names binary values by their size. Processes that share tests must give them the same names."""
    return f"{len(val)} bytes" if isinstance(val, bytes) and not val.isascii() else None


@pytest.fixture
def small() -> Scenario:
    """1 MB over 60 and 40 Mbit/s."""
    return scenario.parse(
        "name: small\n"
        "payload: {size: 1 MB}\n"
        "links:\n"
        "  wifi: {down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}\n"
        "  lte: {down: 40 Mbit/s, up: 10 Mbit/s, rtt: 40 ms}\n"
    )


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache directory, which does not exist yet, in place of the user's."""
    directory = tmp_path / "cache"
    monkeypatch.setenv("LINKLAB_CACHE", str(directory))
    return directory


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one place that is searched for leftovers, instead of the machine's.

    Another test that runs at the same time may leave something on the machine.
    """
    directory = tmp_path / "scratch"
    directory.mkdir()
    monkeypatch.setattr(leftovers, "_scratch_places", lambda: {str(directory), "/nowhere"})
    return directory


@pytest.fixture
def dead_pid() -> int:
    """The number of a process that is gone."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that `make test` runs in the guest, whose kernel has all that they need."""
    for one in items:
        if "namespace" in getattr(one, "fixturenames", ()):
            one.add_marker("of_the_kernel")
            assert may_need_the_kernel(one.path), f"{one.path}: names none of {OF_THE_KERNEL}"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


OF_THE_KERNEL = ("namespace", "loopback")


def may_need_the_kernel(file: Path) -> bool:
    """Tells whether a test's file names one of the fixtures that make a network namespace, so that
    tests/kernel_units_test.py collects it."""
    return any(one in file.read_text() for one in OF_THE_KERNEL)


@pytest.fixture
def namespace() -> Iterator[int]:
    """A descriptor of a network namespace; skips where none can be made."""
    try:
        made = new_network()
    except OSError as error:
        pytest.skip(f"no network namespace can be made here: {error}")
    yield made
    os.close(made)


@pytest.fixture
def loopback(namespace: int) -> Iterator[ExitStack]:
    """The test runs in a network namespace of its own with a loopback; closes what is entered."""
    with ExitStack() as stack:
        stack.enter_context(inside(namespace))
        channel = stack.enter_context(closing(Channel()))
        channel.request(rtnetlink.set_up(socket.if_nametoindex("lo"), up=True))
        yield stack
