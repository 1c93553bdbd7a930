from dataclasses import replace
from pathlib import Path

import pytest

from linklab.commands import cli
from linklab.runs import clients
from linklab.scenario import Scenario, to_yaml
from linklab.scenario.clients import Downloader


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
    file.write_text(to_yaml(replace(small, clients=tuple(map(Downloader, names)))))
    assert cli.main(["validate", str(file)]) == (0 if error is None else 2)
    said = capsys.readouterr().out
    assert said.startswith(error or f"{file}: valid")


def test_a_bug_of_linklab_is_not_an_invalid_file(
    tmp_path: Path, small: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_a_bug(*_: object) -> list[str | None]:
        raise ValueError("not enough values to unpack (expected 2, got 1)")

    file = tmp_path / "small.yaml"
    file.write_text(to_yaml(small))
    monkeypatch.setattr(clients, "further", has_a_bug)
    with pytest.raises(ValueError, match="not enough values"):
        cli.main(["validate", str(file)])
