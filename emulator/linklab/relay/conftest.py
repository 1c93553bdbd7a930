"""Fails a test of the relay during which asyncio logs an error, such as an exception in a callback."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _no_error_in_a_callback(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    records = caplog.get_records("call")
    assert not [one for one in records if one.name == "asyncio" and one.levelno >= logging.ERROR]
