"""Emulates links such as Wi-Fi, LTE and 5G, as a testbed for multi-link HTTP.

    run = linklab.run("wifi-gone", "adaptive", seed=3)
    table = linklab.compare("hs-s7", ["alg3", "mptcp"], runs=5)
    run = linklab.execute("hs-s7", ["./my-client", "{url}"])
    runs = linklab.load("runs")
    with linklab.live("wifi-gone", origin="http://localhost:3000") as lab: ...

Names are imported when they are used (`emulator/handbook/reference/python.md`).
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing is slow to load, and Ctrl-C is not caught yet (__main__.py).
if TYPE_CHECKING:
    from linklab.analysis.run import Run as Run
    from linklab.analysis.tables import Runs as Runs
    from linklab.analysis.tables import load as load
    from linklab.api.compared_runs import ComparedRuns as ComparedRuns
    from linklab.api.functions import compare as compare
    from linklab.api.functions import execute as execute
    from linklab.api.functions import run as run
    from linklab.api.live_lab import OpenLab as OpenLab
    from linklab.api.live_lab import live as live
    from linklab.api.progress import Progress as Progress
    from linklab.core.errors import LinklabError as LinklabError

__version__: str

_HOMES = {
    "ComparedRuns": "linklab.api.compared_runs",
    "LinklabError": "linklab.core.errors",
    "OpenLab": "linklab.api.live_lab",
    "Progress": "linklab.api.progress",
    "Run": "linklab.analysis.run",
    "Runs": "linklab.analysis.tables",
    "compare": "linklab.api.functions",
    "execute": "linklab.api.functions",
    "live": "linklab.api.live_lab",
    "load": "linklab.analysis.tables",
    "run": "linklab.api.functions",
}
"""The public names and their modules."""


def __getattr__(name: str) -> object:
    """Returns a public name from its module, or `__version__`, which git tells. The guest needs
    none of them."""
    if name == "__version__":
        from linklab.core.version import own_version  # The guest does not need it.

        return own_version()
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Lists the public names."""
    return sorted({*_HOMES, "__version__"})
