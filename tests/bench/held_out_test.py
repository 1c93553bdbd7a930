import pytest
from linklab import scenario
from linklab.links import oracle

from bench.held_out import CLIENTS, CURL, behind, efficiencies, headline, rows, shares_of
from bench.held_out_scenarios import KINDS, LEAST_S, draw_all, series

DRAWN = list(draw_all("1.2.dev3+gabc"))


@pytest.mark.parametrize(("kind", "text"), DRAWN)
def test_each_is_a_scenario_that_ends(kind: str, text: str) -> None:
    drawn = scenario.parse(text)
    assert drawn.name.startswith(f"held-out-{kind}-")
    assert drawn.title.endswith("of release 1.2")
    least_s = oracle.oracle_s(drawn)
    assert 0.5 < least_s < 10 * LEAST_S[1]


def test_there_are_forty_of_six_kinds() -> None:
    assert len({text for _, text in DRAWN}) == 40
    assert {kind for kind, _ in DRAWN} == KINDS.keys()
    whole = {kind: "".join(text for one, text in DRAWN if one == kind) for kind in KINDS}
    assert [kind for kind, text in whole.items() if "loss:" in text] == ["loss"]
    assert [kind for kind, text in whole.items() if "bulk:" in text] == ["crowd"]
    assert [kind for kind, text in whole.items() if "spread:" in text] == ["walk"]
    assert [kind for kind, text in whole.items() if "for:" in text] == ["outages"]
    assert "events:" in whole["swing"]
    assert "events:" not in whole["static"]


def test_each_release_has_its_own() -> None:
    assert list(draw_all("1.2")) == DRAWN
    other = {text for _, text in draw_all("1.3")}
    assert not other & {text for _, text in DRAWN}
    assert series("1.2.3+gabc") == "1.2.3"
    with pytest.raises(ValueError, match="version 'unknown' names no release; needed: git tags"):
        series("unknown")


def row(client: str, efficiency: float | None, *failures: str) -> dict[str, object]:
    wifi = {client: 0.46, "flow 1": 0.3, "flow 2": 0.24}
    shares = {"wifi": wifi} if client != "curl-lte" else {}
    return {
        "algorithm": client,
        "efficiency": efficiency,
        "failures": failures,
        "shares": shares,
    }


def test_a_failed_run_has_no_efficiency_and_curl_its_better_link() -> None:
    found = efficiencies(
        [row("adaptive", 0.9), row("a", 0.8, "seed 2"), row("curl-wifi", 0.4), row("curl-lte", 0.7)]
    )
    assert found == {"adaptive": 0.9, "a": 0.0, CURL: 0.7}
    assert behind(found) == 0
    assert behind(found | {"a": 1.0}) == pytest.approx(0.1)


def test_a_share_is_the_client_s() -> None:
    made = [row(name, 0.9) for name in ("adaptive", "curl-wifi", "curl-lte")]
    assert shares_of(made) == {"adaptive": 0.46, CURL: 0.46}


def test_the_table_has_all_kinds_and_clients() -> None:
    clients = {"adaptive": 0.9, "alg1": 0.895, "alg2": 0, "alg3": 0.5, CURL: 0.5, "mptcp": 0.5}
    one = dict.fromkeys(CLIENTS, 0.4) | clients
    found = {"x": one, "y": one | {"adaptive": 0.7}, "z": one}
    kinds = {"x": "static", "y": "static", "z": "swing"}
    heads, made = rows(found, kinds, {"x": 4.0, "y": 6.0, "z": 5.5}, {"adaptive": 0.46})
    assert heads[:5] == ["client", "static", "swing", "all", "worst"]
    taken = rows(found | {"z": one | {"adaptive": 1.5}}, kinds, {"z": 1.0, "x": 1.0, "y": 1.0}, {})
    assert taken[1][0][2:4] == ["1.500", "0.867"]
    assert made[0] == ["adaptive", "0.800", "0.900", "0.833", "0.700", "2", "0", "46"]
    assert made[2] == ["alg1", "0.895", "0.895", "0.895", "0.895", "3", "0", "-"]
    assert made[3][-2] == "3"
    assert made[-1][1:4] == ["5.0 s", "5.5 s", "5.2 s"]


def test_the_headline_has_the_best_other_client() -> None:
    slow = dict.fromkeys(CLIENTS, 0.2)
    found = {
        "x": slow | {"adaptive": 1.5, "adaptive-fair": 1.0, "alg3": 0.8},
        "y": slow | {"adaptive": 0.7, "alg3": 0.4},
    }
    said = "adaptive 0.850 (0.700 in y), best other client: alg3 0.600 (0.400 in y)"
    assert headline(found) == f"mean efficiency (least): {said}"
