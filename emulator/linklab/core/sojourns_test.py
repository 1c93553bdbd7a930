import pytest

from linklab.core import sojourns


def kernel_bucket(waited: int) -> int:
    """As kernel.patch (sojourn_end) does."""
    power = max(waited | 15, 0).bit_length() - 4
    return min((waited >> (power - 1)) + 16 * (power - 1) if power > 0 else waited, 383)


@pytest.mark.parametrize("waited", [0, 1, 15, 16, 31, 32, 33, 1000, 4882, 5000, 97_656, 2**26])
def test_a_time_is_between_the_edges_of_its_bucket(waited: int) -> None:
    bucket = kernel_bucket(waited)
    low_s, high_s = sojourns.edge_s(bucket), sojourns.edge_s(bucket + 1)
    assert low_s <= waited * 1024e-9 < high_s
    assert high_s - low_s <= max(1024e-9, low_s / 16 * 1.000001)


def test_quantiles_are_within_their_bucket() -> None:
    counts = [0] * 384
    bucket = kernel_bucket(round(0.005 / 1024e-9))
    counts[bucket], counts[bucket + 1] = 90, 10
    assert sojourns.quantile_s(counts, 0.5) == pytest.approx(0.005, rel=1 / 16)
    assert sojourns.quantile_s(counts, 0.9) == pytest.approx(sojourns.edge_s(bucket + 1))
    assert sojourns.quantile_s(counts, 1.0) == pytest.approx(sojourns.edge_s(bucket + 2))
    assert sojourns.quantile_s([], 0.5) is None
    assert sojourns.quantile_s([0, 0], 0.5) is None
