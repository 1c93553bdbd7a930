import shutil
import subprocess
from pathlib import Path

import pytest

from linklab.commands import cli, completion


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The printed script of each shell."""
    directory = tmp_path_factory.mktemp("completion")
    found = {}
    for shell in completion.SHELLS:
        found[shell] = directory / shell
        found[shell].write_text(completion.script(shell))
    return found


def completed(script: Path, *words: str) -> list[str]:
    """What bash offers for the last word, in a directory where there is one file."""
    (script.parent / "files").mkdir(exist_ok=True)
    (script.parent / "files" / "mine.yaml").touch()
    asked = subprocess.run(
        [
            "bash",
            "--norc",
            "-c",
            'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
            'function=$(complete -p linklab); function=${function#*-F }; "${function% linklab}"\n'
            'printf "%s\\n" "${COMPREPLY[@]}"',
            "bash",
            script,
            *words,
        ],
        cwd=script.parent / "files",
        check=True,
        capture_output=True,
        text=True,
    )
    assert asked.stderr == ""
    return asked.stdout.split()


def test_the_command_prints_the_script(
    scripts: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for shell, script in scripts.items():
        assert cli.main(["completion", shell]) == 0
        assert capsys.readouterr().out == script.read_text() + "\n"


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_shell_can_read_its_script(scripts: dict[str, Path], shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", scripts[shell]], check=True)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("linklab re", ["regress", "report", "reproduce"]),
        ("linklab completion ", ["bash", "fish", "zsh"]),
        ("linklab run hs-s", ["hs-s6", "hs-s7"]),
        ("linklab run mi", ["mine.yaml"]),
        ("linklab compare hs-s7 -a adap", ["adaptive", "adaptive-energy", "adaptive-fair"]),
        ("linklab compare hs-s7 -a peer", ["peers"]),
        ("linklab run hs-s7 --place g", ["guest"]),
        ("linklab run hs-s7 --tls", ["--tls-keys"]),
        ("linklab export mi", ["mine.yaml"]),
    ],
)
def test_bash_completes(scripts: dict[str, Path], line: str, offered: list[str]) -> None:
    assert sorted(completed(scripts["bash"], *line.split(" "))) == offered


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("linklab re", ["regress", "report", "reproduce"]),
        ("linklab run hs-s", ["hs-s6", "hs-s7"]),
        ("linklab compare hs-s7 -a adap", ["adaptive", "adaptive-energy", "adaptive-fair"]),
        ("linklab run hs-s7 --place g", ["guest"]),
    ],
)
def test_fish_completes(scripts: dict[str, Path], line: str, offered: list[str]) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    script = f"source {scripts['fish']}; complete -C '{line}'"
    asked = subprocess.run(
        ["fish", "--no-config", "-c", script], check=True, capture_output=True, text=True
    )
    assert sorted(one.split("\t")[0] for one in asked.stdout.splitlines()) == offered


def test_every_command_is_completed(scripts: dict[str, Path]) -> None:
    assert set(cli.COMMANDS) <= set(completed(scripts["bash"], "linklab", ""))
    text = scripts["zsh"].read_text()
    assert text.startswith("#compdef linklab\n")
    assert [name for name in cli.COMMANDS if f"\n    {name}:" not in text] == []
