from pathlib import Path

import pytest
import vl_convert

from linklab import scenario
from linklab.core.statistics import Interval
from linklab.report import charts, vega
from linklab.runs.courses import Range

HS = scenario.find("hs-s7")
RANGE = Range(1, "wifi", 0.5, 2.0, 0, 500_000, 400_000, 1_000, "taken over", "")
SPECS = {
    "times": charts.times({"alg3": [(1, 2.0), (2, 9.5)], "x": [(1, 3.0)]}, {"alg3": Interval(2, 9.5)}),
    "courses": charts.courses(
        HS, {1: {"wifi": [(0, 8e7), (0.5, 7e7)]}, 2: {"wifi": [(0, 6e7)]}},
        {"wifi": [(0.0, 5e7)], "lte": [(0.0, 1e7)]}, 0.5,
    ),
    "requests": charts.requests(HS, [RANGE]),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECS)
def test_charts_are_what_vega_lite_draws(name: str) -> None:
    svg = vega.drawn(SPECS[name], "svg").decode()
    assert svg.startswith("<svg")
    assert svg.count("<path") > 3
    assert vega.drawn(SPECS[name], "png").startswith(b"\x89PNG")


def test_every_run_the_median_and_the_interval_are_drawn() -> None:
    values = SPECS["times"]["data"]["values"]
    assert [row["s"] for row in values if "s" in row] == [2.0, 9.5, 3.0]
    assert [(row["median"], row["low"], row["high"]) for row in values if "median" in row] == [
        (5.75, 2, 9.5),
        (3.0, 3.0, 3.0),
    ]
    assert SPECS["times"]["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"


def test_the_median_is_of_the_runs_that_go_on() -> None:
    values = SPECS["courses"]["data"]["values"]
    assert [(row["t"], row["m"]) for row in values if "m" in row] == [(0, 70), (0.5, 70)]
    assert [row["c"] for row in values if "c" in row] == [50], "LTE was not used"


def test_a_request_is_a_line_through_the_file() -> None:
    (row,) = SPECS["requests"]["data"]["values"]
    assert (row["t"], row["e"], row["a"], row["b"], row["o"]) == (0.5, 2.0, 0, 0.4, "taken over")


def test_the_library_is_bundled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def bundle(snippet: str, vl_version: str) -> str:
        calls.append(vl_version)
        return f"made;{snippet}"

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    assert vega.javascript() == vega.javascript()
    assert calls == [vega.VERSION]
    (kept,) = cache.iterdir()
    assert kept.read_text().startswith("made;")
