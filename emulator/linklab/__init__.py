"""linklab: a testbed for multi-link HTTP over emulated LTE and Wi-Fi links.

`linklab.load(path, …)` gives the runs of run directories, typed and as tables
(`linklab.analysis.tables.load`).
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing is slow to load, and Ctrl-C is not caught yet (__main__.py).
if TYPE_CHECKING:
    from linklab.analysis.tables import load as load

__version__: str


def __getattr__(name: str) -> object:
    """`__version__`, which takes asking git, and `load`, which the guest needs not."""
    if name == "__version__":
        from linklab.core.version import own_version  # The guest needs it not.

        return own_version()
    if name == "load":
        return import_module("linklab.analysis.tables").load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
