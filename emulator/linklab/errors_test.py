"""Tests that every public error of the package has the one base class."""

import importlib
import pkgutil

import linklab
from linklab.core.errors import LinklabError

INSIDE = {
    "linklab.core.plain_file",
    "linklab.core.records",
    "linklab.lab.kernel.netlink",
    "linklab.lab.super_aggregation.http_ranges",
}
"""Modules with errors of the operating system's kind, or that only one program of the lab sees."""


def test_every_error_has_the_one_base() -> None:
    found: dict[str, type[Exception]] = {}
    for module in pkgutil.walk_packages(linklab.__path__, "linklab."):
        if module.name.endswith(("_test", "conftest", "__main__")) or module.name in INSIDE:
            continue
        try:
            members = vars(importlib.import_module(module.name))
        except ModuleNotFoundError:  # Mininet is Debian's.
            continue
        for name, one in members.items():
            own = isinstance(one, type) and one.__module__ == module.name
            if own and issubclass(one, Exception) and name.endswith(("Error", "Extra")):
                found[name] = one
    assert len(found) > 30
    assert [name for name, one in found.items() if not issubclass(one, LinklabError)] == []
