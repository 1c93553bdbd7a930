import re
from pathlib import Path

import pytest

from linklab.traces import library, plain
from linklab.traces.statistics_test import of_downlink
from linklab.traces.trace import TraceError


def test_shipped_traces_are_found_by_name() -> None:
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


@pytest.mark.parametrize("name", library.names())
def test_a_shipped_trace_has_the_figures_that_it_names(name: str) -> None:
    file = library.find(name)
    trace, comments = plain.load(file), plain.header(file)
    assert library.is_generated(comments)
    seconds, runs = of_downlink(trace), of_downlink(trace, 30.0)
    found = {
        "mean_mbit": seconds.mean_bps / 1e6,
        "cv": seconds.cv,
        "autocorrelation_1s": seconds.autocorrelation_1s,
        "autocorrelation_10s": seconds.autocorrelation_10s,
        "cv_30s": runs.cv,
        "gaps_per_100s": 100 * seconds.gaps / seconds.duration_s,
    }
    said = [re.match(r"(\w+): (\S+), wanted (\S+) to (\S+) \(", one) for one in comments]
    figures = [one.groups() for one in said if one]
    assert len(figures) in (5, 6)
    for figure, value, low, high in figures:
        assert found[figure] == pytest.approx(float(value), abs=5e-4)
        assert float(low) <= float(value) <= float(high)
