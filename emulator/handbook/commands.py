"""Makes `reference/commands.md`, or man pages' source, from the options that linklab's commands have.

.venv/bin/python emulator/handbook/commands.py            the reference
.venv/bin/python emulator/handbook/commands.py DIRECTORY  a page for each command, for go-md2man
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import linklab
from linklab.commands import cli, help_groups

PAGE: Final = Path(__file__).parent / "reference" / "commands.md"

ABOUT: Final = (
    "a testbed for multi-link HTTP over emulated links: Wi-Fi, LTE, 5G, satellites, fixed lines"
)

HEAD: Final = """\
# Commands

`emulator/handbook/commands.py` makes this page from the code. Do not edit it by hand. `linklab COMMAND --help`
and the man pages of `make manual` say the same, with examples and notes. [multilink](multilink.md) has its own commands.
"""

HELP: Final = "-h, --help"
COMMON: Final = "Shared options"

Described = tuple[str, str]
"""How an argument is written, and what it does."""


def written(action: argparse.Action) -> str:
    """Returns how an argument is written: its names, and its value if it has one."""
    value = ""
    if action.nargs != 0:
        choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
        metavar = action.metavar or choices or action.dest.upper()
        value = " ".join(metavar) if isinstance(metavar, tuple) else metavar
    if not action.option_strings:
        return value if action.metavar or choices else action.dest
    return ", ".join(action.option_strings) + (f" {value}" if value else "")


def groups(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[Described]]]:
    """Yields the titles of a command's groups and their arguments, in the order of its help."""
    for group in parser._action_groups:
        shown = [one for one in group._group_actions if one.help != argparse.SUPPRESS]
        if shown:
            told = parser._get_formatter()
            yield (
                group.title or help_groups.USUAL,
                [
                    (written(one), told._expand_help(one) if one.help else "")
                    for one in help_groups.in_order(shown)
                ],
            )


def commands() -> dict[str, argparse.ArgumentParser]:
    """Returns the parser of each command."""
    return cli.commands_of(cli.parser(whole=True))


def cell(text: str) -> str:
    """Returns text as a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())


def table(title: str, arguments: list[Described]) -> str:
    """Returns a table of arguments."""
    rows = "".join(f"| `{cell(how)}` | {cell(what)} |\n" for how, what in arguments)
    return f"\n| {title} | |\n|---|---|\n{rows}" if rows else ""


def markdown() -> str:
    """Returns the reference. Arguments that several commands describe alike are listed once."""
    parsers = commands()
    uses = collections.Counter(
        (how, what)
        for parser in parsers.values()
        for _, listed in groups(parser)
        for how, what in listed
        if how.startswith("-") and what
    )
    # An option with two descriptions: the more frequent one.
    common = dict((one for one, number in reversed(uses.most_common()) if number > 1))
    helped = (HELP, common.pop(HELP))
    parts = [HEAD, f"\n## {COMMON}\n", table("options", sorted(common.items()))]
    for title, listed in help_groups.COMMANDS.items():
        parts.append(f"\n## {title[0].upper()}{title[1:]}\n")
        for name in listed:
            parser = parsers[name]
            parts.append(f"\n### linklab {name}\n\n{parser.description}\n")
            listed_above = []
            for group, arguments in groups(parser):
                shared = [
                    how for how, what in arguments if how in common and what in ("", common[how])
                ]
                own = [one for one in arguments if one != helped and one[0] not in shared]
                parts.append(table(group, own))
                listed_above += [how.split(",")[0].split()[0] for how in shared]
            if listed_above:
                parts.append(
                    f"\n[{COMMON}](#{COMMON.lower().replace(' ', '-')}): `{'`, `'.join(listed_above)}`\n"
                )
    return "".join(parts)


def escaped(text: str) -> str:
    """Returns text in which Markdown sees nothing but words and `code`."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        one if one.startswith("`") else re.sub(r"([\\*_<>\[\]#~|])", r"\\\1", one) for one in parts
    )


def heading(name: str) -> str:
    """Returns a man page's first line. Its month is that of SOURCE_DATE_EPOCH if that is set."""
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    date = time.strftime("%b %Y", time.gmtime(seconds))
    version = os.environ.get("LINKLAB_VERSION") or linklab.__version__
    return f'% "{name.upper()}" "1" "{date}" "linklab {version}" "linklab"\n'


def lines(text: str | None) -> str:
    """Returns text that keeps its lines, in a section of its own."""
    kept = "\n".join(f"    {line}".rstrip() for line in (text or "").splitlines())
    return f"# NOTES\n\n{kept}\n" if text else ""


def manual() -> dict[str, str]:
    """Returns the Markdown of all man pages by name."""
    whole = cli.parser(whole=True)
    listed = [(f"linklab-{name}(1)", does) for name, does in cli.COMMANDS.items()]
    found = {
        "linklab": "\n".join(
            [
                heading("linklab"),
                f"# NAME\n\nlinklab - {ABOUT}\n",
                f"# SYNOPSIS\n\n{escaped(whole.usage or '')}\n",
                "# COMMANDS\n",
                *(f"**{name}**\n\t{escaped(does)}\n" for name, does in listed),
                lines(whole.epilog),
            ]
        )
    }
    for name, parser in cli.commands_of(whole).items():
        usage = " ".join(parser.format_usage().removeprefix("usage:").split())
        parts = [
            heading(f"linklab-{name}"),
            f"# NAME\n\nlinklab-{name} - {escaped(cli.COMMANDS[name])}\n",
            f"# SYNOPSIS\n\n{escaped(usage)}\n",
            f"# DESCRIPTION\n\n{escaped(parser.description or '')}\n",
        ]
        for title, arguments in groups(parser):
            parts.append(f"# {title.upper()}\n")
            parts += [f"**{escaped(how)}**\n\t{escaped(what)}\n" for how, what in arguments]
        found[f"linklab-{name}"] = "\n".join(
            [*parts, lines(parser.epilog), "# SEE ALSO\n\n**linklab(1)**\n"]
        )
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        directory = Path(sys.argv[1])
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in manual().items():
            (directory / f"{name}.1.md").write_text(text)
    else:
        PAGE.write_text(markdown())
