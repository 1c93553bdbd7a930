from pathlib import Path

import pytest

from linklab.traces import library, plain
from linklab.traces.recipes import SHIPPED, TRACES
from linklab.traces.trace import TraceError


def test_shipped_traces_are_found_by_name() -> None:
    assert {shipped.name for shipped in SHIPPED} <= set(library.names())
    assert len(plain.load(library.find("lte-driving"))) == 6000


def test_a_path_is_relative_to_its_base(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("t,down_mbit\n0,1\n1,2\n")
    assert library.find("mine.csv", tmp_path) == tmp_path / "mine.csv"
    assert library.find(str(tmp_path / "mine.csv")) == tmp_path / "mine.csv"


def test_unknown_names_are_guessed_at() -> None:
    with pytest.raises(TraceError, match=r"'lte-drivin' \(did you mean 'lte-driving'\?\); allowed"):
        library.find("lte-drivin")
    with pytest.raises(TraceError, match="no trace is called '..'; allowed: "):
        library.find("..")


def test_a_missing_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        TraceError, match=r"none\.csv: there is no such trace in .*; allowed: the path"
    ):
        library.find("none.csv", tmp_path)


def test_an_empty_library_has_no_names(tmp_path: Path) -> None:
    assert library.names(tmp_path) == []
    with pytest.raises(TraceError, match="allowed: none, or a path"):
        library.find("lte-driving", directory=tmp_path)


def test_what_ships_is_what_its_recipe_makes(tmp_path: Path) -> None:
    """Byte by byte. If this fails after a change of the generator: python -m linklab.traces"""
    made = library.make_all(tmp_path / "new")
    assert [file.stem for file in made] == [shipped.name for shipped in SHIPPED]
    assert library.names(tmp_path / "new") == sorted(file.stem for file in made)
    for file in made:
        assert file.read_bytes() == (TRACES / file.name).read_bytes(), file.name
