import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.regression.cost import gate
from linklab.regression.loopback import Cost
from linklab.regression.suite import Program

PROGRAM = Program("own", ("own",), cpu=2.0, memory=3.0)


def cost(cpu_s: float, peak_bytes: int = 10 << 20) -> Cost:
    return Cost(cpu_s, 1.0, peak_bytes)


def test_the_median_of_the_rounds_counts() -> None:
    """A round in which something else disturbed only one of both says nothing."""
    made = gate(
        PROGRAM, [cost(0.15), cost(9.0), cost(0.30)], [cost(0.1), cost(0.1), cost(0.2)], 100_000_000
    )
    assert made.cpu_ratio == pytest.approx(1.5)
    assert made.memory_ratio == 1.0
    assert made.cpu_s_per_mb == pytest.approx(0.003)
    assert not made.broken


def test_what_is_beyond_its_limit_is_named() -> None:
    made = gate(PROGRAM, [cost(0.5, 40 << 20)], [cost(0.1)], 1_000_000)
    assert made.broken == [
        "own: processor time 5.00 times curl's, at most 2 times is allowed",
        "own: memory 4.00 times curl's, at most 3 times is allowed",
    ]


@given(
    st.lists(st.tuples(st.floats(0.01, 10), st.floats(0.01, 10)), min_size=1, max_size=9),
    st.floats(0.1, 10),
)
def test_a_machine_that_is_slower_for_both_changes_nothing(
    rounds: list[tuple[float, float]], slower: float
) -> None:
    def ratio(factor: float) -> float:
        own = [cost(a * factor) for a, _ in rounds]
        return gate(PROGRAM, own, [cost(b * factor) for _, b in rounds], 1).cpu_ratio

    assert ratio(slower) == pytest.approx(ratio(1.0))
