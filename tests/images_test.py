"""Tests without an engine that the images have the files and packages that they need."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from linklab.runs import clients

REPOSITORY = Path(__file__).parents[1]
EMULATOR, SERVER = (
    (REPOSITORY / part / "Dockerfile").read_text().replace("\\\n", " ")
    for part in ("emulator", "server")
)

IMPORT = """
import importlib
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in present:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

directory, present, *modules = sys.argv[1:]
present = {"linklab", *present.split(",")}
sys.meta_path.insert(0, Absent())
for name in modules:
    assert importlib.import_module(name).__file__.startswith(directory)
"""


def stage(dockerfile: str, name: str) -> str:
    found = re.search(rf"^FROM \S+ AS {name}$(.*?)^FROM ", dockerfile, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def copied(text: str) -> Iterator[tuple[Path, str]]:
    """Yields which files of the repository go where, as far as linklab reads them there."""
    for line in re.findall(r"^COPY ((?:client|emulator|server)/.*)$", text, re.MULTILINE):
        *sources, target = line.split()
        for source in sources:
            if target.startswith(("linklab/", "client/", "emulator/", "server/")):
                yield REPOSITORY / source, target


def installed(text: str) -> set[str]:
    return {
        package
        for line in re.findall(r"apt-get install -y --no-install-recommends (.*?)&&", text)
        for package in line.split()
    }


def lay_out(text: str, directory: Path) -> Path:
    """Copies the files of a stage. Returns where Python finds linklab there."""
    for source, target in copied(text):
        (directory / target).mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, directory / target, dirs_exist_ok=True)
        else:
            shutil.copy(source, directory / target)
    return directory / "emulator" if (directory / "emulator").is_dir() else directory


def import_there(text: str, directory: Path, present: str, *modules: str) -> str:
    """Returns the errors of imports with only a stage's files and these packages."""
    python_path = lay_out(text, directory)
    ran = subprocess.run(
        [sys.executable, "-P", "-c", IMPORT, str(directory), present, *modules],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(python_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stderr


def test_the_guest_s_stage_has_what_making_it_imports(tmp_path: Path) -> None:
    modules = "linklab.places.guest.__main__", "linklab.display.progress"
    present = "rich,pygments,markdown_it,mdurl"
    assert import_there(stage(EMULATOR, "guest"), tmp_path, present, *modules) == ""


def test_the_server_s_image_has_what_it_imports(tmp_path: Path) -> None:
    kept = re.search(r"grep -vixE '(\S+)'", stage(SERVER, "python"))
    assert kept is not None
    modules = {"cffi": "_cffi_backend", "pyyaml": "yaml,_yaml"}
    present = ",".join(modules.get(name, name) for name in kept[1].split("|"))
    image = SERVER.rpartition("\nFROM ")[2]
    assert import_there(image, tmp_path, present, "linklab.commands.standalone_server") == ""


def test_the_image_has_every_peer(tmp_path: Path) -> None:
    python_path = lay_out(stage(EMULATOR, "peers"), tmp_path)
    printed = subprocess.run(
        [sys.executable, "-P", "-m", "linklab.runs.clients"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(python_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout.split() == clients.packages()
    image = EMULATOR.rpartition("\nFROM ")[2]
    assert "COPY --from=peers /peers /opt/linklab/peers\n" in image
    assert {"$(cat", "/opt/linklab/peers)"} <= installed(image)
