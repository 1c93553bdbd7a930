import math

import pytest

from linklab.traces import library, plain
from linklab.traces.recipes import SHIPPED, Shipped, figures
from linklab.traces.trace import TraceSample


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda shipped: shipped.name)
def test_a_shipped_trace_lies_where_it_has_to(shipped: Shipped) -> None:
    """Read from the file: what is measured is what ships."""
    found = figures(plain.load(library.find(shipped.name)))
    for target in shipped.targets:
        assert target.holds(found[target.figure]), (target, found[target.figure])


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda shipped: shipped.name)
def test_a_shipped_trace_describes_itself(shipped: Shipped) -> None:
    file = library.find(shipped.name)
    with file.open("rb") as opened:
        comments = plain.read(opened, file.name).comments
    assert any(line.startswith("licence: Apache-2.0") for line in comments)
    assert any(line.startswith(f"recipe: seed {shipped.recipe.seed}") for line in comments)
    for target in shipped.targets:
        assert any(line.startswith(f"{target.figure}: ") for line in comments)
    assert file.stat().st_size < 250_000


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda shipped: shipped.name)
def test_a_shipped_trace_is_10_min_of_100_ms(shipped: Shipped) -> None:
    trace = plain.load(library.find(shipped.name))
    assert len(trace) == 6000
    assert {sample.length_ns for sample in trace} == {100_000_000}
    assert all(sample.up_bps is not None for sample in trace)


def test_driving_is_published_in_every_figure_but_the_mean() -> None:
    driving = SHIPPED[0]
    published = {t.figure for t in driving.targets if t.source != "assumption"}
    assert published == {"cv", "autocorrelation_1s", "autocorrelation_10s", "gaps_per_100s"}


def test_figures_that_a_trace_is_too_short_for_hold_nowhere() -> None:
    found = figures([TraceSample(10**9, 1)])
    assert math.isnan(found["cv_30s"])
    assert not any(t.holds(found[t.figure]) for t in SHIPPED[1].targets if t.figure == "cv_30s")
