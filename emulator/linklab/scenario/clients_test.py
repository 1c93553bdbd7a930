import pytest

from linklab import scenario
from linklab.scenario import Scenario, ScenarioError, to_yaml

LINK = "down: 80 Mbit/s, up: 20 Mbit/s, rtt: 10 ms"


def parsed(clients: str) -> Scenario:
    return scenario.parse(
        f"name: a\npayload: {{size: 1 B}}\nlinks:\n  wifi: {{{LINK}}}\n  lte: {{{LINK}}}\n{clients}",
        "a.yaml",
    )


@pytest.mark.parametrize(
    ("text", "clients", "written"),
    [
        ("", ("tested",), None),
        ("clients: 1\n", ("tested",), None),
        ("clients: 3\n", ("tested",) * 3, "clients: 3"),
        ("clients: [tested, tested]\n", ("tested",) * 2, "clients: 2"),
        ("clients: [tested, alg3]\n", ("tested", "alg3"), "clients:\n  - tested\n  - alg3"),
    ],
)
def test_each_client_has_its_algorithm(
    text: str, clients: tuple[str, ...], written: str | None
) -> None:
    read = parsed(text)
    assert read.clients == clients
    canonical = to_yaml(read)
    assert scenario.parse(canonical, "again.yaml") == read
    assert ("clients" in canonical) is (written is not None)
    assert written is None or written in canonical


def test_several_clients_share_all_links() -> None:
    assert parsed("").shared_links == frozenset()
    assert parsed("clients: 2\n").shared_links == {"wifi", "lte"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("0", "'0' is out of range; allowed: 1 to 8"),
        ("9", "'9' is out of range; allowed: 1 to 8"),
        ("two", "'two' is not a whole number"),
        ("[]", "0 clients; allowed: 1 to 8"),
        ("[alg3, tested]", "the first client is 'alg3'; needed: tested, the run's own"),
        ("{alg3: 2}", "must be a single value"),
    ],
)
def test_other_clients_are_refused(text: str, error: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parsed(f"clients: {text}\n")
    assert str(refused.value).startswith(f"a.yaml:6: clients: {error}")
