"""Tells programs in a lab where things are, in their command's words and in their environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import UNSET

from linklab.core.ip_family import Families
from linklab.lab.network.services import HTTPS_PORT
from linklab.lab.network.topology import (
    EVERY_ADDRESS,
    SERVER_NAME,
    server_addresses,
    server_in_url,
)
from linklab.runs import job as manifest
from linklab.runs.clients import Task
from linklab.runs.job import Job
from linklab.scenario import Scenario

_STEADY_GO: Final = {"GOGC": "off", "GOMEMLIMIT": "256MiB", "GODEBUG": "asyncpreemptoff=1"}
"""Settings that keep a Go program's behaviour in virtual time the same on every processor.

Below 256 MiB Go collects no garbage. Otherwise the start of a collection would depend on
allocations, and these on processor and environment. Go also does not preempt goroutines
asynchronously, because the points where a signal may do so depend on the machine code. Either would
change the order of goroutines.
"""

TLS_KEYS: Final = "tls-keys.log"
"""The file of a run directory in which a client leaves its TLS keys, if asked to, in the format of
NSS' key log. Wireshark reads it."""


def _port(job: Job) -> int:
    return HTTPS_PORT if job.server is None else job.server.port


def _address(families: Families, of_both: str) -> str:
    """Returns the server's address, or `of_both` if it has one of each family."""
    addresses = server_addresses(families)
    return addresses[0] if len(addresses) == 1 else of_both


def task_of(job: Job, scenario: Scenario, run_dir: Path, output: Path) -> Task:
    """Returns the client's task. The URL leaves out HTTPS' default port."""
    port = "" if _port(job) == HTTPS_PORT else f":{_port(job)}"
    return Task(
        scenario=scenario,
        url=f"https://{server_in_url(scenario.network.families)}{port}/{Path(job.payload).name}",
        ca_file=job.certificate_authority,
        output=str(output),
        run_dir=str(run_dir),
        payload=job.payload,
        sha256=job.payload_sha256,
        multilink=job.multilink,
        wireless=str(output.parent / "wireless"),
        energy=str(run_dir / manifest.ENERGY_FILE),
        peers="" if job.peers is UNSET else job.peers,
    )


def for_client(job: Job, task: Task) -> dict[str, object]:
    """Returns the values for placeholders in the command of a user's client."""
    return {
        "url": task.url,
        "ca": task.ca_file,
        "output": task.output,
        "address": _address(task.scenario.network.families, SERVER_NAME),
        "port": _port(job),
        **({"origin": job.outside.origins[0].url} if job.outside and job.outside.origins else {}),
    }


def for_server(job: Job, scenario: Scenario) -> dict[str, object]:
    """Returns the values for placeholders in the command of a user's server."""
    return {
        "address": _address(scenario.network.families, EVERY_ADDRESS),
        "port": _port(job),
        "certificate": job.certificate,
        "key": job.key,
        "directory": Path(job.payload).parent,
    }


def of_here() -> dict[str, str]:
    """Returns the environment variables that the lab's own programs inherit from this process."""
    return {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}


def own(kept: Mapping[str, str], home: Path, values: Mapping[str, object]) -> dict[str, str]:
    """Returns an environment of the variables in `kept`, HOME, and `values` as LINKLAB_ variables."""
    named = {f"LINKLAB_{name.upper()}": str(value) for name, value in values.items()}
    return {**kept, "HOME": str(home), **named}


def _for_terminal(job: Job) -> dict[str, str]:
    """Returns further variables for a program on a terminal, such as a shell's prompt."""
    if job.terminal is None:
        return {}
    prompt = f"[linklab {job.scenario} {job.terminal.on}] "
    word = Path((job.command or [""])[0]).name
    return {
        "TERM": job.environment.get("TERM", "dumb"),
        "PS1": prompt + (r"\w\$ " if word == "bash" else "$ "),
        "LINKLAB_SCENARIO": job.scenario,
        "LINKLAB_HOST": job.terminal.on,
    }


def of_client(job: Job, task: Task, home: Path) -> dict[str, str]:
    """Returns the environment of the client's program. `home` is its home directory."""
    return {
        **own(of_here() if job.client else job.environment, home, for_client(job, task)),
        "LINKLAB_SHA256": task.sha256,
        "LINKLAB_RUN_DIR": task.run_dir,
        "LINKLAB_WIRELESS": task.wireless,
        "SSL_CERT_FILE": task.ca_file,
        "CURL_CA_BUNDLE": task.ca_file,
        **({"SSLKEYLOGFILE": str(Path(task.run_dir, TLS_KEYS))} if job.tls_keys else {}),
        **(_STEADY_GO if job.client and job.clock == "virtual" else {}),
        **_for_terminal(job),
    }
