import os
from collections.abc import Callable
from pathlib import Path

import pytest

from linklab.places.guest import homes
from linklab.places.guest.homes import Homes
from linklab.runs import programs, visible_paths
from linklab.runs.visible_paths import ShareError, VisiblePaths

Install = Callable[..., Path]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only home; the user stands in a project there, and has nothing of it on his PATH.

    The checkout, with multilink, and the temporary folder may lie in another one.
    """
    made = tmp_path / "home"
    (made / "project").mkdir(parents=True)
    monkeypatch.setattr(homes, "found", lambda: Homes(frozenset([made]), frozenset([made])))
    monkeypatch.setattr(programs, "MULTILINK", Path("/usr/bin/multilink"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(made / "project")
    return made


@pytest.fixture
def install(home: Path) -> Install:
    """Makes programs in the home, each a file or what is said to be in it."""

    def make(name: str, content: str = "\x7fELF") -> Path:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o755)
        return path

    return make


def of(home: Path, *command: object, share: tuple[str, ...] = ()) -> set[str]:
    """What of the home is shown and there, besides the directory where the user stands."""
    paths = visible_paths.select([[*map(str, command)]], share).paths
    inside = {path for path in paths if home in path.parents and path.exists()}
    return {str(path.relative_to(home)) for path in inside} - {"project"}


def test_linklab_s_own_runs_are_shown_nothing(home: Path) -> None:
    assert visible_paths.select([], ()) == VisiblePaths()


def test_where_the_user_stands_is_shown(home: Path) -> None:
    assert visible_paths.select([["/bin/true"]], ()) == VisiblePaths((home / "project",))


@pytest.mark.parametrize("name", [".", "..", ".config"])
def test_a_whole_home_and_its_settings_are_not(
    home: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".config").mkdir()
    monkeypatch.chdir(home / name)
    seen = visible_paths.select([["/bin/true"]], ())
    assert seen.paths == ()
    if name == "..":  # Above it nothing is hidden.
        assert seen.notes == ()
    else:
        here = (home / name).resolve()
        (note,) = seen.notes
        assert note.startswith(f"{here}, where you stand, is hidden in the guest but for what ")
    asked = visible_paths.select([["/bin/true"]], (str((home / name).resolve()),))
    assert asked == VisiblePaths(((home / name).resolve(),))


def test_a_program_is_shown_with_its_directory(home: Path, install: Install) -> None:
    assert of(home, install("tools/mine/tool")) == {"tools/mine"}


@pytest.mark.parametrize("name", ["tool", ".ssh/tool", ".local/share/tool"])
def test_a_program_beside_secrets_is_shown_alone(home: Path, install: Install, name: str) -> None:
    assert of(home, install(name)) == {name}


def test_a_program_of_a_toolchain_is_shown_with_that(home: Path, install: Install) -> None:
    node = install(".nvm/versions/node/v22/bin/node")
    (node.parents[1] / "lib").mkdir()
    assert of(home, node) == {".nvm/versions/node/v22", ".nvm/versions/node/v22/bin"}
    assert of(home, install("go/bin/tool")) == {"go/bin"}
    assert of(home, install("bin/tool")) == {"bin"}


def test_settings_beside_programs_are_not_shown(home: Path, install: Install) -> None:
    """Of ~/.cargo and ~/.local: tokens and histories."""
    install(".cargo/credentials.toml", "token")
    assert of(home, install(".cargo/bin/tool")) == {".cargo/bin"}
    install(".local/share/fish/fish_history", "password")
    install(".local/lib/python3.11/module.py", "")
    assert of(home, install(".local/bin/tool")) == {".local/bin", ".local/lib"}


def test_a_venv_is_shown_with_the_python_that_it_was_made_of(home: Path, install: Install) -> None:
    base = install(".pyenv/versions/3.11.7/bin/python3.11")
    (base.parents[1] / "lib").mkdir()
    (home / ".pyenv/versions/3.11").symlink_to("3.11.7")
    venv = home / "venvs" / "one"
    (venv / "bin").mkdir(parents=True)
    (venv / "pyvenv.cfg").touch()
    (venv / "bin" / "python").symlink_to(home / ".pyenv/versions/3.11/bin/python3.11")
    (venv / "bin" / "python3").symlink_to("python")
    script = install("venvs/one/bin/tool", f"#!{venv}/bin/python3\n")
    (home / ".local" / "bin").mkdir(parents=True)
    (home / ".local" / "bin" / "tool").symlink_to(script)  # As pipx does.
    seen = of(home, home / ".local" / "bin" / "tool")
    real = {os.path.realpath(home / one) for one in seen}
    assert {str(venv), str(base.parents[1])} <= real
    for kept in (".pyenv", "venvs", ".local"):
        assert str(home / kept) not in real


def test_a_program_elsewhere_may_lead_into_a_home(
    home: Path, install: Install, tmp_path: Path
) -> None:
    python = install("pythons/3.11/bin/python")
    (tmp_path / "python").symlink_to(python)
    assert of(home, tmp_path / "python") == {"pythons/3.11/bin"}
    (tmp_path / "script").write_text(f"#!{tmp_path}/python -I\n")
    assert of(home, tmp_path / "script") == {"pythons/3.11/bin"}


def test_directories_of_the_path_are_shown_and_where_links_there_lead(
    home: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a program would be another one, silently."""
    python = install(".local/share/uv/python/3.12/bin/python")
    (python.parents[1] / "lib").mkdir()
    (home / "bin").mkdir()
    (home / "bin" / "python3").symlink_to(python)
    (home / "bin" / "dangling").symlink_to("nowhere")
    monkeypatch.setenv("PATH", f"{home}/bin:{home}/none:/usr/bin")
    uv = ".local/share/uv/python/3.12"
    assert of(home, "/bin/sh") == {"bin", uv, f"{uv}/bin"}


@pytest.mark.parametrize("before", [["env", "NAME=value"], ["nice"], ["time", "-p"]])
def test_a_program_behind_another_one_is_shown_as_the_first_is(
    home: Path, install: Install, before: list[str]
) -> None:
    """The venv of `env NAME=value python`, for example, has the modules that Python needs."""
    python = install("venvs/one/bin/python")
    (home / "venvs/one/pyvenv.cfg").touch()
    alone = of(home, python)
    assert "venvs/one" in alone
    assert of(home, *before, python) == alone | {"venvs/one/bin/python"}


def test_what_a_command_names_is_shown(home: Path, install: Install) -> None:
    for name in ("files/a", "files/b", "files/c", ".netrc", "Mail/d"):
        install(name, "")
    words = (f"{home}/files/a", f"--ca={home}/files/b", f"@{home}/files/c", "../.netrc", "{url}")
    assert of(home, "/bin/cat", *words, f"{home}/none", f"{home}/Mail") == {
        *("files/a", "files/b", "files/c", "project/../.netrc", "Mail"),
    }


def test_a_command_in_a_file_may_name_nothing(home: Path, install: Install) -> None:
    """It may be a stranger's. What lies beside the file is shown."""
    key = install(".ssh/id")
    tool = install("suites/tool")
    seen = visible_paths.select([[str(tool), str(key)]], (), str(home / "suites"))
    assert set(seen.paths) == {home / "project", home / "suites", tool}
    assert seen.notes == (f"{key} is hidden in the guest; --share {key} shows it",)
    assert home not in visible_paths.select([[str(tool)]], (), str(home)).paths
    other = install("Documents/program")
    paths = visible_paths.select([[str(other)]], (), str(home / "suites")).paths
    assert (other in paths, other.parent in paths) == (True, False)


def test_a_stranger_s_script_opens_no_directory_by_its_interpreter(
    home: Path, install: Install, tmp_path: Path
) -> None:
    install("Documents/passwords", "")
    by = install("Documents/program")
    (tmp_path / "script").write_text(f"#!{by}\n")
    assert of(home, tmp_path / "script") == {"Documents/program"}
    (home / "Documents" / "passwords").chmod(0o600)
    (tmp_path / "script").write_text(f"#!{home}/Documents/passwords\n")
    assert of(home, tmp_path / "script") == set()
    (tmp_path / "link").symlink_to(home / "Documents" / "program")
    assert of(home, tmp_path / "link") == {"Documents/program"}


def test_what_is_hidden_of_a_command_is_said(home: Path, install: Install) -> None:
    id_file = install(".ssh/id")
    seen = visible_paths.select(
        [["/bin/sh", "-c", f"cat {id_file}; ls {home}/project"], ["/x", str(home)]], ()
    )
    assert seen.notes == (
        f"{id_file} is hidden in the guest; --share {id_file} shows it",
        f"{home} is hidden in the guest; --share {home} shows it",
    )
    assert seen.paths == (home / "project",)
    shared = (str(id_file.parent), str(home))
    assert visible_paths.select([["/bin/sh", "-c", f"cat {id_file}"]], shared).notes == ()


def test_what_is_to_be_shown_has_to_be_there(home: Path) -> None:
    visible_paths.require(str(home))
    with pytest.raises(ShareError, match=r"--share .*/none: no such file or directory"):
        visible_paths.require(str(home / "none"))
