"""Defines the clients under test: linklab's algorithms and the peers they are compared with.

A client under test is a name and a command for each workload that it can do. Each program downloads
a file by itself. For other workloads all clients use `multilink workload`. It sends its requests
through a proxy that runs an algorithm, over one link, or by Multipath TCP. Each program has a file
here. `registry.py` lists them.
"""

from linklab.runs.clients.client import ClientUnderTest
from linklab.runs.clients.multilink import ALIASES, TLS
from linklab.runs.clients.registry import (
    GROUPS,
    USUAL_LINKS,
    able,
    chosen,
    client_obstacle,
    client_of,
    further,
    is_compiled_here,
    is_taken,
    known_to,
    misfit,
    missing_packages,
    multipath,
    named,
    names,
    notes,
    obstacle,
    packages,
    peers,
    published,
)
from linklab.runs.clients.task import Task

__all__ = [
    "ALIASES",
    "GROUPS",
    "TLS",
    "USUAL_LINKS",
    "ClientUnderTest",
    "Task",
    "able",
    "chosen",
    "client_obstacle",
    "client_of",
    "further",
    "is_compiled_here",
    "is_taken",
    "known_to",
    "misfit",
    "missing_packages",
    "multipath",
    "named",
    "names",
    "notes",
    "obstacle",
    "packages",
    "peers",
    "published",
]
