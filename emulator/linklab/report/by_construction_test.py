"""Tests which statements hold whatever the lab emulates, for all publications, by property."""

from dataclasses import replace

import numpy as np
import pytest

from linklab.energy import library
from linklab.report import publication, reproduction
from linklab.report.arithmetic import Arithmetic
from linklab.report.publication import Publication
from linklab.report.reproduction import Runs
from linklab.report.statement import RunGroup, Statement
from linklab.runs import run_energy
from linklab.runs.clients import registry

STATED = {name: publication.find(name) for name in publication.names()}

BUILT = [
    (stated, one)
    for stated in STATED.values()
    for one in stated.statements
    if one.kind == "by construction"
]

SLOW = ("emptcp-mobility", "emptcp-background", "emptcp-static", "emptcp-on-off")
"""Scenarios whose links change so often that arithmetic takes seconds."""


def by_rates(made: Arithmetic, one: Statement) -> Runs:
    return {cell: made.runs(cell, [1]) for cell in one.cells}


def holds(made: Arithmetic, one: Statement) -> bool:
    return reproduction.check_one(one, by_rates(made, one)).verdict == "holds"


@pytest.mark.parametrize("stated", STATED.values(), ids=list(STATED))
def test_what_follows_from_links_holds_by_arithmetic(stated: Publication) -> None:
    """Of the thesis' rates arithmetic has one seed, and the fit is of ten."""
    made = Arithmetic(stated.scenario, run_energy.models())
    found = [
        one
        for stated_by, one in BUILT
        if stated_by is stated
        and not one.constructed.startswith("said twice")
        and not one.computed
        and not one.of[0].scenario.startswith(SLOW)
    ]
    misses = [one.words for one in found if not holds(made, one)]
    assert len(misses) <= len(found) // 3, misses


def value(one: Statement, values: dict[RunGroup, float]) -> float:
    best = max if one.measure.more_is_better else min
    return values[one.of[0]] / best(values[cell] for cell in one.to)


@pytest.mark.parametrize("stated", STATED.values(), ids=list(STATED))
def test_what_is_said_twice_holds_whenever_the_other_does(stated: Publication) -> None:
    chance = np.random.default_rng(5)
    for by, one in BUILT:
        said, _, rest = one.constructed.partition("said twice: line ")
        if by is not stated or said or not rest:
            continue
        line = int(rest.split()[0])
        (other,) = [
            each
            for each in stated.statements
            if each.line == line
            and each.of[0].scenario == one.of[0].scenario
            and set(one.cells) <= set(each.cells)
        ][:1]
        held = 0
        for _ in range(3000):
            values = {cell: float(chance.lognormal(0, 0.5)) for cell in other.cells}
            if other.expected.low <= value(other, values) <= other.expected.high:
                held += 1
                assert one.expected.low <= value(one, values) <= one.expected.high
        assert held > 5


def test_links_of_one_rate_and_a_client_of_one_link_are_no_outcomes() -> None:
    """Whoever compares a client that uses Wi-Fi alone with Wi-Fi alone, compares Wi-Fi with Wi-Fi."""
    for stated in STATED.values():
        for one in (each for each in stated.statements if each.expected.text == "the same"):
            links = stated.scenario(one.of[0].scenario).links
            used = {registry.link_by_definition(cell.client, links) for cell in one.cells}
            clients = {cell.client for cell in one.cells}
            multipath = any(registry.client_of(name).multipath for name in clients)
            if multipath and len(used) == 1 and None not in used:
                assert one.kind == "by construction", one.words


def said(*statements: str) -> tuple[Statement, ...]:
    lines = "".join(
        f"  - {{metric: download, source: s, each: [ts], {one}}}\n" for one in statements
    )
    return publication.parse(
        f"name: x\ntitle: t\nsource: s\nstatements:\n{lines}", "x.yaml"
    ).statements


@pytest.mark.parametrize(
    ("first", "second", "is_twice"),
    [
        ("of: alg3, to: [naive], ratio: 60 % to 99 %", "of: naive, to: [alg3], is: more", True),
        ("of: alg3, to: [naive], ratio: 60 % to 101 %", "of: naive, to: [alg3], is: more", False),
        ("of: alg3, to: [naive, alg1], is: less", "of: alg1, to: [alg3], is: more", True),
        ("of: alg3, to: [naive, alg1], is: more", "of: alg1, to: [alg3], is: less", False),
        ("of: alg3, to: [naive], is: less", "of: alg3, to: [alg1], is: less", False),
    ],
)
def test_what_follows_from_another_statement_is_counted_once(
    first: str, second: str, is_twice: bool
) -> None:
    one, other = said(first, second)
    assert not one.constructed
    assert (other.kind == "by construction") == bool(other.constructed) == is_twice


def test_what_the_phone_of_emptcp_can_move_is_no_outcome() -> None:
    """The phone and what the radios share are 322 mW together. Table 2 does not divide them."""
    stated, s3 = STATED["emptcp"], library.get("galaxy-s3")
    common_mw = s3.phone_mw + s3.shared_mw
    about = [
        one
        for one in stated.statements
        if one.metric == "energy" and one.follows and not one.of[0].scenario.startswith(SLOW)
    ]
    held: dict[int, set[bool]] = {}
    now = [s3]
    made = Arithmetic(stated.scenario, lambda _: now[0])
    for phone_mw in (0.0, 0.2 * common_mw, 0.4 * common_mw, s3.phone_mw, common_mw):
        now[0] = replace(s3, phone_mw=phone_mw, shared_mw=common_mw - phone_mw)
        for index, one in enumerate(about):
            held.setdefault(index, set()).add(holds(made, one))
    moved = [about[index] for index, verdicts in held.items() if len(verdicts) == 2]
    assert len(moved) >= 5
    assert [one.words for one in moved if one.kind == "outcome"] == []


def test_no_statement_about_the_energy_of_gb_e_is_an_outcome() -> None:
    """When it gives up LTE was chosen here, so that its own figure may lie anywhere."""
    for one in STATED["greenbag"].statements:
        about = {cell.client for cell in one.of} | (
            {one.to[0].client} if len(one.to) == 1 else set()
        )
        if one.metric == "energy" and "gb-e" in about:
            assert one.kind != "outcome", one.words
