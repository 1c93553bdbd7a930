import argparse
import re

import pytest

from linklab.commands import cli, help_groups


def commands() -> dict[str, argparse.ArgumentParser]:
    return cli.commands_of(cli.parser(whole=True))


def titles(option: argparse.Action) -> list[str]:
    """The groups of the table that name an option."""
    name = help_groups.name_of(option)
    return [
        title
        for title, names in help_groups.OPTIONS.items()
        for one in names.split()
        if one == name
    ]


def options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings]


def test_every_command_is_in_one_group() -> None:
    listed = [name for group in help_groups.COMMANDS.values() for name in group]
    assert sorted(listed) == sorted(commands())
    assert len(listed) == len(set(listed))


def test_the_list_of_commands_has_one_line_each() -> None:
    lines = help_groups.command_list().splitlines()
    for name, does in cli.COMMANDS.items():
        assert [line.split(maxsplit=1)[1] for line in lines if line.startswith(f"  {name} ")] == [
            does
        ]
    assert [line for line in lines if len(line) > 80] == []


def test_every_option_is_in_one_group_of_the_table() -> None:
    """An option that fails here needs a place in `help_groups.OPTIONS`."""
    wrong = {
        (name, *option.option_strings): titles(option)
        for name, parser in commands().items()
        for option in options(parser)
        if len(titles(option)) != 1
    }
    assert wrong == {}


def test_the_table_names_only_options_that_there_are() -> None:
    names = {help_groups.name_of(one) for parser in commands().values() for one in options(parser)}
    listed = {one for group in help_groups.OPTIONS.values() for one in group.split()}
    assert listed - names == set()


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_help_shows_every_option_once_and_the_usual_ones_first(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parser = commands()[name]
    text = parser.format_help()
    order = list(help_groups.OPTIONS)
    at = {title: text.find(f"\n{title}:\n") for title in order}
    shown = [title for title in order if at[title] >= 0]
    assert shown[0] == help_groups.USUAL
    assert [at[title] for title in shown] == sorted(at[title] for title in shown)
    for option in options(parser):
        (title,) = titles(option)
        (line,) = re.finditer(rf"^  {re.escape(option.option_strings[0])}(?=[ ,\n])", text, re.M)
        after = [one for one in shown if at[one] > at[title]]
        assert at[title] < line.start() < min((at[one] for one in after), default=len(text))
