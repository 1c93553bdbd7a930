"""Tests what errors about keys quote."""

import random
import string

import pytest

from linklab import scenario
from linklab.schema.document import ScenarioError

SECRET = string.ascii_letters + string.digits + "$./*!+=@"


def secret(draw: random.Random) -> str:
    """Returns a word as a password file, a key or a token has it."""
    word = "".join(draw.choice(SECRET) for _ in range(draw.randrange(31, 90)))
    return word if draw.random() < 0.5 else f"${draw.randrange(1, 7)}$" + word


def foreign(draw: random.Random, hidden: str) -> str:
    """Returns a text file of the machine's that is no scenario."""
    return draw.choice(
        [
            f"root:{hidden}:20228:0:99999:7:::\ndaemon:*:20228:0:99999:7:::\n",
            f"{hidden}:\n",
            f"? {hidden}\n: x\n",
            f"'{hidden}': 1\n",
            f"name: x\n{hidden}: y\n",
            f"name: x\npayload: {{size: 1 MB, '{hidden}': 2}}\n",
        ]
    )


def test_an_error_quotes_no_line_of_a_file_that_is_no_scenario() -> None:
    """The API of `linklab serve` answers with these errors."""
    draw = random.Random(48)
    for _ in range(600):
        hidden = secret(draw)
        with pytest.raises(ScenarioError) as raised:
            scenario.parse(foreign(draw, hidden), "shadow")
        said = str(raised.value)
        assert not any(hidden[at : at + 12] in said for at in range(len(hidden) - 11)), said


def test_a_key_that_is_mistyped_is_quoted() -> None:
    with pytest.raises(ScenarioError, match=r"unknown key 'payloud' \(did you mean 'payload'\?\)"):
        scenario.parse("name: x\npayloud: {size: 1 MB}\n", "x.yaml")
