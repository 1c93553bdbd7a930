from statistics import mean

import pytest
from linklab import scenario
from linklab.links import stack
from linklab.traces.statistics import Counting, Statistics

from bench.drive_scenarios import KINDS, drive

STEP_NS = 50_000_000


def statistics(kind: str, seed: int) -> Statistics:
    """Returns those of ten minutes of a link."""
    link = stack.models(scenario.parse(drive(f"drive-{kind}-{kind}")), seed)["a"]
    counting = Counting()
    for number in range(12_000):
        counting.add(STEP_NS, link.at(number * STEP_NS / 1e9).sent_bps("down"))
    return counting.result()


@pytest.mark.parametrize("kind", KINDS)
def test_drives_have_the_statistics_of_recorded_ones(kind: str) -> None:
    drawn = [statistics(kind, seed) for seed in range(1, 11)]
    assert 0.54 < mean(one.cv or 0 for one in drawn) < 0.79
    assert 0.8 < mean(one.autocorrelation_1s or 0 for one in drawn) < 0.92
    assert 20 < mean(one.gaps for one in drawn) < 40
    assert 1 < max(one.longest_gap_s for one in drawn) <= 1.4
