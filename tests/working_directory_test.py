"""Tests where programs start in the lab, what they read there, and what becomes of what they write."""

import os
import re
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import REPOSITORY, called, environment, program, ran
from linklab.core.paths import cache_dir

PAGE = REPOSITORY / "emulator/handbook/how-to/my-server-behind-two-links.md"
LINK = ("--link", "wifi=80mbit,10ms")


def written(directory: Path) -> dict[str, str]:
    """Returns the files that the only run kept."""
    (run_dir,) = (directory / "runs").iterdir()
    kept = run_dir / "written"
    return {str(one.relative_to(kept)): one.read_text() for one in kept.rglob("*") if one.is_file()}


def block(page: str, first: str) -> str:
    """Returns the block of a page that begins with a line."""
    found = re.search(rf"^    {re.escape(first)}\n(?:    .*\n|\n(?=    ))*", page, re.M)
    assert found is not None
    return textwrap.dedent(found[0])


def test_a_program_reads_and_writes_where_the_user_stands(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("before")
    (tmp_path / "fetch.py").write_text(
        "import os, pathlib, urllib.request\n"
        "found = urllib.request.urlopen(os.environ['LINKLAB_URL']).read()\n"
        "print(os.getcwd(), pathlib.Path('own').read_text(), len(found))\n"
        "pathlib.Path('own').write_text('after')\n"
        "pathlib.Path('new').mkdir()\n"
        "pathlib.Path('new/file').write_text('made')\n"
        "pathlib.Path('large').write_bytes(bytes(17_000_000))\n"
        "pathlib.Path('link').symlink_to('/etc/passwd')\n"
    )
    done = called(tmp_path, "exec", *LINK, "--", sys.executable, "fetch.py")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path} before 50000000\n"), done.stderr
    assert written(tmp_path) == {"own": "after", "new/file": "made"}
    (run_dir,) = (tmp_path / "runs").iterdir()
    assert (run_dir / "written-not-kept").read_text() == "large\n"
    assert (tmp_path / "own").read_text() == "before"
    assert {one.name for one in tmp_path.iterdir()} == {"own", "fetch.py", "runs"}


def test_a_home_is_hidden_but_for_what_the_command_names(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "named").write_text("shown\n")
    (home / ".netrc").write_text("secret\n")
    done = called(
        home,
        "exec",
        *LINK,
        "--",
        "sh",
        "-c",
        'cat "$0"; cat .netrc',
        "named",
        HOME=str(home),
        LINKLAB_CACHE=str(cache_dir()),
    )
    assert done.stdout == "shown\n"
    assert ".netrc" in done.stderr


@pytest.mark.parametrize(
    ("name", "file", "first"),
    [("nginx", "nginx.conf", "daemon off;"), ("caddy", "Caddyfile", "{"), ("http.server", "", "")],
)
def test_the_guide_s_servers_work_as_they_stand(
    tmp_path: Path, name: str, file: str, first: str
) -> None:
    heading = {"nginx": "nginx", "caddy": "Caddy", "http.server": "Python's http.server"}[name]
    page = PAGE.read_text().partition(f"## {heading}\n")[2]
    (tmp_path / "index.html").write_text("mine")
    path = os.environ["PATH"]
    if file:
        path = f"{path}:{Path(program(name)).parent}"
        (tmp_path / file).write_text(block(page, first))
    command = re.search(r"^    linklab (.*)$", page, re.M)
    assert command is not None
    words = command[1].replace("static-80-50", " ".join(LINK))
    done = ran(
        ["sh", "-c", f'exec "{sys.executable}" -m linklab {words}'],
        cwd=tmp_path,
        env={**environment(), "PATH": path},
    )
    assert done.returncode == 0, done.stderr
    assert "--share" not in done.stderr
    if file:
        assert re.search(r"^links-adaptive-seed1: \d\.\d+ s, 7\d\.\d Mbit/s", done.stdout)
    else:
        assert done.stdout == "mine"
