import signal
import subprocess
from types import SimpleNamespace
from typing import cast

import pytest

from linklab.lab.network.hosts import LabError
from linklab.lab.network.lab import Lab
from linklab.lab.network.services import OwnServer
from linklab.runs import execution_programs
from linklab.runs.execution_plan import Plan


def patiently(process: subprocess.Popen[bytes], limit_s: float) -> None:
    """Has who waits for a limited time for a process do it for this one."""
    wait = process.wait
    process.wait = lambda timeout=None: wait(timeout and limit_s)  # type: ignore[method-assign]


def test_a_client_is_asked_to_end_before_it_is_killed() -> None:
    polite = subprocess.Popen(["sleep", "60"])
    patiently(polite, 60)
    execution_programs.end(polite)
    assert polite.returncode == -signal.SIGINT
    execution_programs.end(polite)  # One that has ended is left alone.

    stubborn = subprocess.Popen(
        ["sh", "-c", "trap '' INT; echo ready; while :; do sleep .1; done"], stdout=subprocess.PIPE
    )
    assert stubborn.stdout is not None
    assert stubborn.stdout.readline() == b"ready\n"
    patiently(stubborn, 0.05)
    execution_programs.end(stubborn)
    assert stubborn.returncode == -signal.SIGKILL
    stubborn.stdout.close()


def test_a_server_of_the_users_is_not_asked_to_do_without_tls() -> None:
    job = SimpleNamespace(client="loss-fetching", server=OwnServer(("serve",)))
    plan = cast(
        Plan, SimpleNamespace(as_written=job, client=None, needs_plain_http=True, uploads=None)
    )
    with pytest.raises(LabError, match="^loss-fetching needs HTTP without TLS"):
        execution_programs.server_starter(plan, cast(Lab, SimpleNamespace(server=None)))
