import math
import statistics
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.link_state import LinkState
from linklab.models.layer import NO_LOAD
from linklab.models.on_off import OnOff, OnOffSettings

BASE = LinkState(True, 12_000_000, 5_000_000, 0.01, 0.0, 0.0)
EMPTCP = OnOffSettings(1_000_000)
SETTINGS = st.builds(
    OnOffSettings, st.integers(1_000, 20_000_000), st.floats(0.1, 100), st.floats(0.1, 100)
)


def history(settings: OnOffSettings, seed: int, until_s: float) -> list[tuple[float, LinkState]]:
    """Every time at which the link changes, with what it is from then on."""
    layer = OnOff(settings, Random(seed))
    found = [(0.0, layer.apply(0.0, NO_LOAD, BASE))]
    while (t_s := layer.next_s()) <= until_s:
        found.append((t_s, layer.apply(t_s, NO_LOAD, BASE)))
    return found


@given(SETTINGS, st.integers())
def test_on_it_is_as_below_and_off_it_is_limited(settings: OnOffSettings, seed: int) -> None:
    changes = history(settings, seed, 50)
    limit = settings.off_rate_bps
    off = (min(BASE.down_rate_bps, limit), min(BASE.up_rate_bps, limit))
    for (before_s, before), (t_s, now) in pairwise(changes):
        assert t_s > before_s
        if limit < BASE.up_rate_bps:
            assert (before == BASE) != (now == BASE)
    for _, state in changes:
        assert state == BASE or (state.down_rate_bps, state.up_rate_bps) == off
    assert history(settings, seed, 50) == changes


@given(SETTINGS, st.integers(), st.lists(st.floats(0, 50), max_size=30))
def test_asking_more_often_changes_nothing(
    settings: OnOffSettings, seed: int, asked: list[float]
) -> None:
    changes = history(settings, seed, 50)
    layer = OnOff(settings, Random(seed))
    for t_s in sorted(asked):
        expected = [state for changed_s, state in changes if changed_s <= t_s][-1]
        assert layer.apply(t_s, NO_LOAD, BASE) == layer.apply(t_s, NO_LOAD, BASE) == expected
        assert layer.next_s() > t_s


def test_by_default_the_times_are_those_of_emptcp() -> None:
    assert (EMPTCP.on_s, EMPTCP.off_s) == (40.0, 40.0)


@pytest.mark.parametrize("settings", [EMPTCP, OnOffSettings(1_000_000, 10.0, 30.0)])
def test_times_are_exponential_with_the_stated_means(settings: OnOffSettings) -> None:
    """Mean and standard deviation are the same for an exponential time. 4 sigma."""
    spans = [
        (end - begin, state == BASE)
        for (begin, state), (end, _) in pairwise(history(settings, 3, 100_000))
    ]
    for mean_s, on in ((settings.on_s, True), (settings.off_s, False)):
        lasted = [length for length, was in spans if was == on]
        error_s = 4 * mean_s / math.sqrt(len(lasted))
        assert statistics.mean(lasted) == pytest.approx(mean_s, abs=error_s)
        assert statistics.stdev(lasted) == pytest.approx(mean_s, abs=3 * error_s)


def test_at_the_start_as_often_on_as_ever() -> None:
    settings = OnOffSettings(1_000_000, 10.0, 30.0)
    on = sum(history(settings, seed, 0)[0][1] == BASE for seed in range(3000))
    assert on / 3000 == pytest.approx(1 / 4, abs=4 * math.sqrt(3 / 16 / 3000))
