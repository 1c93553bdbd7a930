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
    with pytest.raises(TraceError, match=r"none\.csv: there is no such trace; allowed: the path"):
        library.find("none.csv", tmp_path)


def test_an_empty_library_has_no_names(tmp_path: Path) -> None:
    assert library.names(tmp_path) == []
    with pytest.raises(TraceError, match="allowed: none, or a path"):
        library.find("lte-driving", directory=tmp_path)


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda shipped: shipped.name)
def test_what_ships_is_what_its_recipe_makes(tmp_path: Path, shipped: object) -> None:
    """Byte by byte. If this fails after a change of the generator: python -m linklab.traces"""
    assert shipped in SHIPPED
    file = next(s for s in SHIPPED if s is shipped)
    assert (TRACES / f"{file.name}.csv").read_bytes() == library.content(file)


def test_all_are_written_into_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "SHIPPED", SHIPPED[:1])
    assert library.make_all(tmp_path / "new") == [tmp_path / "new" / "lte-driving.csv"]
    assert library.names(tmp_path / "new") == ["lte-driving"]
