"""What can be said of the images without an engine: they have the files and packages they need."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from linklab.runs import clients

REPOSITORY = Path(__file__).parents[1]
DOCKERFILE = (REPOSITORY / "emulator/Dockerfile").read_text().replace("\\\n", " ")
PACKAGES = (REPOSITORY / "emulator/setup/packages").read_text()

IMPORTED = """
import sys
before = {name.partition(".")[0] for name in sys.modules}
import linklab.core.progress
import linklab.places.guest.__main__ as made
assert made.__file__.startswith(sys.argv[1]), made.__file__
print(*sorted({name.partition(".")[0] for name in sys.modules} - before - sys.stdlib_module_names))
"""


def stage(name: str) -> str:
    found = re.search(rf"^FROM \S+ AS {name}$(.*?)^FROM ", DOCKERFILE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def copied(text: str) -> Iterator[tuple[Path, str]]:
    """Files of the repository, and where they go."""
    for line in re.findall(r"^COPY (emulator/.*)$", text, re.MULTILINE):
        *sources, target = line.split()
        for source in sources:
            yield REPOSITORY / source, target


def installed(text: str) -> set[str]:
    return {
        package
        for line in re.findall(r"apt-get install -y --no-install-recommends (.*?)&&", text)
        for package in line.split()
    }


def test_the_kernel_s_stage_has_what_its_build_imports(tmp_path: Path) -> None:
    for source, target in copied(stage("kernel")):
        if target.startswith("linklab/"):
            (tmp_path / target).mkdir(parents=True, exist_ok=True)
            shutil.copy(source, tmp_path / target)
    ran = subprocess.run(
        [sys.executable, "-P", "-c", IMPORTED, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    rich = {"linklab", "rich", "pygments", "markdown_it", "mdurl"}
    assert set(ran.stdout.split()) <= rich, "the stage has Debian's python3-rich only"


def test_the_image_has_every_contestant() -> None:
    peers = [clients.contestant_of(name) for name in clients.peers(clients.USUAL_LINKS)]
    needed = {one.needs for one in peers if one.needs is not None}
    assert needed
    assert needed <= installed(DOCKERFILE)


def test_the_image_takes_no_package_that_a_checkout_lacks() -> None:
    listed = set(re.findall(r"[a-z0-9.-]+", PACKAGES))
    assert installed(DOCKERFILE) - listed == {"python3-rich"}
