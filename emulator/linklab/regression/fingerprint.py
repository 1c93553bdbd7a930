"""What figures depend on beside the client that is tested.

A baseline holds for one of these; with another it has to be made anew, because a difference
would say nothing about the client. In virtual time computing costs nothing, and the guest has
a kernel, a clock and random numbers of its own: neither the host's kernel, processor and load
nor its other packages reach a figure. What does:

- the guest's kernel: TCP, the queueing disciplines, timers;
- H2O and the series of its TLS library: sizes of records, order of streams;
- the series of Go, whose runtime and HTTP/2 library are in multilink; programs of others that take part;
- Python, its packages and Mininet, which build the lab and play the links;
- the scenarios, with their traces and payloads.

Other packages may add a clock read here or there, which costs 256 ns of virtual time: no more
than a start that is shifted by a microsecond, for which the bounds leave room.

multilink and linklab themselves are not in it: they are what is tested.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from linklab.core.installed import said
from linklab.places.guest import kernel, locked
from linklab.places.versions import versions
from linklab.regression.suite import Suite
from linklab.runs.clients import contestant_of
from linklab.scenario import Scenario, to_yaml
from linklab.scenario.trace_files import with_trace_files

_PYTHON_PACKAGES = ("msgspec", "pyroute2", "pyyaml")
"""What `linklab.runs.execution` imports in the guest."""

_DEBIAN_PACKAGES = {"H2O": "h2o", "Mininet": "mininet"}
_OPENSSL = "libssl3"
_MPTCP_PACKAGES = {"iproute2": "iproute2"}
"""`ip mptcp` makes the endpoints."""


@dataclass(frozen=True)
class Fingerprint:
    """Programs by name with their version; scenarios by name with the hash of what they say."""

    programs: dict[str, str]
    scenarios: dict[str, str]


def taken(suite: Suite) -> Fingerprint:
    """The fingerprint of this machine and the suite's scenarios."""
    names = {one.entrant.name for one in suite.planned if one.entrant.command is None}
    packages = dict(_DEBIAN_PACKAGES)
    contestants = [contestant_of(name) for name in names]
    if any(one.mptcp for one in contestants) or any(one.tcp.mptcp for one in suite.scenarios):
        packages |= _MPTCP_PACKAGES
    packages |= {one.needs: one.needs for one in contestants if one.needs}
    programs = {
        "guest kernel": _guest_kernel(),
        **{title: _upstream(_debian(package)) for title, package in packages.items()},
        "OpenSSL": _series(_upstream(_debian(_OPENSSL))),
        "Python": _series(_upstream(_debian("python3.11"))),
        **{name: importlib.metadata.version(name) for name in _PYTHON_PACKAGES},
    }
    if any(one.needs is None for one in contestants):
        programs["Go"] = _go(versions()["multilink"])
    return Fingerprint(programs, {one.name: of_scenario(one) for one in suite.scenarios})


def of_scenario(scenario: Scenario) -> str:
    """A hash of all that a scenario says about links, payload and clients, its traces' content
    included; what it says to people is left out."""
    by_content = with_trace_files(scenario, lambda _, file: Path(_sha256(file.read_bytes())))
    plain = replace(by_content, title="", description="", source="", published=(), findings=())
    return _sha256(to_yaml(plain).encode())[:16]


def differences(baseline: Fingerprint, now: Fingerprint) -> list[str]:
    """What is different now, in words; nothing if the baseline holds. Pure."""
    return [
        *_differing("", baseline.programs, now.programs),
        *_differing("scenario ", baseline.scenarios, now.scenarios),
    ]


def _differing(what: str, then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        f"{what}{name}: {then.get(name, 'none')} then, {now.get(name, 'none')} now"
        for name in dict.fromkeys([*then, *now])
        if then.get(name) != now.get(name)
    ]


@functools.cache
def _guest_kernel() -> str:
    """Its version, and the key of its configuration, patch and source."""
    path = kernel.cached()
    if path is None:
        return "none"
    return f"{said([str(path), '--version'])} {path.name.rpartition('-')[2]}"


def _debian(package: str) -> str:
    return locked.version(package) or "none"


def _upstream(version: str) -> str:
    """A version without Debian's epoch and revision: rebuilds and backported fixes of a package
    are no other program."""
    without_epoch = version.rpartition(":")[2]
    return without_epoch.rpartition("-")[0] or without_epoch


def _series(version: str) -> str:
    """A version without its last part, which brings fixes only (OpenSSL 3.0.19 and 3.0.22 gave
    the same nanoseconds)."""
    return ".".join(version.split(".")[:2])


def _go(version: str) -> str:
    """The series of the Go of `multilink version`: its last part brings fixes only (1.26.7, 1.26.8
    and 1.26.11 gave the same nanoseconds)."""
    found = re.search(r"go\d[\w.]*", version)
    return _series(found[0]) if found else "unknown"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
