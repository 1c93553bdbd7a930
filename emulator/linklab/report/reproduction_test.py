from dataclasses import replace

from linklab import scenario
from linklab.report import reproduction
from linklab.report.reproduction import CALIBRATION, PUBLICATIONS, TOLERANCES, Cell, Count
from linklab.runs.comparison import compare
from linklab.runs.run_figures import RunFigures


def test_the_thesis_has_35_cells_of_which_11_are_calibration() -> None:
    rows = [
        row.algorithm for name in PUBLICATIONS["thesis"] for row in scenario.find(name).published
    ]
    assert len(rows) == 35
    assert sum(row in CALIBRATION for row in rows) == 11
    assert set(rows) <= set(TOLERANCES)


def measured(download_s: float) -> RunFigures:
    return RunFigures(download_s, 1.0, 10.0, 10.0 / download_s, None, {})


def test_cells_say_how_far_they_are_off() -> None:
    one = scenario.find("hs-s7")
    one = replace(one, published=tuple(r for r in one.published if r.algorithm != "alg2"))
    runs = {
        "single-wifi": [measured(26.0)],
        "single-lte": [measured(36.0)],
        "naive": [measured(t) for t in (18.0, 19.0, 30.0)],
        "alg1": [measured(17.88 * 1.2)],
    }
    compared = compare(one, runs, {"alg3": ["hung"]})
    cells = reproduction.cells([one], {"hs-s7": compared})
    assert [(cell.algorithm, cell.inside, cell.calibration) for cell in cells] == [
        ("single-wifi", True, True),
        ("single-lte", False, True),
        ("naive", True, False),
        ("alg1", False, False),
        ("alg3", False, False),
    ]
    error = (19.0 - 18.99) / 18.99
    assert cells[2] == Cell("hs-s7", "naive", 18.99, 19.0, error, 0.05, True, False)
    assert (cells[4].measured_s, cells[4].error_ratio) == (None, None)
    assert reproduction.count(cells, calibration=True) == Count(1, 2)
    assert reproduction.count(cells, calibration=False) == Count(1, 3)
