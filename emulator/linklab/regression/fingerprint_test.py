from dataclasses import replace
from pathlib import Path

import pytest

from linklab import scenario
from linklab.energy import library
from linklab.energy.model import to_yaml
from linklab.models.trace import Trace
from linklab.places.guest import kernel, locked
from linklab.regression import fingerprint, suite
from linklab.regression.fingerprint import Fingerprint, differences, of_scenario
from linklab.regression.suite import Suite
from linklab.scenario import Scenario


def made(algorithms: str, more: str = "") -> Suite:
    text = f"name: s\nalgorithms: [{algorithms}]\nscenarios: [{{scenario: ls}}]\n{more}"
    return suite.parse(text, Path("s.yaml"))


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"multilink": "multilink v1 (go1.26.8)", "revision": "anything"}
    monkeypatch.setattr(fingerprint, "versions", lambda: versions)


def test_what_a_figure_depends_on_is_in_it() -> None:
    taken = fingerprint.taken(made("alg3"))
    assert taken.programs == {
        "guest image": f"guest-{locked.lock().trees['guest'][:16]}",
        "guest kernel": kernel.key(),
        "Go": "go1.26",
    }
    assert set(taken.scenarios) == {"ls"}


def test_programs_that_take_no_part_are_not() -> None:
    assert (
        "Go" not in fingerprint.taken(made("own", "exec: [{name: own, command: curl}]\n")).programs
    )
    assert "Go" not in fingerprint.taken(made("curl-wifi, aria2-2, mptcp")).programs


def test_what_a_scenario_says_to_people_changes_nothing(small: Scenario) -> None:
    told = replace(small, title="t", description="d", source="s")
    assert of_scenario(told) == of_scenario(small)


def test_all_that_it_says_to_the_lab_does(small: Scenario) -> None:
    slower = replace(small.links["wifi"], rtt_s=0.011)
    others = [
        replace(small, links={**small.links, "wifi": slower}),
        replace(small, payload=replace(small.payload, size_bytes=999_999)),
        replace(small, client=replace(small.client, overlap=0.95)),
        replace(small, sample_s=0.4),
    ]
    assert len({of_scenario(one) for one in [small, *others]}) == len(others) + 1


def test_a_trace_counts_by_its_content_not_by_its_place(tmp_path: Path) -> None:
    hashes = []
    for place, content in (("a", "0,1 Mbit/s\n"), ("b", "0,1 Mbit/s\n"), ("c", "0,2 Mbit/s\n")):
        shipped = scenario.find("emptcp-16mb-bad-good")
        lte = next(
            one
            for one in map(scenario.find, scenario.names_in())
            if "lte" in one.links and one.links["lte"].model(Trace) is not None
        )
        directory = tmp_path / place
        directory.mkdir()
        (directory / "trace.csv").write_text(content)
        link = lte.links["lte"]
        trace = link.model(Trace)
        assert trace is not None
        moved = link.having(replace(trace, file=directory / "trace.csv"))
        hashes.append(of_scenario(replace(shipped, links={**shipped.links, "lte": moved})))
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize("who", ["adaptive-energy", "emptcp-http", "emptcp-kernel", "mptcp-mdp"])
def test_an_energy_model_counts_where_a_client_decides_by_it(
    tmp_path: Path, small: Scenario, who: str
) -> None:
    taken = [
        fingerprint.taken(with_model(tmp_path, small, f"alg3, {who}", name))
        for name in ("galaxy-s7", "galaxy-s3", "galaxy-s7")
    ]
    (said,) = differences(*taken[:2])
    assert said.startswith("energy model of me: ")
    assert not differences(taken[0], taken[2])


def test_an_energy_model_counts_by_its_figures(tmp_path: Path, small: Scenario) -> None:
    shipped = library.get("galaxy-s7")
    own = replace(shipped, name="own", device="d", source="s", description="d")
    slower = replace(own, base_mw=shipped.base_mw + 1)
    hashes = [fingerprint.taken(with_model(tmp_path, small, "mptcp-mdp", "galaxy-s7"))]
    for one in (own, slower):
        (tmp_path / "own.yaml").write_text(to_yaml(one))
        hashes.append(fingerprint.taken(with_model(tmp_path, small, "mptcp-mdp", "./own.yaml")))
    assert hashes[0] == hashes[1] != hashes[2]


def test_an_energy_model_by_which_nobody_decides_does_not(tmp_path: Path, small: Scenario) -> None:
    of = [with_model(tmp_path, small, "alg3, mptcp", name) for name in ("galaxy-s7", "galaxy-s3")]
    assert fingerprint.taken(of[0]) == fingerprint.taken(of[1])
    assert fingerprint.taken(of[0]).energy_models == {}


def with_model(place: Path, small: Scenario, algorithms: str, model: str) -> Suite:
    (place / "me.yaml").write_text(scenario.to_yaml(replace(small, name="me", energy=model)))
    text = f"name: s\nalgorithms: [{algorithms}]\nscenarios: [{{scenario: me.yaml}}]\n"
    return suite.parse(text, place / "s.yaml")


def test_what_differs_is_named() -> None:
    then = Fingerprint({"Go": "go1.25", "H2O": "2.2.5"}, {"ls": "aaa", "ao": "bbb"})
    now = Fingerprint({"Go": "go1.26", "H2O": "2.2.5", "curl": "8"}, {"ls": "aac", "ao": "bbb"})
    assert differences(then, now) == [
        "Go: go1.25 then, go1.26 now",
        "curl: none then, 8 now",
        "scenario ls: aaa then, aac now",
    ]
    assert not differences(then, then)


@pytest.mark.parametrize(
    ("version", "series"),
    [("multilink v1 (go1.26.11)", "go1.26"), ("go1.27", "go1.27"), ("half", "unknown")],
)
def test_fixes_of_a_series_are_the_same_program(version: str, series: str) -> None:
    assert fingerprint._go(version) == series
