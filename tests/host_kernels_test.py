"""The guest on other kernels of the host, each in an emulated machine: the same figures.

With LINKLAB_MACHINES=1 (`make test-machines`). It needs qemu-system-x86_64, apt-get and Python 3.11, and minutes a kernel.
"""

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from conftest import Linklab, ScenarioFile, succeeded
from emulated import machine

pytestmark = pytest.mark.asked_for("LINKLAB_MACHINES")

KERNELS = {"bookworm": "6.1", "trixie": "6.12", "forky": "7.2"}
"""The suites of Debian with their kernels. The mirror has no older one any more."""


@pytest.mark.parametrize("suite", KERNELS)
def test_a_run_has_the_same_figures(
    suite: str, linklab: Linklab, scenario: ScenarioFile, tmp_path: Path
) -> None:
    for program in ("qemu-system-x86_64", "apt-get"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if sys.version_info[:2] != (3, 11):
        pytest.skip("pip chooses the packages of Debian 12's Python with that Python alone")
    file = scenario("kernels", size="256 kB")
    mine = succeeded(linklab, "run", file, "-a", "alg3")
    kind = machine.x86_64(suite)
    work = tmp_path / "machine"
    work.mkdir()
    machine.make(kind, work)
    for booted in machine.booted(kind, work):
        booted.shell(f"echo {shlex.quote(file.read_text())} > /root/kernels.yaml")
        assert booted.call("uname", "-r").out.startswith(f"{KERNELS[suite]}.")
        done = booted.shell("cd /root && python3 -m linklab run kernels.yaml -a alg3 --json", 3600)
        assert done.code == 0, done.out + done.err
        assert json.loads(done.out)["figures"] == mine.json["figures"]
        doctor = booted.shell("python3 -m linklab doctor --json", 1200).out
        words = {one["what"]: one["words"] for one in json.loads(doctor)["findings"]}
        assert "namespaces" in words["confinement"]
    shutil.rmtree(work)
