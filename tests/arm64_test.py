"""Both places on arm64, shown in an emulated machine with Debian's kernel and packages.

The machine has arm64's QEMU, in which the guest runs: an emulated processor in an emulated one.

With LINKLAB_MACHINES=1 (`make test-machines`). It needs qemu-system-aarch64, apt-get and Python 3.11.
"""

import json
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Linklab, ScenarioFile, succeeded
from emulated import machine
from emulated.machine import ARM64, Done, Machine

pytestmark = pytest.mark.asked_for("LINKLAB_MACHINES")

RATES_BPS = {"wifi": 3e6, "lte": 2e6}
"""Low, so that the emulated processor keeps up."""

SCENARIO = """\
name: slow
payload: {size: 10 MB}
links:
  wifi: {down: 3 Mbit/s, up: 3 Mbit/s, rtt: 20 ms, queue: 100 kB}
  lte: {down: 2 Mbit/s, up: 2 Mbit/s, rtt: 40 ms, queue: 100 kB}
"""

LINKLAB = "python3 -m linklab"

QEMU = "/usr/bin/qemu-system-x86_64"

NO_GUEST = (
    "User Mode Linux needs x86-64, this machine is aarch64, and for an emulated processor: "
    "qemu-system-x86_64 is missing"
)


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The machine. Its clock does not depend on how busy this one is."""
    for program in (ARM64.qemu.split()[0], "apt-get", "setpriv"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if sys.version_info[:2] != (3, 11):
        pytest.skip("pip chooses the packages of Debian 12's Python with that Python alone")
    work = tmp_path_factory.mktemp("arm64")
    machine.make(ARM64, work)
    for booted in machine.booted(ARM64, work):
        booted.shell(f"mkdir /root/runs; echo {shlex.quote(SCENARIO)} > /root/slow.yaml")
        assert booted.shell(f"mv {QEMU} /root/hidden").code == 0
        yield booted


@pytest.fixture
def arm_with_qemu(arm: Machine) -> Iterator[Machine]:
    """The machine as after the installation of QEMU."""
    assert arm.shell(f"mv /root/hidden {QEMU}").code == 0
    yield arm
    assert arm.shell(f"mv {QEMU} /root/hidden").code == 0


def findings(done: Done) -> dict[str, dict[str, Any]]:
    """What `linklab doctor --json` has found."""
    assert done.out, done.err
    return {one["what"]: one for one in json.loads(done.out)["findings"]}


def test_a_kernel_without_netem_is_said_in_one_line(arm: Machine) -> None:
    """First, because no module is loaded yet."""
    hidden = "mount --bind /bin/false /usr/sbin/modprobe"
    done = arm.shell(f"{hidden} && unshare --net {LINKLAB}.lab.shaping.probe", patience_s=1200)
    assert done.code == 1
    missing = "sch_hfsc, sch_plug, sch_netem, veth, bridge"
    assert done.err.startswith(f"this kernel lacks {missing} (root may try: modprobe -a sch_hfsc ")
    assert len(done.err.splitlines()) == 1
    assert arm.shell("umount /usr/sbin/modprobe").code == 0


def test_doctor_says_what_works(arm: Machine) -> None:
    done = arm.shell(f"{LINKLAB} doctor --json", patience_s=1200)
    assert done.code == 0, done.out
    found = findings(done)
    assert "aarch64" in found["system"]["words"]
    assert found["guest place"]["words"].startswith(NO_GUEST)
    assert found["host place"]["fine"], found["host place"]["words"]
    assert "confinement" not in found
    assert found["client"]["fine"]


def test_ten_megabytes_over_both_links_at_the_stated_rates(arm: Machine) -> None:
    done = arm.shell(f"{LINKLAB} run /root/slow.yaml -a alg3 --json --out /root/runs", 3600)
    assert done.code == 0, done.err
    assert "place: host, clock: real (no guest: User Mode Linux needs x86-64" in done.err
    report = json.loads(done.out)
    figures = report["figures"]
    assert sum(link["bytes"] for link in figures["links"].values()) == 10_000_000
    counters = arm.shell(f"cat {report['run_dir']}/queues.jsonl").out
    rates = carried([json.loads(line) for line in counters.splitlines()])
    print(f"download {figures['download_s']:.2f} s, carried {rates}")
    for link, stated_bps in RATES_BPS.items():
        assert rates[link] == pytest.approx(stated_bps, rel=0.03), link


def carried(samples: list[dict[str, Any]]) -> dict[str, float]:
    """The bits per second of each downlink while packets waited for it at each sample."""
    rates = {}
    for link in RATES_BPS:
        down = [one for one in samples if (one["link"], one["direction"]) == (link, "down")]
        busy = [one for one in down if one["queue_bytes"] > 0]
        first, last = busy[0], busy[-1]
        seconds = last["t_s"] - first["t_s"]
        assert seconds > 10, "the link was loaded for most of the download"
        rates[link] = 8 * (last["sent_bytes"] - first["sent_bytes"]) / seconds
    return rates


def test_without_rights_a_container_says_which_file_gives_them(arm: Machine) -> None:
    user = "setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all --no-new-privs"
    done = arm.shell(f"{user} {LINKLAB} live live --out /tmp/none", patience_s=1200)
    assert done.code == 2
    assert done.err.count("\n") == 1, done.err
    assert f"guest: {NO_GUEST}" in done.err
    assert "; host: not root" in done.err
    assert "emulator/compose.host.yaml" in done.err


def test_without_an_image_one_line_says_what_brings_it(arm_with_qemu: Machine) -> None:
    """The wheel has brought the kernels."""
    run = f"{LINKLAB} run /root/slow.yaml -a alg3 --out /tmp/none"
    for named, why in (("", ""), (" LINKLAB_RELEASE=/srv", "file:///srv/guest-")):
        done = arm_with_qemu.shell(f"env{named} {run}", patience_s=1200)
        assert done.code == 2
        place, error = done.err.splitlines()
        assert place.startswith("place: guest, clock: virtual (emulated processor: ")
        assert error.startswith(f"linklab: {why}")
        assert "this machine is aarch64: take image and kernels from a release" in error
        assert error.endswith("or use --place host")
    assert arm_with_qemu.shell("ls /var/cache/linklab/kernel/linux-*").out.count("\n") == 2


def test_the_guest_is_chosen_and_has_the_figures_of_x86_64(
    arm_with_qemu: Machine, linklab: Linklab, scenario: ScenarioFile
) -> None:
    """Image and kernels come as a release brings them. Every line of the client is the same, too."""
    file = scenario("tiny", size="100 kB")
    mine = succeeded(linklab, "run", file, "-a", "alg3")
    arm_with_qemu.shell(f"echo {shlex.quote(file.read_text())} > /root/tiny.yaml")
    run = f"{LINKLAB} run /root/tiny.yaml -a alg3 --json --out /root/runs --timeout 7200"
    done = arm_with_qemu.shell(f"LINKLAB_RELEASE={machine.RELEASE} {run}", patience_s=9000)
    assert done.code == 0, done.out + done.err
    assert "place: guest, clock: virtual (emulated processor: same figures" in done.err
    report = json.loads(done.out)
    assert report["figures"] == mine.json["figures"]
    lines = arm_with_qemu.shell(f"cat {report['run_dir']}/client.jsonl").out
    assert lines == Path(mine.json["run_dir"], "client.jsonl").read_text()
    found = findings(arm_with_qemu.shell(f"{LINKLAB} doctor --json", patience_s=1200))
    assert found["guest place"]["fine"], found["guest place"]["words"]
