from pathlib import Path

import pytest

from linklab.core.paths import PROFILES
from linklab.runs import matrix
from linklab.scenario import ScenarioError

SMALL = """\
name: small
payload: {size: 1 MB, sha256: 0000000000000000000000000000000000000000000000000000000000000000}
links:
  wifi: &link {down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}
  lte: *link
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a campaign would stand, beside the scenario `small`."""
    (tmp_path / "small.yaml").write_text(SMALL)
    return tmp_path / "sweep.yaml"


def test_a_matrix_is_every_scenario_with_every_algorithm_and_seed(path: Path) -> None:
    found = matrix.expand(
        "name: sweep\nmatrices:\n"
        "  - {scenarios: [hs-s7, ./small.yaml], algorithms: [alg3, naive], runs: 2}\n"
        "  - {scenarios: [hs-s7], algorithms: [alg3], seeds: [9]}\n",
        path,
    )
    assert [one.label for one in found.requests] == [
        *("hs-s7-alg3-seed1", "hs-s7-naive-seed1", "small-alg3-seed1"),
        *("small-naive-seed1", "hs-s7-alg3-seed2", "hs-s7-naive-seed2"),
        *("small-alg3-seed2", "small-naive-seed2", "hs-s7-alg3-seed9"),
    ]
    assert [one.name for one in found.scenarios] == ["hs-s7", "small"]


def test_a_variant_changes_what_it_names_and_no_more(path: Path) -> None:
    found = matrix.expand(
        "name: sweep\nmatrices:\n"
        "  - scenarios: [./small.yaml]\n    algorithms: [alg3]\n    variants:\n"
        "      - {name: lossy, set: {links.wifi.loss: 2 %, payload.size: 3 MB}}\n"
        "      - {name: slow, set: {links.lte.down: 1 Mbit/s, client.window: 2 s}}\n",
        path,
    )
    lossy, slow = found.scenarios
    assert (lossy.name, slow.name) == ("small-lossy", "small-slow")
    assert lossy.links["wifi"].loss_ratio == 0.02
    assert lossy.links["lte"].loss_ratio == 0.0, "an alias is not what it was copied from"
    assert (lossy.payload.size_bytes, lossy.payload.sha256) == (3_000_000, None)
    assert slow.links["lte"].down_rate_bps == 1_000_000
    assert slow.links["wifi"].down_rate_bps == 60_000_000
    assert slow.client.window_s == 2.0
    assert slow.payload.sha256 is not None


def test_a_program_of_the_users_takes_part(path: Path) -> None:
    found = matrix.expand(
        "name: sweep\n"
        "exec: [{name: mine, command: \"{campaign}/mine 'a b' {url}\"}]\n"
        "matrices: [{scenarios: [hs-s7], algorithms: [mine]}]\n",
        path,
    )
    (one,) = found.requests
    assert one.client is None
    assert one.command == (f"{path.resolve().parent}/mine", "a b", "{url}")
    assert one.label == "hs-s7-mine-seed1"


CELL = "name: sweep\nmatrices:\n  - "
VARIANT = (
    f"{CELL}scenarios: [./small.yaml]\n    algorithms: [alg3]\n"
    "    variants:\n      - name: one\n        set:\n          "
)
SET = ":8: matrices[0].variants[0].set"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1: the file is empty; needed: name, matrices"),
        ("name: other\nmatrices: []", ":1: name: 'other' must be the file's name"),
        ("name: sweep\nmatrices: []", ":2: matrices: there is nothing to run"),
        ("name: sweep\nmatrix: []", ":2: unknown key 'matrix' (did you mean 'matrices'?)"),
        (CELL + "{scenarios: [hs-s7]}", ":3: matrices[0]: 'algorithms' is missing"),
        (CELL + "{scenarios: [hs-s77], algorithms: [alg3]}", ":3: matrices[0].scenarios[0]: no"),
        (CELL + "scenarios: [hs-s7]\n    algorithms: [alg4]", ":4: matrices[0].algorithms[0]: no"),
        (CELL + "{scenarios: [hs-s7], algorithms: []}", ":3: matrices[0].algorithms: there is"),
        (CELL + "{scenarios: [hs-s7], algorithms: [alg3], runs: 0}", ":3: matrices[0].runs: '0' "),
        (CELL + "{scenarios: [ls], algorithms: [alg3], runs: 2, seeds: [1]}", "seeds: goes"),
        (
            CELL + "{scenarios: [ls], algorithms: [alg3]}\n"
            "  - {scenarios: [ls], algorithms: [alg3], seeds: [1]}",
            ":4: matrices[1]: ls-alg3-seed1 is in the campaign already",
        ),
        (
            "name: sweep\nexec:\n  - {name: alg3, command: 'true'}\n"
            "matrices: [{scenarios: [ls], algorithms: [alg3]}]",
            ":3: exec[0].name: 'alg3' is taken",
        ),
        (VARIANT + "links.wifi.loss: 2", SET + ".links.wifi.loss: in small: links.wifi.loss: '2'"),
        (VARIANT + "links.wi.loss: 2 %", SET + ".links.wi.loss: in small: links.wi: 'wi' (did"),
        (CELL + "scenarios: [./small.yaml]\n    algorithms: [alg3, mptcp-mdp]", "needs an energy"),
        (VARIANT + "name.x: 2 %", "in small: there is no 'x' in a single value"),
        (VARIANT + "{payload: {[a]: 1}}", "set.payload: in small: payload: a key must be a word"),
        (VARIANT + "payload.size: 1 MB\n          payload.size: 3 MB", ":9: …given twice"),
        (VARIANT + "name: foo", SET + ": a variant is called SCENARIO-NAME; allowed: the"),
        (VARIANT + "energy: nonsense", SET + ".energy: in small: energy: no energy model is"),
        (VARIANT + "[a]", SET + ": must be a mapping"),
        (VARIANT + "{}", SET + ": must be a mapping such as"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(path: Path, text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        matrix.expand(text, path)
    assert all(part in str(error.value) for part in said.split("…"))
    assert str(error.value).startswith(str(path))


def test_two_scenarios_of_one_name_are_refused(path: Path) -> None:
    (path.parent / "hs-s7.yaml").write_text(SMALL.replace("name: small", "name: hs-s7"))
    with pytest.raises(ScenarioError, match="two scenarios are called 'hs-s7'"):
        matrix.expand(
            "name: sweep\nmatrices:\n"
            "  - {scenarios: [hs-s7], algorithms: [alg3]}\n"
            "  - {scenarios: [./hs-s7.yaml], algorithms: [naive]}\n",
            path,
        )


def test_the_campaign_of_figure_12b_goes_through_the_other_link_s_rates() -> None:
    found = matrix.load(PROFILES / "campaigns" / "super-aggregation.yaml")
    *others, longest = found.scenarios
    assert (longest.name, longest.payload.size_bytes) == ("superagg-acks-400k-long", 2_300_000_000)
    rates = [one.links["lte"].up_rate_bps for one in others]
    assert rates == sorted(rates)
    assert (rates[0], rates[-1]) == (100_000, 20_000_000)
    assert {one.links["wifi"] for one in found.scenarios} == {found.scenarios[0].links["wifi"]}
    assert {one.client for one in found.requests} == {"curl-wifi", "offloading-ack"}
