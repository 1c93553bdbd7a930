"""Tests that a user's paths mean the same inside the guest, wherever they are, and change no
figure."""

import os
import shutil
import site
import tempfile
import venv
from pathlib import Path
from shlex import split

from conftest import REPOSITORY, Linklab, ScenarioFile, ran
from linklab.core import shared_tables
from linklab.core.paths import cache_dir

PROGRAM = """#!/bin/sh
echo "$0 says: $(cat "$1") of $(dirname "$1")"
ls "$(dirname "$0")"
exec curl --silent --show-error --interface wlan0 --output "$LINKLAB_OUTPUT" "$LINKLAB_URL"
"""


def memory_of_run() -> str:
    """A directory below /run that the user may write."""
    own = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.geteuid()}")
    return "/run" if os.access("/run", os.W_OK) else own


def checkout(directory: Path) -> Path:
    """Copies linklab's files and a Python environment. Returns its Python."""
    tables = (str(file.parent.relative_to(REPOSITORY)) for file in shared_tables.FILES)
    for name in ("emulator", "profiles", "server", *tables):
        shutil.copytree(
            REPOSITORY / name, directory / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copytree(
        REPOSITORY / "build", directory / "build", ignore=shutil.ignore_patterns("browser")
    )
    venv.create(directory / ".venv", with_pip=False, symlinks=True)
    (library,) = (directory / ".venv" / "lib").glob("python*/site-packages")
    (library / "tested.pth").write_text("".join(f"{one}\n" for one in site.getsitepackages()))
    return directory / ".venv" / "bin" / "python"


def elapsed(place: Path, scenario: Path) -> tuple[str, str]:
    """Runs a program with all of linklab's files in `place`. Returns its output and its time."""
    python = checkout(place / "check out")
    home = place / "home"
    (home / ".cache" / "linklab").mkdir(parents=True)
    for name in ("image", "kernel"):
        (home / ".cache" / "linklab" / name).symlink_to(cache_dir() / name)
    here = place / "hier"
    here.mkdir()
    (here / "prögram me").write_text(PROGRAM)
    (here / "prögram me").chmod(0o755)
    (here / "data").write_text("its data")
    shutil.copy(scenario, here)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LINKLAB")}
    done = ran(
        [
            python,
            *split("-m linklab exec"),
            scenario.name,
            *split("--out rüns --"),
            "./prögram me",
            here / "data",
        ],
        cwd=here,
        env={**kept, "HOME": str(home), "PYTHONPATH": str(place / "check out" / "emulator")},
    )
    assert done.returncode == 0, done.stderr
    (run_dir,) = (here / "rüns").iterdir()
    return done.stdout, (run_dir / "outcome.json").read_text()


def test_everything_of_the_user_s_lies_below_what_the_guest_writes(scenario: ScenarioFile) -> None:
    """The guest covers each place but the first with a tmpfs."""
    file, outcomes = scenario("paths", size="1 MB"), set()
    for parent in (str(REPOSITORY), "/tmp", "/dev/shm", memory_of_run()):
        if os.access(parent, os.W_OK):
            with tempfile.TemporaryDirectory(prefix="Gäste haus-", dir=parent) as place:
                said, outcome = elapsed(Path(place), file)
            here = f"{place}/hier"
            assert said.splitlines() == [
                f"{here}/prögram me says: its data of {here}",
                *("data", "paths.yaml", "prögram me", "rüns"),
            ]
            outcomes.add(outcome)
    assert len(outcomes) == 1


def test_the_guest_s_own_files_stay_in_it(linklab: Linklab, scenario: ScenarioFile) -> None:
    """Only the guest sees what it writes at the paths of the host's files."""
    with tempfile.NamedTemporaryFile("w+", dir="/tmp") as file:
        file.write("the host's")
        file.flush()
        script = (
            f"cat {file.name}; echo; echo the guest\\'s > {file.name}; cat {file.name};"
            f" rm {file.name}; ls {file.name}; touch /run/mine /dev/shm/mine /tmp/mine; echo $?"
        )
        done = linklab("exec", scenario("own", size="1 MB"), "--", "sh", "-c", script)
        assert done.out.splitlines() == ["the host's", "the guest's", "0"], done.err
        assert Path(file.name).read_text() == "the host's"
    assert not any(Path(one, "mine").exists() for one in ("/run", "/dev/shm", "/tmp"))
