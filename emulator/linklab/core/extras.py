"""Packages that only some commands need: the extras of `pyproject.toml`.

`make extras` adds all of them to a checkout's environment, `pip install` of the wheel those that are
asked for.
"""

from __future__ import annotations

import importlib.util
from typing import Final

from linklab.core.errors import LinklabError
from linklab.core.paths import INSTALLED, VEGA

MODULES: Final = {
    "campaign": ("distributed",),
    "export": ("pyarrow",),
    "report": ("scipy", "vl_convert"),
}
"""The modules that are imported of each extra."""


class MissingExtra(LinklabError, RuntimeError):
    """A package of an extra is not installed."""


def require_page(what: str) -> None:
    """Raises MissingExtra if `what` writes a page, and the library of its charts is missing here. A
    wheel has it without extras."""
    if not VEGA.is_file():
        require("report", what)


def require(extra: str, what: str) -> None:
    """Raises MissingExtra, which says what to install, if `what` needs an extra that is not
    installed."""
    if missing := [one for one in MODULES[extra] if importlib.util.find_spec(one) is None]:
        install = f"pip install 'linklab[{extra}]'" if INSTALLED else "make extras"
        raise MissingExtra(f"{what} needs {', '.join(missing)}, not installed here: {install}")
