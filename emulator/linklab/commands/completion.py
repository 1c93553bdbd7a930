"""Implements `linklab completion`: prints the script with which a shell completes linklab's command
lines."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

EPILOG = """\
The script completes commands, options, scenarios, algorithms and files.

examples:
  source <(linklab completion bash)            in this bash, or in ~/.bashrc
  linklab completion zsh > ~/.zfunc/_linklab   with ~/.zfunc in zsh's fpath
  linklab completion fish > ~/.config/fish/completions/linklab.fish"""

SHELLS = ("bash", "zsh", "fish")

_SCENARIOS = ("scenario", "scenarios", "names", "what")
_ALGORITHMS = ("algorithm", "algorithms")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="which shell")


def run(options: argparse.Namespace) -> int:
    """Prints the script. Returns 0."""
    print(script(options.shell))
    return 0


def script(shell: str) -> str:
    """Returns a shell's script for the current options of all commands."""
    # Imported here because few need it, and it loads all commands.
    import shtab

    from linklab.commands import cli

    parser = cli.parser(whole=True)
    kinds = {
        "scenario": _named("scenario", _scenarios()),
        "algorithm": _named("algorithm", _algorithms()),
    }
    for command in cli.commands_of(parser).values():
        for action in command._actions:
            found: Any = _kind(action)
            if found is not None:
                found = {"file": shtab.FILE, "directory": shtab.DIRECTORY, **kinds}[found]
                action.complete = found  # type: ignore[attr-defined]
    return shtab.complete(parser, shell)


def _kind(action: argparse.Action) -> str | None:
    """Returns what kind of value an argument takes, from its name, its type and its help."""
    if action.choices is not None or action.nargs == 0:
        return None
    if action.dest in _ALGORITHMS:
        return "algorithm"
    if action.dest in _SCENARIOS and not action.option_strings:
        return "scenario"
    if action.metavar == "DIR":
        return "directory"
    if action.type is Path or action.metavar == "FILE":
        return "file"
    return None


def _scenarios() -> list[str]:
    # Imported here because every command would wait for it.
    from linklab.scenario.finding import names_in

    return names_in()


def _algorithms() -> list[str]:
    # Imported here likewise.
    from linklab.runs import clients

    return [*clients.GROUPS, *clients.names(clients.USUAL_LINKS)]


def _named(kind: str, names: Iterable[str]) -> dict[str, Any]:
    """Returns the completion of names, or of files if no name matches."""
    function = f"_linklab_{kind}"
    words = shlex.join(names)
    return {
        "bash": function,
        "zsh": function,
        "fish": f"({function})",
        "preamble": {
            "bash": f"""
{function}() {{
  compgen -W {shlex.quote(words)} -- "$1" || compgen -f -- "$1"
}}""",
            "zsh": f"""
{function}() {{
  local -a names=({words})
  _describe {kind} names || _files
}}""",
            "fish": f"""
function {function}
  printf '%s\\n' {words}
  __fish_complete_path (commandline -ct)
end""",
        },
    }
