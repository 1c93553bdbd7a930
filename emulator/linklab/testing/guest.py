"""Makes sure that tests have a guest, and tells why not."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import pytest

from linklab.api import environment
from linklab.core.errors import LinklabError
from linklab.display.parts import Parts
from linklab.places import choice
from linklab.testing.case import INSIDE

_EXPLAINED = (
    "\nlinklab: the first run on this machine makes a guest, its image and its kernel. This takes "
    "some minutes, once."
)


def no_verdict(reason: str) -> NoReturn:
    """Ends a test that can tell nothing here: it is skipped, but fails where CI is set."""
    __tracebackhide__ = True
    if os.environ.get("CI"):
        pytest.fail(f"{reason} (a failure because CI is set)", pytrace=False)
    pytest.skip(reason)


def require(config: pytest.Config) -> None:
    """Makes the guest if it is not in the cache, with progress on the terminal. Ends the test if
    there can be none."""
    __tracebackhide__ = True
    if INSIDE in os.environ:
        no_verdict("no verdict: this test runs inside a lab, where no other one can run")
    try:
        where = choice.choose("guest", "virtual")
        environment.require_client()
        if not environment.is_made(where):
            capture = config.pluginmanager.getplugin("capturemanager")
            with capture.global_and_fixture_disabled():
                print(_EXPLAINED, file=sys.stderr, flush=True)
                with Parts() as parts:
                    environment.make(where, parts.report)
    except (LinklabError, OSError) as error:
        no_verdict(f"no verdict: no guest on this machine: {error}")
