import pytest

from linklab import scenario
from linklab.scenario import Scenario, ScenarioError, to_yaml
from linklab.scenario.clients import Downloader

LINK = "down: 80 Mbit/s, up: 20 Mbit/s, rtt: 10 ms"
FIRST, ALG3 = Downloader(), Downloader("alg3")


def parsed(clients: str) -> Scenario:
    return scenario.parse(
        f"name: a\npayload: {{size: 1 B}}\nlinks:\n  wifi: {{{LINK}}}\n  lte: {{{LINK}}}\n{clients}",
        "a.yaml",
    )


@pytest.mark.parametrize(
    ("text", "clients", "written"),
    [
        ("", (FIRST,), None),
        ("clients: 1\n", (FIRST,), None),
        ("clients: 3\n", (FIRST,) * 3, "clients: 3"),
        ("clients: [tested, tested]\n", (FIRST,) * 2, "clients: 2"),
        ("clients: [tested, {}]\n", (FIRST,) * 2, "clients: 2"),
        ("clients: [tested, alg3]\n", (FIRST, ALG3), "clients:\n  - tested\n  - alg3"),
        ("clients: [{algorithm: tested}, {algorithm: alg3}]\n", (FIRST, ALG3), "  - alg3"),
        (
            "clients: [tested, {added_rtt: 40 ms}]\n",
            (FIRST, Downloader(added_rtt_s=0.04)),
            "clients:\n  - tested\n  - {algorithm: tested, added_rtt: 40 ms}",
        ),
    ],
)
def test_each_client_has_its_algorithm(
    text: str, clients: tuple[Downloader, ...], written: str | None
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
        ("[tested, [alg3]]", "[1]: must be a mapping with the keys algorithm, added_rtt"),
        ("[tested, ' ']", "[1].algorithm: is empty"),
        ("[tested, {rtt: 1 s}]", "[1]: unknown key 'rtt'"),
        ("[tested, {added_rtt: 40}]", "[1].added_rtt: '40' has no unit"),
        ("[tested, {added_rtt: -1 ms}]", "[1].added_rtt: '-1 ms' is negative"),
        ("[tested, {added_rtt: 11 s}]", "[1].added_rtt: '11 s' is out of range"),
        ("[{added_rtt: 1 s}]", "[0].added_rtt: the first client has the links' round trips"),
    ],
)
def test_other_clients_are_refused(text: str, error: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parsed(f"clients: {text}\n")
    said = str(refused.value).removeprefix("a.yaml:6: clients").removeprefix(": ")
    assert said.startswith(error)
