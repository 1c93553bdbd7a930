import statistics

import pytest

from linklab.models.seeds import BLOCK, quantile_for, seed_for


def test_seeds_depend_on_the_run_and_every_name() -> None:
    seeds = {
        *(seed_for(1, "wifi", "loss"), seed_for(2, "wifi", "loss")),
        *(seed_for(1, "lte", "loss"), seed_for(1, "wifi", "jitter"), seed_for(1, "wifi")),
        *(seed_for(1), seed_for(11, "wifi"), seed_for(1, "wifiloss")),
        *(seed_for(1, "wi", "filoss"), seed_for(1, "wifi", "loss", "")),
    }
    assert len(seeds) == 10
    assert all(0 <= seed < 1 << 64 for seed in seeds)


def test_seeds_never_change_between_versions() -> None:
    assert seed_for(1, "wifi", "down") == 6640768887920966460


@pytest.mark.parametrize("block", [0, 1, 100])
def test_ten_seeds_in_a_row_draw_evenly(block: int) -> None:
    seeds = range(block * BLOCK + 1, (block + 1) * BLOCK + 1)
    drawn = [quantile_for(seed, "wifi", "between runs") for seed in seeds]
    assert sorted(int(one * BLOCK) for one in drawn) == list(range(BLOCK))
    assert drawn != sorted(drawn)
    assert drawn != [quantile_for(seed, "lte", "between runs") for seed in seeds]


def test_what_one_seed_draws_is_uniform_and_independent_of_other_names() -> None:
    """Over the first seeds of many blocks, which by themselves know nothing of each other."""
    seeds = range(1, 10_001, BLOCK)
    wifi, lte = ([quantile_for(seed, name) for seed in seeds] for name in ("wifi", "lte"))
    assert all(0 <= one < 1 for one in wifi)
    error = 1 / (12 * len(wifi)) ** 0.5
    assert statistics.mean(wifi) == pytest.approx(0.5, abs=3 * error)
    assert statistics.stdev(wifi) == pytest.approx(1 / 12**0.5, rel=0.05)
    assert abs(statistics.correlation(wifi, lte)) < 3 / len(wifi) ** 0.5


def test_every_seed_draws() -> None:
    assert 0 <= quantile_for(0, "wifi") < 1
    assert 0 <= quantile_for(2**63 - 1, "wifi") < 1
