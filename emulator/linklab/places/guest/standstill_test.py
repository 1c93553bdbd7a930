"""Tests whose command line is found at the top of a stack, over stacks made at random."""

import random
import shlex

from linklab.core.printable import printable
from linklab.places.guest import standstill


def test_a_command_is_found_on_its_stack() -> None:
    """The order is that of fs/exec.c and fs/binfmt_elf.c."""
    dice = random.Random(1)
    for _ in range(300):
        command = [word(dice) or "x", *(word(dice) for _ in range(dice.randrange(5)))]
        variables = [f"V{number}={word(dice)}" for number in range(dice.randrange(5))]
        text = "".join(f"{one}\0" for one in [*command, *variables, "/usr/bin/x"]).encode()
        stack = dice.randbytes(dice.randrange(5000)) + b"x86_64\0" + text + bytes(8)
        assert standstill.command(stack) == printable(shlex.join(command), keep="")
        assert standstill.command(stack[dice.randrange(1, 9) :] + b"\1") == ""
    assert standstill.command(b"") == standstill.command(bytes(4096)) == ""


def test_what_a_program_wrote_there_is_printable_and_short() -> None:
    said = standstill.command(
        b"x86_64\0\x1b]0;owned\x07" + b"a" * 5000 + b"\0/usr/bin/x" + bytes(9)
    )
    assert said.isprintable()
    assert len(said) == 200


def test_a_process_of_another_is_a_program() -> None:
    assert standstill.command_of(0) == "a program"


def word(dice: random.Random) -> str:
    """Returns a word that is no variable."""
    return "".join(dice.choice("ab c/-ä'\"$x86_64\n\x1b\u202e") for _ in range(dice.randrange(12)))
