import math

import pytest

from linklab.traces import library, plain
from linklab.traces.recipes import SHIPPED, Shipped, figures
from linklab.traces.trace import TraceSample


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda shipped: shipped.name)
def test_a_shipped_trace_is_as_its_recipe_wants_and_says_so(shipped: Shipped) -> None:
    """Read from the file: what is measured is what ships."""
    file = library.find(shipped.name)
    trace, comments = plain.load(file), plain.header(file)
    found = figures(trace)
    for target in shipped.targets:
        assert target.holds(found[target.figure]), (target, found[target.figure])
        assert any(line.startswith(f"{target.figure}: ") for line in comments)
    assert any(line.startswith("licence: Apache-2.0") for line in comments)
    assert any(line.startswith(f"recipe: seed {shipped.recipe.seed}") for line in comments)
    assert len(trace) == 6000
    assert {sample.length_ns for sample in trace} == {100_000_000}
    assert all(sample.up_bps is not None for sample in trace)
    assert file.stat().st_size < 250_000


def test_figures_that_a_trace_is_too_short_for_hold_nowhere() -> None:
    found = figures([TraceSample(10**9, 1)])
    assert math.isnan(found["cv_30s"])
    assert not any(t.holds(found[t.figure]) for t in SHIPPED[1].targets if t.figure == "cv_30s")
