from pathlib import Path

import pytest

from linklab.regression import baseline, fingerprint, suite
from linklab.regression.figures import Bound, Cell
from linklab.regression.suite import DEFAULT_BOUNDS
from linklab.runs import clients
from linklab.scenario import ScenarioError

HERE = Path("profiles/regression/mine.yaml")

MINE = """\
name: mine
algorithms: [alg3, own]
seeds: [1, 2]
scenarios:
  - {scenario: static-80-50, size: 30 MB}
  - {scenario: ls, algorithms: [alg1], seeds: [7]}
exec:
  - {name: own, command: "'{suite}/my client' --url {url}"}
verify: 2
bounds: {download: 2 % or 30 ms}
exceptions:
  - {scenario: static-*, algorithm: alg3, download: 5 %}
  - {algorithm: alg3, seed: 2, stalls: 1 s}
cost:
  size: 1 MB
  rounds: 3
  programs:
    - {name: own, command: "{suite}/own {output}", cpu: 2.5}
"""


def test_a_whole_suite() -> None:
    read = suite.parse(MINE, HERE)
    assert [str(one.cell) for one in read.planned] == [
        *("static-80-50 alg3 seed 1", "static-80-50 alg3 seed 2"),
        *("static-80-50 own seed 1", "static-80-50 own seed 2", "ls alg1 seed 7"),
    ]
    assert [one.payload.size_bytes for one in read.scenarios] == [30_000_000, 250_000_000]
    assert read.planned[0].entrant.command is None
    assert read.planned[2].entrant.command == (
        f"{HERE.resolve().parent}/my client",
        "--url",
        "{url}",
    )
    assert read.baseline == HERE.with_name("mine.baseline.yaml")
    assert read.cost is not None
    (program,) = read.cost.programs
    assert program.command == (f"{HERE.parent.resolve()}/own", "{output}")
    assert (program.cpu, program.memory) == (2.5, 4.0)
    assert (read.cost.size_bytes, read.cost.rounds) == (1_000_000, 3)


def test_bounds_are_the_suite_s_and_later_exceptions_win() -> None:
    read = suite.parse(MINE, HERE)
    plain = read.bounds_of(Cell("ls", "alg1", 7))
    assert plain == {**DEFAULT_BOUNDS, "download": Bound(0.02, 0.03)}
    assert read.bounds_of(Cell("static-80-50", "alg3", 1))["download"] == Bound(0.05, 0.0)
    second = read.bounds_of(Cell("static-80-50", "alg3", 2))
    assert second == {**plain, "download": Bound(0.05, 0.0), "stalls": Bound(0.0, 1.0)}


@pytest.mark.parametrize("count", [0, 1, 2, 5, 99])
def test_cells_that_are_run_twice_are_spread_over_the_suite(count: int) -> None:
    read = suite.parse(MINE.replace("verify: 2", f"verify: {count}"), HERE)
    verified = [one.cell for one in read.verified()]
    assert len(set(verified)) == len(verified) == min(count, 5)
    if count == 2:
        assert verified == [read.planned[1].cell, read.planned[3].cell]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("name: mine", "name: other", r"mine.yaml:1: name: 'other' must be the file's name"),
        ("[alg3, own]", "[alg3, onw]", r":2: algorithms\[1\]: no algorithm is called 'onw' \(did"),
        ("[alg3, own]", "alg3", r":2: algorithms: must be a list"),
        ("[1, 2]", "[1, -2]", r":3: seeds\[1\]: '-2' is not a whole number"),
        ("static-80-50,", "statik-80-50,", r":5: scenarios\[0\].scenario: no scenario is called"),
        ("size: 30 MB", "size: 30", r":5: scenarios\[0\].size: '30' has no unit"),
        ("scenario: ls,", "scenario: ls+upload, size: 5 GB,", r":6: scenarios\[1\].size: 5 GB is"),
        ("scenario: ls,", "scenario: ls, sise: 1 MB,", r":6: scenarios\[1\]: unknown key 'sise'"),
        ("ls, algorithms: [alg1]", "ls, algorithms: [dynsub]", r":6: .*dynsub needs"),
        (
            "scenario: ls, algorithms: [alg1], seeds: [7]",
            "scenario: static-80-50",
            r":6: .*static-80-50 alg3 seed 1 is in the suite already",
        ),
        ("name: own, command: \"'", "name: alg3, command: \"'", r":8: exec\[0\].name: 'alg3' is"),
        ("my client'", "my client", r":8: exec\[0\].command: .* is no command: No closing"),
        ("command: \"'", "command: \"curl https://me:secret@h/f '", r":8: exec\[0\].command: a"),
        ("verify: 2", "verify: few", r":9: verify: 'few' is not a whole number"),
        ("2 % or 30 ms", "2", r":10: bounds.download: '2' is no bound of the download time"),
        ("algorithm: alg3, download", "algorithm: alg4, download", r":12: exceptions\[0\]: holds"),
        ("seed: 2, stalls: 1 s", "seed: 2", r":13: exceptions\[1\]: states no bound"),
        ("cpu: 2.5", "cpu: 0", r":18: cost.programs\[0\].cpu: '0' is out of range"),
        ("scenarios:", "scenarioz:", r":4: unknown key 'scenarioz'"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(old: str, new: str, said: str) -> None:
    assert old in MINE
    with pytest.raises(ScenarioError, match=said):
        suite.parse(MINE.replace(old, new, 1), HERE)


def test_a_scenario_has_one_size_in_all_of_a_suite() -> None:
    again = "scenario: static-80-50, size: 30 MB, algorithms: [alg1], seeds: [7]"
    text = MINE.replace("scenario: ls, algorithms: [alg1], seeds: [7]", again)
    assert len(suite.parse(text, HERE).scenarios) == 1
    other = text.replace(again, again.replace("30 MB", "40 MB"))
    with pytest.raises(ScenarioError, match=r":6: .*two scenarios are called 'static-80-50'"):
        suite.parse(other, HERE)


def test_who_downloads_must_be_said() -> None:
    with pytest.raises(ScenarioError, match=r":2: scenarios\[0\]: who is to download"):
        suite.parse("name: mine\nscenarios: [{scenario: ls}]\n", HERE)
    with pytest.raises(ScenarioError, match="nothing to download"):
        suite.parse("name: mine\nscenarios: []\n", HERE)


def test_the_default_suite_is_as_wide_as_promised_and_has_a_baseline() -> None:
    read = suite.load(suite.DEFAULT)
    assert len(read.scenarios) >= 12
    algorithms = {one.cell.algorithm for one in read.planned}
    assert algorithms >= {"adaptive", *clients.published(("wifi", "lte"))}
    assert len(read.planned) >= len(read.scenarios) * 4
    assert read.verify >= 3
    assert read.cost is not None
    accepted = baseline.load(read.baseline)
    assert accepted.cells.keys() == {one.cell for one in read.planned}
    assert accepted.fingerprint.scenarios == {
        one.name: fingerprint.of_scenario(one) for one in read.scenarios
    }
