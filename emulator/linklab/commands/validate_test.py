from dataclasses import replace
from pathlib import Path

import pytest

from linklab.commands import cli
from linklab.scenario import Scenario, to_yaml


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (("tested", "alg3"), None),
        (("tested", "alg33"), "small: clients[1]: no algorithm is called 'alg33' (did you mean"),
        (("tested", "freeze"), "small: clients[1]: freeze changes the lab for itself"),
    ],
)
def test_the_algorithms_of_clients_have_to_be_known(
    tmp_path: Path,
    small: Scenario,
    capsys: pytest.CaptureFixture[str],
    names: tuple[str, ...],
    error: str | None,
) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(to_yaml(replace(small, clients=names)))
    assert cli.main(["validate", str(file)]) == (0 if error is None else 2)
    said = capsys.readouterr().out
    assert said.startswith(error or f"{file}: valid")
