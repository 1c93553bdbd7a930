"""What programs in a lab are told: where things are, as words of a command and as environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from linklab.lab.network.services import HTTPS_PORT
from linklab.lab.network.topology import SERVER_ADDRESS
from linklab.runs import job as manifest
from linklab.runs.clients import Task
from linklab.runs.job import Job
from linklab.scenario import Scenario

_STEADY_GO: Final = {"GOGC": "off", "GOMEMLIMIT": "256MiB", "GODEBUG": "asyncpreemptoff=1"}
"""What keeps a Go program's course the same on every processor in virtual time.
Go collects no garbage before there is 256 MiB: when it would hangs on how much was allocated, and that on
the processor and the environment. It interrupts no goroutine in the middle either: where a signal may do
that hangs on the code for the processor. By then goroutines run in another order, and looks at the clock,
of which the collector takes many, move it on."""

TLS_KEYS: Final = "tls-keys.log"
"""Where in a run directory a client leaves what decrypts its connections, if it is asked to; the
form is that of NSS' key log, which Wireshark reads."""


def _port(job: Job) -> int:
    return HTTPS_PORT if job.server is None else job.server.port


def task_of(job: Job, scenario: Scenario, run_dir: Path, output: Path) -> Task:
    """What a contestant is told; the URL without the port that HTTPS has anyway."""
    port = "" if _port(job) == HTTPS_PORT else f":{_port(job)}"
    return Task(
        scenario=scenario,
        url=f"https://{SERVER_ADDRESS}{port}/{Path(job.payload).name}",
        ca_file=job.certificate_authority,
        output=str(output),
        run_dir=str(run_dir),
        payload=job.payload,
        sha256=job.payload_sha256,
        multilink=job.multilink,
        wireless=str(output.parent / "wireless"),
        energy=str(run_dir / manifest.ENERGY_FILE),
    )


def for_client(job: Job, task: Task) -> dict[str, object]:
    """What the words of a user's client may name."""
    return {
        "url": task.url,
        "ca": task.ca_file,
        "output": task.output,
        "address": SERVER_ADDRESS,
        "port": _port(job),
        **({"origin": job.outside.origins[0].url} if job.outside and job.outside.origins else {}),
    }


def for_server(job: Job) -> dict[str, object]:
    """What the words of a user's server may name."""
    return {
        "address": SERVER_ADDRESS,
        "port": _port(job),
        "certificate": job.certificate,
        "key": job.key,
        "directory": Path(job.payload).parent,
    }


def of_here() -> dict[str, str]:
    """What the lab's own programs have of this process' environment."""
    return {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}


def own(kept: Mapping[str, str], home: Path, values: Mapping[str, object]) -> dict[str, str]:
    """What is `kept` of an environment, a home, and `LINKLAB_` values."""
    named = {f"LINKLAB_{name.upper()}": str(value) for name, value in values.items()}
    return {**kept, "HOME": str(home), **named}


def _for_terminal(job: Job) -> dict[str, str]:
    """What a program on a terminal has besides: where one is stands in the prompt of shells."""
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
    """The environment of the client's program; `home` is its directory."""
    return {
        **own(of_here() if job.contestant else job.environment, home, for_client(job, task)),
        "LINKLAB_SHA256": task.sha256,
        "LINKLAB_RUN_DIR": task.run_dir,
        "LINKLAB_WIRELESS": task.wireless,
        "SSL_CERT_FILE": task.ca_file,
        "CURL_CA_BUNDLE": task.ca_file,
        **({"SSLKEYLOGFILE": str(Path(task.run_dir, TLS_KEYS))} if job.tls_keys else {}),
        **(_STEADY_GO if job.contestant and job.clock == "virtual" else {}),
        **_for_terminal(job),
    }
