from pathlib import Path

import pytest

from linklab.lab.network.services import OwnServer
from linklab.runs import plan_file
from linklab.runs.plan_file import Entrant, PlanFile
from linklab.scenario import Scenario, ScenarioError
from linklab.schema.mapping import Keys

KEYS = Keys(("name",), ("algorithms", *plan_file.SHARED))


def opened(text: str, tmp_path: Path) -> PlanFile:
    return PlanFile(f"name: mine\n{text}", tmp_path / "mine.yaml", KEYS, "suite")


def test_clients_aliases_and_programs_take_part(small: Scenario, tmp_path: Path) -> None:
    file = opened(
        "algorithms: [link-bdp, own]\nexec: [{name: own, command: \"{suite}/x 'a b' {url}\"}]\n",
        tmp_path,
    )
    here = str(tmp_path.resolve())
    assert file.entrants(file.root, [small]) == [
        Entrant("alg3", beside=here),
        Entrant("own", (f"{here}/x", "a b", "{url}"), beside=here),
    ]


def test_a_program_s_run_is_called_by_its_name(small: Scenario) -> None:
    own = Entrant("own", ("/x", "{url}")).request(small, 3, 0.5)
    assert (own.client, own.command, own.label) == (None, ("/x", "{url}"), "small-own-seed3")
    alg3 = Entrant("alg3").request(small, 3)
    assert (alg3.client, alg3.command, alg3.client_name) == ("alg3", None, "alg3")


def test_a_server_of_the_user_s_serves_all_but_who_has_another(
    small: Scenario, tmp_path: Path
) -> None:
    file = opened(
        "algorithms: [alg3, one, two]\n"
        "server: {command: '{suite}/serve {port}'}\n"
        "exec:\n"
        "  - {name: one, command: x}\n"
        "  - {name: two, command: y, server: {command: other, port: 8080}}\n",
        tmp_path,
    )
    everybody_s = OwnServer((f"{tmp_path.resolve()}/serve", "{port}"), 443)
    assert [one.request(small, 1).server for one in file.entrants(file.root, [small])] == [
        everybody_s,
        everybody_s,
        OwnServer(("other",), 8080),
    ]


def test_what_lies_beside_the_file_is_shown(small: Scenario, tmp_path: Path) -> None:
    file = opened("algorithms: [alg3, one]\nexec:\n  - {name: one, command: x}\n", tmp_path)
    entrants = file.entrants(file.root, [small])
    assert [one.request(small, 1).beside for one in entrants] == [str(tmp_path.resolve())] * 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exec: [{name: link-bdp, command: x}]", ":2: exec[0].name: 'link-bdp' is taken"),
        ("exec: [{name: own, command: ''}]", ":2: exec[0].command: an empty command"),
        ("exec: [{name: Own, command: x}]", ":2: exec[0].name: 'Own' is no name; allowed: a-z"),
        ("server: {command: ''}", ":2: server.command: an empty command"),
        ("server: {command: x, port: 0}", ":2: server.port: '0' is out of range"),
        ("exec: [{name: own, command: x, server: {port: 80}}]", ":2: exec[0].server: 'command'"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        opened(text, tmp_path)
    assert f"{tmp_path / 'mine.yaml'}{said}" in str(error.value)
