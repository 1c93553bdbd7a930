import statistics
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.link_state import LinkState
from linklab.models import layer_test
from linklab.models.endc import Endc, EndcSettings
from linklab.models.layer import NO_LOAD

BASE = LinkState(True, 545_000_000, 79_000_000, 0.0035, 0.0, 0.0)
WALK = EndcSettings(147_000_000, 31_000_000, 0.022)


def history(settings: EndcSettings, seed: int, until_s: float) -> list[tuple[float, LinkState]]:
    return layer_test.history(Endc(settings, Random(seed)), BASE, until_s)


def test_a_walk_falls_to_lte_as_often_and_as_long_as_the_one_that_was_measured() -> None:
    """WWW 2020: 11 falls in 603 s, medians of 15 s on NR and 4 s on LTE."""
    changes = history(WALK, 1, 603 * 200)
    spells: dict[object, list[float]] = {"nr": [], "lte": []}
    for (begun_s, state), (ended_s, _) in pairwise(changes):
        spells[state.technology].append(ended_s - begun_s)
    assert statistics.median(spells["nr"]) == pytest.approx(15, rel=0.1)
    assert statistics.median(spells["lte"]) == pytest.approx(4, rel=0.1)
    assert len(spells["lte"]) / 200 == pytest.approx(11, rel=0.1)


@given(
    st.builds(
        EndcSettings,
        st.integers(1000, 10**9),
        st.integers(1000, 10**9),
        st.floats(0, 1),
        st.floats(0.001, 50),
        st.floats(0.001, 50),
        st.floats(0, 3),
    ),
    st.integers(),
)
def test_it_is_either_technology_in_turn(settings: EndcSettings, seed: int) -> None:
    for number, (_, state) in enumerate(history(settings, seed, 2)):
        assert state.technology == ("lte" if number % 2 else "nr")
        lte = (settings.down_rate_bps, settings.up_rate_bps, settings.rtt_s / 2)
        nr = (BASE.down_rate_bps, BASE.up_rate_bps, BASE.delay_s)
        expected = lte if number % 2 else nr
        assert (state.down_rate_bps, state.up_rate_bps, state.delay_s) == expected


@pytest.mark.parametrize(("jitter_s", "on_lte_s"), [(0.005, 0.005), (0.011, 0.011), (0.02, 0.011)])
def test_the_jitter_fits_the_delay_of_lte(jitter_s: float, on_lte_s: float) -> None:
    layer = Endc(WALK, Random(1))
    base = replace(BASE, delay_s=0.03, jitter_s=jitter_s)
    assert layer.apply(0.0, NO_LOAD, base) == replace(base, technology="nr")
    assert layer.apply(layer.next_s(), NO_LOAD, base).jitter_s == on_lte_s
