"""Parses the command line `linklab COMMAND` and calls the command's file.

Each command is a file of this folder with `add_options`, `run` and perhaps `EPILOG`, the last part
of its help. Only the called command's file is imported. Exit codes: 0 success, 1 a run failed, 2
the request cannot be carried out as given.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any, TypeVar

import linklab
from linklab.commands import help_groups
from linklab.commands.options import UsageError
from linklab.core import unwritable
from linklab.core.error_report import report_error
from linklab.display.printing import escaped
from linklab.places.names import PROCESSOR

COMMANDS = {name: does for group in help_groups.COMMANDS.values() for name, does in group.items()}
"""All commands with their descriptions."""

_Action = TypeVar("_Action", bound=argparse.Action)

_FILES = {"import": "import_trace"}
"""The files of commands whose names are no module names."""

_CLOSING_S = 20.0
"""The time for which further signals are ignored. It is longer than a lab takes to end."""

_AGAIN_S = 1e-3
"""The delay after which an interrupt that hit a destructor is repeated."""

_EXAMPLES = """\
examples:
  linklab compare static-80-50                 six approaches, one table
  linklab run hs-s7 -a alg3 --json             one run, figures for machines
  linklab exec static-80-50 -- curl -o {output} --interface wlan0 {url}
  linklab live -a alg3,alg1                    downloads for ever, to be watched
  linklab doctor                               what works on this machine
"""


class _Version(argparse.Action):
    """Implements `--version`, which asks git only when it is called."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"linklab {linklab.__version__}")
        parser.exit()


class _Command(argparse.ArgumentParser):
    """Parses a command's options. Loads them when it is called."""

    def __init__(self, *, file: str, **settings: Any) -> None:
        self._file = file
        self._rarer: dict[str, argparse._ArgumentGroup] = {}
        self._is_loaded = False
        super().__init__(formatter_class=help_groups.Formatter, **settings)

    def _add_action(self, action: _Action) -> _Action:
        """Adds an option to its group. argparse calls this for every option."""
        group = self._rarer.get(help_groups.group_of(action)) if action.option_strings else None
        return super()._add_action(action) if group is None else group._add_action(action)

    def load(self) -> None:
        """Imports the command's file and adds its options."""
        if self._is_loaded:
            return
        self._is_loaded = True
        for title in help_groups.OPTIONS:
            if title != help_groups.USUAL:
                self._rarer[title] = self.add_argument_group(title)
        module = importlib.import_module(f"linklab.commands.{self._file}")
        self.epilog = getattr(module, "EPILOG", "")
        module.add_options(self)
        self.set_defaults(module=module)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parses the words after the command."""
        self.load()
        return super().parse_known_args(args, namespace)


def parser(*, whole: bool = False) -> argparse.ArgumentParser:
    """Returns the parser of a command line. It loads a command's options when the command is
    called, or all options at once if `whole`, which takes a second."""
    top = argparse.ArgumentParser(
        prog="linklab",
        usage="linklab [-h] [--version] COMMAND ...",
        description="A testbed for multi-link HTTP over emulated Wi-Fi, LTE, 5G,\nsatellite and fixed links.\n\n"
        + help_groups.command_list(),
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=_Version, help="print linklab's version")
    commands = top.add_subparsers(
        prog="linklab",
        dest="name",
        required=True,
        metavar="COMMAND",
        parser_class=_Command,
        help=None if whole else argparse.SUPPRESS,  # The description lists the commands.
    )
    for name, summary in COMMANDS.items():
        command: _Command = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            file=_FILES.get(name, name),
        )
        if whole:
            command.load()
    return top


def commands_of(whole: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Returns the parsers of all commands by name."""
    (commands,) = (
        action for action in whole._actions if isinstance(action, argparse._SubParsersAction)
    )
    return dict(commands.choices)


_STARTING = ("exec", "shell")
"""The commands that start a program of the user's."""


def _require_command(top: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Ends with an error if the first word is no command."""
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        from linklab.schema.mapping import guess  # YAML is slow to load.

        allowed = ", ".join(COMMANDS)
        top.error(
            f"no command is called {words[0]!r}{guess(words[0], COMMANDS)}; allowed: {allowed}"
        )


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Splits words at the first `--` if the command starts one of the user's."""
    if not words or words[0] not in _STARTING or "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line and returns its exit code."""
    with escaped():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    words, command = _split(sys.argv[1:] if arguments is None else list(arguments))
    top = parser()
    _require_command(top, words)
    options, rest = top.parse_known_args(words)
    if rest and options.name in _STARTING and not command:
        said = " ".join(rest)
        top.error(f"-- is missing before your program; allowed: linklab {options.name} … -- {said}")
    if rest:
        top.error(f"unrecognized arguments: {' '.join(rest)}")
    options.command = command
    if getattr(options, "processor", None) is not None:
        os.environ[PROCESSOR] = options.processor
    from linklab.schema.document import ScenarioError  # YAML is slow to load.

    interrupt = _Interrupt()
    try:
        signal.signal(signal.SIGTERM, interrupt)
        # A script's background commands ignore SIGINT.
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            signal.signal(signal.SIGINT, interrupt)
        return int(options.module.run(options))
    except KeyboardInterrupt:
        print("linklab: interrupted; everything that was started has been ended", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (UsageError, ScenarioError, OSError, RuntimeError) as error:
        todo = unwritable.remedy(error, getattr(options, "out", None))
        report_error(error if "LINKLAB_CACHE" in str(error) else f"{error}{todo}")
        return 2


class _Interrupt:
    """Raises KeyboardInterrupt at a signal, but not again for _CLOSING_S. A second one would
    interrupt the clean-up."""

    def __init__(self) -> None:
        self._deaf_until_s = -math.inf

    def __call__(self, _: int, __: FrameType | None) -> None:
        now_s = time.monotonic()
        if now_s >= self._deaf_until_s:
            self._deaf_until_s = now_s + _CLOSING_S
            sys.unraisablehook = self._met_by_a_destructor
            raise KeyboardInterrupt

    def _met_by_a_destructor(self, met: sys.UnraisableHookArgs) -> None:
        """Handles an exception in a destructor, which Python would print. It ignores errors of
        half-made objects. An interrupt ends there, so it is repeated a little later."""
        if met.exc_type is KeyboardInterrupt:
            self._deaf_until_s = -math.inf
            signal.signal(signal.SIGALRM, self)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
