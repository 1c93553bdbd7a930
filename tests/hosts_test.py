"""Hosts that forbid something: what `linklab doctor` says of it, and that figures stay the same.

Each is this machine with one thing refused: by a namespace of the test's own, or by a filter of
system calls (probes/refusing.py).
"""

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import PROBES, ScenarioFile, command, finished, nightly
from linklab.places import choice
from linklab.places.guest import landlock

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces of its own"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the guest runs on x86-64"),
]

USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--keep-caps")
"""Another user, who is root of a user namespace, and whose files root's are."""
WITHOUT_RIGHTS = "exec setpriv --ambient-caps -all --inh-caps -all"
NO_NAMESPACES = (
    *(*USER, "sh", "-c"),
    f'echo 0 > /proc/sys/user/max_user_namespaces && {WITHOUT_RIGHTS} "$@"',
    "sh",
)
SHARED_MEMORY_NOEXEC = (
    *("unshare", "--mount", "sh", "-c"),
    'mount -t tmpfs -o noexec none /dev/shm && exec "$@"',
    "sh",
)
# The setting belongs to a process namespace (Linux, Documentation/userspace-api/mfd_noexec.rst).
NO_EXECUTABLE_MEMFD = (
    *("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c"),
    'echo 2 > /proc/sys/vm/memfd_noexec && exec "$@"',
    "sh",
)


def refusing(*calls: str) -> tuple[str, ...]:
    return (sys.executable, str(PROBES / "refusing.py"), ",".join(calls))


FIRST_EMULATED_S = 1200
"""An emulated machine's kernel is compiled by the first command that needs it: 2 to 6 minutes."""


def said(
    host: tuple[str, ...], directory: Path, *words: object, timeout_s: float = 300
) -> tuple[int, Any]:
    """The exit code and the JSON of a `linklab` command on a host."""
    done = finished(directory, [*host, *command(*words, "--json")], timeout_s)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def doctor(host: tuple[str, ...], directory: Path) -> dict[str, str]:
    """The words of each finding."""
    _, report = said(host, directory, "doctor")
    return {finding["what"]: finding["words"] for finding in report["findings"]}


HOSTS = {
    "namespaces": NO_NAMESPACES,
    "/dev/shm": SHARED_MEMORY_NOEXEC,
    "memfd": NO_EXECUTABLE_MEMFD,
    "no memfd": refusing("memfd_create"),
    "ptrace": refusing("ptrace"),
    "seccomp": refusing("seccomp"),
}
NO_CALLS_CAUGHT = refusing("ptrace", "seccomp")
REFUSES_BOTH = "User Mode Linux needs seccomp filters or ptrace, this machine refuses both"


@pytest.mark.parametrize("name", HOSTS)
def test_figures_are_the_same_where_something_is_refused(
    name: str, scenario: ScenarioFile, tmp_path: Path
) -> None:
    if name == "memfd" and not Path("/proc/sys/vm/memfd_noexec").exists():
        pytest.skip("this kernel has no vm.memfd_noexec")
    file = scenario("refused", size="2 MB")
    code, mine = said((), tmp_path, "run", file, "-a", "alg3", "--out", "mine")
    assert code == 0, mine["error"]
    code, other = said(HOSTS[name], tmp_path, "run", file, "-a", "alg3", "--out", "other")
    assert code == 0, other["error"]
    assert other["figures"] == mine["figures"]


@nightly
@pytest.mark.skipif(
    choice.emulation_obstacle() is not None, reason=f"{choice.emulation_obstacle()}"
)
def test_where_no_system_calls_can_be_caught_a_machine_is_emulated(tmp_path: Path) -> None:
    words = ("run", "emptcp-256kb-good-good", "-a", "alg3", "--out")
    code, mine = said((), tmp_path, *words, "mine")
    assert code == 0, mine["error"]
    code, other = said(NO_CALLS_CAUGHT, tmp_path, *words, "other", timeout_s=FIRST_EMULATED_S)
    assert code == 0, other["error"]
    assert other["figures"] == mine["figures"]
    assert REFUSES_BOTH in doctor(NO_CALLS_CAUGHT, tmp_path)["emulation"]


def test_where_no_system_calls_can_be_caught_one_line_says_it(tmp_path: Path) -> None:
    """Not User Mode Linux' own words."""
    asked = ("--place", "guest", "--processor", "native")
    done = finished(tmp_path, [*NO_CALLS_CAUGHT, *command("run", "hs-s7", "-a", "alg3", *asked)])
    assert done.returncode == 2
    assert done.stderr == f"linklab: the guest place cannot be used: {REFUSES_BOTH}\n"


def test_who_has_no_namespaces_is_told_the_command_that_allows_them(tmp_path: Path) -> None:
    if landlock.abi() < landlock.LEAST_ABI:
        pytest.skip("this kernel has no Landlock of use")
    words = doctor(NO_NAMESPACES, tmp_path)["confinement"]
    assert words.startswith(f"by Landlock, version {landlock.abi()}; no namespaces: bwrap: ")
    assert words.endswith("; as root, this allows them: sysctl user.max_user_namespaces=10000")


def test_a_filter_that_no_setting_lifts_is_said_without_a_command(tmp_path: Path) -> None:
    user = (*USER, "sh", "-c", f'{WITHOUT_RIGHTS} "$@"', "sh")
    words = doctor((*user, *refusing("new-user")), tmp_path)["confinement"]
    assert "no namespaces: bwrap: " in words
    assert "sysctl" not in words


def test_shared_memory_that_forbids_execution_is_left_alone(tmp_path: Path) -> None:
    assert doctor((), tmp_path)["guest place"].endswith("memory in /dev/shm")
    assert doctor(SHARED_MEMORY_NOEXEC, tmp_path)["guest place"].endswith("memory in /tmp")


def test_a_system_that_forbids_executable_memory_is_said_once(tmp_path: Path) -> None:
    """As systemd does with MemoryDenyWriteExecute, and SELinux for confined users."""
    words = doctor(refusing("executable"), tmp_path)["guest place"]
    assert "/dev/shm may not be written and executed at once, /tmp may not" in words
    assert words.count("MemoryDenyWriteExecute") == 1
