import math
import re
from pathlib import Path

import pytest

from linklab import scenario
from linklab.report import publication, statement
from linklab.report.publication import Publication
from linklab.report.statement import RunGroup, Statement
from linklab.runs import clients, matrix
from linklab.schema.document import ScenarioError

HEAD = "name: x\ntitle: A paper\nsource: thesis\n"
VALUES = "values: {hs-s7: {alg3: 16.55 s, naive: 18.99 s}}"
PAIR = "each: [ts], of: alg3, to: [naive]"
REST = "of: alg3, to: [naive], is: less"


def read(*statements: str) -> Publication:
    lines = "".join(f"  - {{{one}}}\n" for one in statements)
    return publication.parse(f"{HEAD}statements:\n{lines}", "x.yaml")


def one(statement: str) -> Statement:
    (made,) = read(statement).statements
    return made


def test_values_are_a_statement_each() -> None:
    alg3, naive = read(
        f"metric: download, source: table 1, {VALUES}, within: {{alg3: 10 %, naive: 1 s}}"
    ).statements
    assert alg3.of == (RunGroup("hs-s7", "alg3"),)
    assert (alg3.expected.low, alg3.expected.high) == pytest.approx((14.895, 18.205))
    assert (alg3.expected.text, alg3.expected.value, alg3.line) == ("16.55 s", 16.55, 5)
    assert (naive.expected.low, naive.expected.high) == pytest.approx((17.99, 19.99))
    assert (alg3.title, alg3.words) == ("download", "hs-s7 alg3")
    assert alg3.kind == "outcome"


def test_a_value_may_be_a_range() -> None:
    made = one("metric: efficiency, source: s, values: {ts: {alg3: 80 % to 90 %}}")
    assert (made.expected.low, made.expected.high) == pytest.approx((0.8, 0.9))
    assert (made.expected.text, made.expected.value) == ("80 % to 90 %", None)


def test_the_larger_of_two_tolerances_counts() -> None:
    near = one("metric: download, source: s, values: {ts: {alg3: 1 s}}, within: 10 % or 2 s")
    far = one("metric: download, source: s, values: {ts: {alg3: 100 s}}, within: 10 % or 2 s")
    assert (near.expected.high, far.expected.high) == pytest.approx((3, 110))


@pytest.mark.parametrize(
    ("asked", "form", "low", "high"),
    [
        ("ratio: 51 %, within: 10 %", "ratio", 0.41, 0.61),
        ("ratio: 60 % to 99 %", "ratio", 0.6, 0.99),
        ("difference: 44 s to 70 s", "difference", 44, 70),
        ("difference: 10 s, within: 1 s", "difference", 9, 11),
        ("difference: below 10 s", "difference", -math.inf, 10),
        ("is: same, within: 2 %", "ratio", 0.98, 1.02),
    ],
)
def test_comparisons(asked: str, form: str, low: float, high: float) -> None:
    made = one(f"metric: download, source: s, {PAIR}, {asked}")
    assert made.form == form
    assert (made.expected.low, made.expected.high) == pytest.approx((low, high))


def test_of_the_first_seconds_alone() -> None:
    asked = f"metric: goodput, source: s, first: 250 s, {PAIR}, is: less"
    made = one(asked)
    assert made.of == (RunGroup("ts", "alg3", 250.0),)
    assert made.title == "ratio of goodput in the first 250 s"
    assert one(asked) != one(asked.replace(" first: 250 s,", ""))
    both = read(asked, f"metric: download, source: s, {PAIR}, is: less")
    assert both.first_seconds_cells == [
        RunGroup("ts", "alg3", 250.0),
        RunGroup("ts", "naive", 250.0),
    ]
    assert both.cells == [RunGroup("ts", "alg3"), RunGroup("ts", "naive")]
    with pytest.raises(ScenarioError, match="first: download is of whole runs; allowed: with"):
        one(f"metric: download, source: s, first: 250 s, {PAIR}, is: less")


def test_signs_leave_out_what_is_equal() -> None:
    less, more = (one(f"metric: download, source: s, {PAIR}, is: {w}") for w in ("less", "more"))
    assert less.expected.low < less.expected.high < 1 < more.expected.low < more.expected.high


def test_each_is_one_for_a_scenario_and_over_one_for_all() -> None:
    asked = "metric: download, source: s, {}: [ts, tm], of: alg3, to: [naive, alg1], is: less"
    assert len(read(asked.format("each")).statements) == 2
    over = one(asked.format("over"))
    assert over.of == (RunGroup("ts", "alg3"), RunGroup("tm", "alg3"))
    assert over.words == "ts, tm: alg3 to the best of naive, alg1"
    assert len(over.cells) == 6


def test_more_than_the_sum_of_its_parts() -> None:
    asked = "metric: goodput, source: s, over: [ts, tm], of: alg3, {}, is: more"
    parts = "[single-wifi, single-lte]"
    made = one(asked.format(f"to_sum: {parts}"))
    assert made.sums
    assert made.words == "ts, tm: alg3 to the sum of single-wifi, single-lte"
    assert len(made.cells) == 6
    assert not one(asked.format(f"to: {parts}")).sums


def test_several_clients_have_a_statement_each() -> None:
    asked = "metric: download, source: s, each: [ts, tm], of: [alg3, alg2], to: [naive], is: less"
    said = [statement.words for statement in read(asked).statements]
    assert said == [
        f"{where}: {who} to naive" for who in ("alg3", "alg2") for where in ("ts", "tm")
    ]


def test_correlations() -> None:
    made = one(
        "metric: download, with: link-delta, source: s, correlation: -0.91, within: 0.1, "
        "cells: {ts: [alg1, alg2], tm: [alg3]}"
    )
    assert (made.expected.low, made.expected.high) == pytest.approx((-1.01, -0.81))
    assert made.title == "correlation of download with time between the ends of the links"
    assert made.say(-0.912) == "-0.91"


def test_a_statement_of_a_workload_over_a_scenario_s_links() -> None:
    made = one(
        "metric: page-load, source: s, workload: large-page, each: [ts], of: mptcp, "
        "to: [direct-wifi], is: less"
    )
    where = "ts+large-page"
    assert made.cells == (RunGroup(where, "mptcp"), RunGroup(where, "direct-wifi"))
    (other,) = read(f"metric: download, source: s, {PAIR}, is: less").statements
    assert other.of == (RunGroup("ts", "alg3"),)
    with pytest.raises(ScenarioError, match="unknown value 'cinema'; allowed: .*large-page"):
        one(f"metric: download, source: s, workload: cinema, {PAIR}, is: less")


def test_several_workloads_have_a_statement_each() -> None:
    several = "metric: playback, source: s, workload: [greenbag-40s-80, greenbag-40s-120]"
    made = read(f"{several}, {PAIR}, is: less").statements
    assert [statement.of[0].scenario for statement in made] == [
        "ts+greenbag-40s-80",
        "ts+greenbag-40s-120",
    ]


def test_a_campaign_s_scenarios_may_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication, "CAMPAIGNS", tmp_path)
    (tmp_path / "sweep.yaml").write_text(
        "name: sweep\nmatrices: [{scenarios: [ts], algorithms: [alg3], "
        "variants: [{name: slow, set: {links.lte.down: 1 Mbit/s}}]}]\n"
    )
    found = publication.parse(
        "name: x\ntitle: t\nsource: s\ncampaign: sweep\nstatements:\n"
        f"  - {{metric: download, source: s, each: [ts-slow, ts], {REST}}}\n"
        f"  - {{metric: download, source: s, each: [ts-slow], workload: video, {REST}}}\n",
        "x.yaml",
    )
    slow, usual, played = (found.scenario(one.of[0].scenario) for one in found.statements)
    assert (slow.name, slow.links["lte"].down_rate_bps) == ("ts-slow", 1_000_000)
    assert usual == scenario.find("ts")
    assert (played.name, played.links) == ("ts-slow+video", slow.links)


def test_a_value_of_a_workload_over_a_scenario_s_links() -> None:
    made = one(
        "metric: page-load, source: s, workload: large-page, within: 1 s, values: "
        "{ts: {mptcp: 3 s}}"
    )
    assert made.of == (RunGroup("ts+large-page", "mptcp"),)


def test_what_is_stated_of_links_is_found_whatever_the_workload() -> None:
    links, played = scenario.find("greenbag-energy"), scenario.find("greenbag-energy+greenbag-120s")
    assert publication.about(links)
    assert publication.about(played) == publication.about(links)
    assert publication.figures_for(scenario.find("ls"))
    assert publication.figures_for(scenario.find("ls+large-page")) == {}


@pytest.mark.parametrize("kind", ["", "kind: does not follow, "])
def test_a_statement_may_say_why_it_fails(kind: str) -> None:
    made = one(f"metric: download, source: s, {kind}why: sums, {PAIR}, is: less")
    assert (made.kind, made.why) == ("does not follow" if kind else "outcome", "sums")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("downlod, source: s", "unknown value 'downlod' (did you mean 'download'?)"),
        ("download", "'source' is missing"),
        ("download, source: s", "'of' is missing"),
        (f"download, source: s, {VALUES}", "'within' is missing"),
        (f"download, source: s, {VALUES}, within: {{alg3: 1 s}}", "within: 'naive' is missing"),
        (f"download, source: s, {VALUES}, within: 3 J", "has the unknown unit 'J'"),
        ("download, source: s, values: {hs-s8: {alg3: 1 s}}, within: 1 s", "value 'hs-s8'"),
        ("download, source: s, values: {ts: {alg4: 1 s}}, within: 1 s", "unknown value 'alg4'"),
        ("download, source: s, values: {ts: {alg3: 16.55}}, within: 1 s", "has no unit"),
        (f"download, source: s, {PAIR}", "'ratio' is missing"),
        (f"download, source: s, {PAIR}, is: same", "'within' is missing"),
        ("download, source: s, each: [ts], of: alg3, is: less", "'to' is missing"),
        (f"link-rate, source: s, {PAIR}, is: less", "link-rate is of one link"),
        (f"download, link: lte, source: s, {PAIR}, is: less", "is not of one link"),
        (f"download, source: s, kind: calibration, {PAIR}, is: less", "unknown value"),
        (f"download, source: s, why: '', {PAIR}, is: less", "why: "),
    ],
)
def test_what_is_wrong_is_said_with_its_line(statement: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(message)) as said:
        read(f"metric: {statement}")
    assert str(said.value).startswith("x.yaml:5: statements[0]")


@pytest.mark.parametrize("name", publication.names())
def test_those_that_ship_are_read(name: str) -> None:
    assert publication.find(name).name == name
    assert {one.kind for one in publication.find(name).statements} <= set(statement.KINDS)


@pytest.mark.parametrize("name", publication.names())
def test_who_is_in_those_that_ship_can_do_what_is_stated(name: str) -> None:
    """GreenBag's algorithms need a player, which its scenarios are without."""
    stated = publication.find(name)
    cells = stated.cells
    found = {one.scenario: stated.scenario(one.scenario) for one in cells}
    misfits = [clients.misfit(one.client, found[one.scenario], has_energy=True) for one in cells]
    assert [one for one in misfits if one is not None] == []


def test_the_thesis_campaign_is_every_published_figure_ten_times() -> None:
    found = matrix.load(publication.CAMPAIGNS / "thesis.yaml")
    assert len(found.requests) == 350
    cells = {(one.scenario.name, one.client) for one in found.requests}
    stated = publication.values(publication.find("thesis").statements, "download")
    assert cells == {(cell.scenario, cell.client) for cell in stated}
    assert "thesis" not in scenario.names_in(), "a campaign is no scenario"


def with_band(*statements: str) -> Publication:
    lines = "".join(f"  - {{source: s, {one}}}\n" for one in statements)
    return publication.parse(
        f"name: x\ntitle: t\nsource: s\nsame: 10 %\nstatements:\n{lines}", "x.yaml"
    )


@pytest.mark.parametrize(
    ("ratio", "word"),
    [(0.89, "less"), (0.91, "same"), (1.006, "same"), (1.09, "same"), (1.11, "more")],
)
def test_a_dead_band_lets_one_sign_hold_for_each_ratio(ratio: float, word: str) -> None:
    signs = with_band(*(f"metric: download, {PAIR}, is: {one}" for one in ("less", "same", "more")))
    held = [one.expected.text for one in signs.statements if one.expected.accepts(ratio, ratio)]
    assert held == ["the same" if word == "same" else word]


def test_a_tolerance_of_its_own_goes_before_the_dead_band() -> None:
    (made,) = with_band(f"metric: download, {PAIR}, is: same, within: 2 %").statements
    assert (made.expected.low, made.expected.high) == pytest.approx((0.98, 1.02))


CASES = "{each: [ts, tm], of: [alg3, alg2], to: [naive]}"


def test_a_count_is_of_the_cases_with_a_better_client() -> None:
    (made,) = with_band(
        f"metric: goodput, better_in: 3, within: 1, cases: [{CASES}, {{each: [ao], of: alg3, "
        "to: [single-wifi, single-lte], metric: download}]"
    ).statements
    assert (made.form, len(made.cases), made.kind) == ("count", 3, "outcome")
    assert (made.expected.low, made.expected.high, made.expected.text) == (2, 4, "3")
    assert [one.expected.text for case in made.cases for one in case] == ["more"] * 4 + ["less"]
    assert made.metrics == ("goodput", "download")
    assert {cell.scenario for cell in made.cells} == {"ts", "tm", "ao"}
    assert made.where == "3 cases"
    assert made.title == "number of cases with better goodput, download"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (f"better_in: 3, within: 0, cases: [{CASES}]", "better_in: '3' is out of range"),
        (f"better_in: 1, cases: [{CASES}]", "'within' is missing"),
    ],
)
def test_a_bad_count_is_refused(said: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(message)):
        with_band(f"metric: goodput, {said}")
