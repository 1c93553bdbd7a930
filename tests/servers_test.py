"""Tests multilink's get and put at common servers and an odd one, in virtual time."""

from pathlib import Path

import pytest
from conftest import Linklab
from served import cells
from served.cells import Matrix, Outcome
from served.kinds import SERVERS

SIZE = 1_500_000
PARTS = 4
"""The number of labs that share the odd server's habits."""

KNOWN: dict[str, dict[str, str]] = {
    "files that change after the proxy has passed a part on": {"proxy": "file-changes"},
}
"""Known failures by reason: the cells that fail. A listed cell that works fails the test too, and
must be removed."""

REFUSING = {("put-none", "put")}
"""Cells where no client can put the file. The client has to end with an error."""


def known() -> set[tuple[str, str]]:
    """Returns the cells that are known to fail."""
    return {
        (server, who)
        for failing in KNOWN.values()
        for who, servers in failing.items()
        for server in servers.split()
    }


def check(linklab: Linklab, matrix: Matrix) -> None:
    """Asserts that every file is right, except the cells of `KNOWN`, which all fail."""
    done = linklab(*matrix.words[:1], "--json", *matrix.words[1:])
    assert done.code == 0, done.err
    found = {
        (one.server, one.who): f"{one.kind}: {one.said}"
        for one in matrix.outcomes(done.run_dir)
        if not _is_good(one)
    }
    failing = known().intersection(matrix.cells)
    assert {cell: said for cell, said in found.items() if cell not in failing} == {}
    assert failing - found.keys() == set(), "these work: strike them out of KNOWN"


def _is_good(one: Outcome) -> bool:
    if (one.server, one.who) in REFUSING:
        return one.kind in ("fails", "harms")
    return one.kind == "right"


@pytest.mark.parametrize("name", SERVERS)
def test_servers(linklab: Linklab, tmp_path: Path, name: str) -> None:
    if cells.is_missing(name):
        pytest.skip(f"not installed: {name}")
    check(linklab, cells.server(tmp_path, name, SIZE))


@pytest.fixture(scope="session")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The odd server, built."""
    return cells.build_odd(tmp_path_factory.mktemp("odd"))


@pytest.mark.parametrize("part", range(PARTS))
def test_habits(linklab: Linklab, tmp_path: Path, odd: Path, part: int) -> None:
    few = dict([*cells.habits(odd).items()][part::PARTS])
    check(linklab, cells.odd(tmp_path, f"odd-{part}", SIZE, odd, few))


def test_known_failures_are_of_servers_that_there_are(odd: Path) -> None:
    assert {server for server, _ in known()} <= {*SERVERS, *cells.habits(odd)}
