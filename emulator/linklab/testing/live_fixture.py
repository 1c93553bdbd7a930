"""Defines what the fixture `linklab_live` can do."""

from __future__ import annotations

import contextlib
import sys
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from linklab.api.live_lab import OpenLab, live
from linklab.core.locks import locked
from linklab.core.paths import in_cache
from linklab.testing.case import Case
from linklab.testing.lab_fixture import scenario_of, told

VARIABLES: Final = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
"""What programs read of the environment. `no_proxy` has the lab's own server alone, so that a test
server of this machine is not asked beside the links."""


class LiveFixture:
    """Opens labs on the real clock. They end with the test, or with the module or session if the
    fixture is that of one.

    A call takes the keywords of `linklab.live`. Then programs that heed `http_proxy` go over the
    links.
    """

    def __init__(
        self,
        request: pytest.FixtureRequest,
        case: Case,
        out: Path,
        monkeypatch: pytest.MonkeyPatch,
        stack: contextlib.ExitStack,
    ) -> None:
        self.scenario = case.scenario
        self.seed = case.seed
        self._request = request
        self._out = out
        self._monkeypatch = monkeypatch
        self._stack = stack
        self._labs: list[OpenLab] = []

    def restore(self) -> None:
        """Sets the labs back to the scenario's start, and warns of what cannot be. Raises
        LinklabError."""
        for lab in self._labs:
            if stays := told(lab.restore):
                warnings.warn(
                    f"the lab is not quite as at its start: {', '.join(stays)}", stacklevel=2
                )

    def __call__(self, *, scenario: str | None = None, **options: Any) -> OpenLab:
        """Opens a lab. Raises LinklabError."""
        __tracebackhide__ = True
        named = scenario or (None if "links" in options else self.scenario)
        where = None if "links" in options else scenario_of(self._request, named)
        own = {"seed": self.seed, "out": self._out, **options}
        lab = told(lambda: self._stack.enter_context(live(where, **own)))
        self._labs.append(lab)
        for name in VARIABLES:
            self._monkeypatch.setenv(name, lab.proxy)
        # urlopen keeps the proxies of its first call, which may be those of an ended lab.
        self._monkeypatch.setattr(urllib.request, "_opener", None)
        for name in ("no_proxy", "NO_PROXY"):
            self._monkeypatch.setenv(name, urlsplit(lab.metrics).netloc)
        return lab


@contextlib.contextmanager
def opening(
    request: pytest.FixtureRequest, case: Case, out: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LiveFixture]:
    """Yields what the fixture is. One process of this account at a time has it, because labs on the
    real clock would disturb each other."""
    with _alone(request.config), contextlib.ExitStack() as stack:
        yield LiveFixture(request, case, out, monkeypatch, stack)


_HOLDERS = pytest.StashKey[int]()


@contextlib.contextmanager
def _alone(config: pytest.Config) -> Iterator[None]:
    """Admits one process at a time. A test whose session has a lab is in already."""
    holders = config.stash.get(_HOLDERS, 0)
    directory = in_cache("live")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        if holders == 0:
            stack.enter_context(locked(directory / "real-clock.lock", _say_waiting))
        config.stash[_HOLDERS] = holders + 1
        try:
            yield
        finally:
            config.stash[_HOLDERS] = holders


def _say_waiting() -> None:
    print("linklab: waiting for another test on the real clock", file=sys.stderr)
