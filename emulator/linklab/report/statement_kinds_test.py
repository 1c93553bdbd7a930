"""Tests that a statement's kind follows from published figures and fits, for all that ship."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.paths import REPOSITORY
from linklab.energy import calibration, library
from linklab.report import publication, statement_kinds
from linklab.report.statement import Statement
from linklab.report.unknowns import Unknown
from linklab.schema.document import ScenarioError

UNKNOWNS = """\
unknowns:
  - what: LTE's rate
    fitted_to: [{metrics: [download], cells: {ts: [single-lte, alg1]}}]
  - what: a meter
    fitted_to: [{metrics: [energy-main], cells: {ts: [alg1, alg3]}}]
"""


def read(*statements: str, unknowns: str = UNKNOWNS, more: str = "") -> tuple[Statement, ...]:
    """Two statements are there so that the unknowns are about something."""
    used = (
        "metric: download, source: a, within: 1 %, values: {ts: {single-lte: 20 s, alg1: 30 s}}",
        "metric: energy-main, source: a, within: 1 %, values: {ts: {alg1: 9 J, alg3: 5 J}}",
    )
    lines = "".join(f"  - {{{one}}}\n" for one in (*used, *statements))
    text = f"name: x\ntitle: t\nsource: s\n{more}{unknowns}statements:\n{lines}"
    return publication.parse(text, "x.yaml").statements[4:]


@pytest.mark.parametrize(
    ("stated", "kind"),
    [
        ("metric: download, each: [ts], of: alg1, to: [single-lte], is: more", "calibration"),
        ("metric: download, each: [ts], of: alg1, to: [naive], is: less", "outcome"),
        ("metric: download, over: [ts, tm], of: alg1, to: [single-lte], is: more", "outcome"),
        ("metric: goodput, each: [ts], of: alg1, to: [single-lte], is: less", "outcome"),
        (
            "metric: energy-main, each: [ts], of: alg1, to: [alg3], ratio: 180 %, within: 1 %",
            "calibration",
        ),
        ("metric: download, values: {ts: {alg1: 31 s}}, within: 1 %", "calibration"),
        ("metric: download, values: {ts: {naive: 31 s}}, within: 1 %", "outcome"),
        (
            "metric: download, with: energy-main, correlation: 0, within: 1, cells: {ts: [alg1, alg3, single-lte]}",
            "outcome",
        ),
        (
            "metric: download, kind: does not follow, why: w, values: {ts: {alg1: 1 s}}, within: 1 %",
            "does not follow",
        ),
    ],
)
def test_what_is_about_fitted_figures_alone_is_calibration(stated: str, kind: str) -> None:
    (made,) = read(f"{stated}, source: b")
    assert made.kind == kind
    assert bool(made.fitted_by) == (kind == "calibration" or not made.follows)


def test_a_fit_of_one_link_is_no_fit_of_another() -> None:
    rates = "metric: link-rate, source: b, within: 1 %, values: {ts: {alg1: 9 Mbit/s}}, link: "
    fit = "unknowns: [{what: w, fitted_to: [{metrics: [link-rate], link: lte, cells: {ts: [alg1]}}]}]\n"
    kinds = [one.kind for one in read(f"{rates}lte", f"{rates}wifi", unknowns=fit)]
    assert kinds == ["calibration", "outcome"]


def test_a_fit_may_be_of_a_workload() -> None:
    played = (
        "metric: playback, source: b, each: [ts], of: gb-p, to: [gb-half], is: less, workload: "
    )
    fit = (
        "unknowns: [{what: w, fitted_to: [{metrics: [playback], "
        "cells: {ts+video: [gb-p, gb-half]}}]}]\n"
    )
    kinds = [one.kind for one in read(f"{played}video", f"{played}music", unknowns=fit)]
    assert kinds == ["calibration", "outcome"]


@pytest.mark.parametrize(
    ("constant", "message"),
    [
        ("fitted_to: [{metrics: [download], cells: {ts: [alg1], tm: [alg1]}}]", "about tm alg1"),
        (
            "fitted_to: [{metrics: [download, memory], cells: {ts: [alg1]}}]",
            "no statement is about memory",
        ),
        (
            "range: r, why: w, values: [{name: ours, set: {seed: 9}}]",
            "two values are called 'ours'",
        ),
        ("range: r, why: w, values: [{name: a, set: {a: 1}, only: [ao]}]", "unknown value 'ao'"),
    ],
)
def test_a_fit_to_nothing_is_refused(constant: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(message)):
        read(unknowns=f"unknowns: [{{what: w, {constant}}}]\n")


def values(tolerance: str) -> str:
    return (
        f"metric: link-delta, source: table 1, within: {tolerance}, "
        "values: {ts: {alg2: 10 s, alg3: 11 s}, tm: {alg2: 10.5 s}}"
    )


@pytest.mark.parametrize(("tolerance", "accepts"), [("0.99 s", False), ("1 s", True)])
def test_a_tolerance_that_reaches_another_algorithm_cannot_discriminate(
    tolerance: str, accepts: bool
) -> None:
    alg2, alg3, elsewhere = read(values(tolerance))
    assert alg2.also_accepts == (("alg3",) if accepts else ())
    assert alg3.also_accepts == (("alg2",) if accepts else ())
    assert elsewhere.also_accepts == (), "another scenario is another row"
    assert alg2.kind == ("cannot discriminate" if accepts else "outcome")


@pytest.mark.parametrize(("key", "kind"), [("to", "cannot discriminate"), ("to_sum", "outcome")])
def test_a_sum_is_nobody_s_figure(key: str, kind: str) -> None:
    """100 % of the best of two is what the best has. 100 % of their sum is what none has."""
    (made,) = read(
        f"metric: goodput, source: b, each: [ts], of: alg3, {key}: [single-wifi, single-lte], "
        "ratio: 100 %, within: 5 %"
    )
    assert made.kind == kind


@given(st.integers(-100, 100), st.integers(1, 200))
def test_a_correlation_stands_in_no_row(expected: int, within: int) -> None:
    """It may accept that of other algorithms. These are no other answer to the same question."""
    stated = (
        f"metric: download, with: energy-main, source: b, correlation: {expected / 100}, "
        f"within: {within / 100}, cells: {{ts: [WHO, alg3, single-lte]}}"
    )
    found = read(stated.replace("WHO", "alg1"), stated.replace("WHO", "alg2"))
    assert [(one.form, one.also_accepts) for one in found] == [("correlation", ())] * 2


def test_of_another_table_and_of_the_same_algorithm_figures_may_agree() -> None:
    other = values("1 s").replace("table 1", "table 2").replace("alg3", "alg1")
    found = read(values("0.5 s"), other.replace("11 s", "10.1 s").replace("1 s", "50 ms"))
    assert [one.also_accepts for one in found] == [()] * 6
    for group, others in (("alg2, alg3", ()), ("alg1, alg2, alg3", ()), ("alg2", ("alg3",))):
        alg2, *_ = read(values("1 s"), more=f"one_algorithm: {{dynamic: [{group}]}}\n")
        assert alg2.also_accepts == others


@pytest.mark.parametrize(
    ("asked", "accepts"),
    [
        ("ratio: 90 %, within: 9 %", ()),
        ("ratio: 90 %, within: 10 %", ("naive",)),
        ("ratio: 60 % to 100 %", ("naive",)),
        ("ratio: 60 % to 99 %", ()),
        ("ratio: below 120 %", ()),
        ("difference: 2 s, within: 2 s", ("naive",)),
        ("difference: 2 s, within: 1 s", ()),
        ("is: same, within: 5 %", ()),
        ("is: less", ()),
    ],
)
def test_a_comparison_that_no_difference_meets_cannot_discriminate(
    asked: str, accepts: tuple[str, ...]
) -> None:
    """Signs are not asked: they state nothing else."""
    (made,) = read(f"metric: download, source: b, each: [ts], of: alg3, to: [naive], {asked}")
    assert made.also_accepts == accepts


def test_ratios_of_a_table_are_told_apart_like_its_values() -> None:
    of = "metric: download, source: b, each: [ts], of: {}, to: [naive], ratio: {} %, within: 10 %"
    alg2, alg3, alg1 = read(of.format("alg2", 50), of.format("alg3", 59), of.format("alg1", 70))
    assert [one.also_accepts for one in (alg2, alg3, alg1)] == [("alg3",), ("alg2",), ()]


# --- What ships


SHIPPED = [(name, one) for name in publication.names() for one in publication.find(name).statements]


def kinds(name: str, metric: str, source: str = "", clients: str = "") -> set[str]:
    return {
        one.kind
        for where, one in SHIPPED
        if where == name
        and one.metric == metric
        and one.source.startswith(source)
        and (not clients or one.compared_clients in clients.split("|"))
    }


@pytest.mark.parametrize(
    ("name", "metric", "source", "clients"),
    [
        ("thesis", "download", "table 5.12", "single-wifi|single-lte|alg1|alg1 to single-lte"),
        ("thesis", "energy-main", "", ""),
        ("thesis", "time-per-energy", "", ""),
        ("thesis", "efficiency", "section 2.3.1", "booster"),
        ("thesis", "link-delta", "table 5.12", "alg2|alg3"),
        ("greenbag", "goodput", "table II", ""),
        (
            "mptcp",
            "energy-bursts",
            "table 4",
            "mptcp-2016 to curl-lte|mptcp-2016 to curl-wifi|mptcp-2016-lte to curl-lte",
        ),
        ("emptcp", "download", "figure 10", ""),
        ("emptcp", "download", "5.3", "curl-wifi to mptcp-2016"),
        ("super-aggregation", "goodput", "appendix 1.5", ""),
    ],
)
def test_known_fits_are_calibration(name: str, metric: str, source: str, clients: str) -> None:
    assert kinds(name, metric, source, clients) == {"calibration"}


def test_a_kind_is_never_outcome_where_all_figures_were_fitted() -> None:
    """By the fits themselves, not by `fitted_by`."""
    for name in publication.names():
        stated = publication.find(name)
        fits = [*publication.energy_models(name), *stated.unknowns]
        for one in stated.statements:
            fitted = all(
                any(fit.covers(metric, one.link, cell.scenario, cell.client) for fit in fits)
                for metric in one.metrics
                for cell in one.cells
            )
            moved = any(
                figures.covers(metric, one.link, cell.scenario, cell.client)
                for fit in fits
                for figures in fit.moves
                for metric in one.metrics
                for cell in one.cells
            )
            assert not fitted or one.fitted_by
            assert fitted or moved or not one.fitted_by
            assert not (fitted and one.kind == "outcome")


@pytest.mark.parametrize("name", library.names())
def test_energy_models_were_fitted_to_figures_that_are_stated(name: str) -> None:
    for figures in library.get(name).fitted_to:
        stated = publication.find(figures.publication).statements
        assert statement_kinds.unstated(Unknown(name, (figures,)), stated) == []


@pytest.mark.parametrize("name", ["galaxy-s6", "galaxy-s7"])
def test_a_model_s_figures_are_the_rows_that_it_is_fitted_to(name: str) -> None:
    rows = calibration.parse((library.MODELS / f"{name}.csv").read_text(encoding="utf-8"))
    (figures,) = library.get(name).fitted_to
    cells = {f"{where} {who}" for where, clients in figures.cells.items() for who in clients}
    assert cells == {one.label for one in rows}


def test_those_that_do_not_follow_contradict_the_publication_s_own_figures() -> None:
    """Correlations contradict the published values. Of others, another statement about the same
    contradicts them, or a test of claims, or (4.5) the paper has two figures for one thing."""
    claims = (REPOSITORY / "emulator/linklab/energy/emptcp_claims_test.py").read_text()
    tests = {"figure 8": "half_of_wi_fi_s_time", "5.3": "six_times_wi_fi_s_time", "4.5": "def"}
    for name, one in SHIPPED:
        if one.follows:
            continue
        stated = publication.find(name).statements
        if one.form == "correlation":
            sides = [publication.values(stated, metric) for metric in one.metrics]
            true = np.corrcoef([[side[cell] for cell in one.of] for side in sides])[0, 1]
            assert abs(true - (one.expected.value or 0)) > 0.1
        elif one.source in tests:
            assert tests[one.source] in claims
        else:
            same = [b for b in stated if (b.metric, b.of, b.to) == (one.metric, one.of, one.to)]
            assert [b for b in same if not b.expected.accepts(one.expected.low, one.expected.high)]
