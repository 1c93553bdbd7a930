"""Emulates LTE and Wi-Fi links, as a testbed for multi-link HTTP.

`linklab.load(path, …)` returns the runs of run directories, typed and as tables
(`linklab.analysis.tables.load`).
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing is slow to load, and Ctrl-C is not caught yet (__main__.py).
if TYPE_CHECKING:
    from linklab.analysis.tables import load as load

__version__: str


def __getattr__(name: str) -> object:
    """Returns `__version__`, which git tells, or `load`. The guest needs neither."""
    if name == "__version__":
        from linklab.core.version import own_version  # The guest does not need it.

        return own_version()
    if name == "load":
        return import_module("linklab.analysis.tables").load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
