import statistics

import pytest

from linklab.models import delay_tables
from linklab.models.delay_tables import NAMES, UNIT, DelayTable


@pytest.mark.parametrize("name", NAMES)
def test_a_distribution_has_mean_0_and_deviation_1(name: str) -> None:
    table = delay_tables.of_name(name)
    values = [entry * table.widening / UNIT for entry in table.entries]
    assert statistics.fmean(values) == pytest.approx(0, abs=2e-3)
    # The table ends at the quantile of 1 - 1/8192. Pareto's tail beyond it has 6 % of the deviation.
    assert statistics.pstdev(values) == pytest.approx(1, abs=0.06 if name == "pareto" else 1e-3)
    assert all(-(2**15) <= entry < 2**15 for entry in table.entries)


@pytest.mark.parametrize(
    ("name", "quantiles"),
    [
        ("normal", {0.5: 0.0, 0.84134: 1.0, 0.97725: 2.0}),
        ("pareto", {0.2: -0.4882, 0.5: -0.2772, 0.9: 0.7556, 0.99: 3.6276}),
        ("uniform", {0.25: -(3**0.5) / 2, 0.5: 0.0, 0.999: 3**0.5 * 0.998}),
    ],
)
def test_quantiles_are_those_of_the_distribution(name: str, quantiles: dict[float, float]) -> None:
    table = delay_tables.of_name(name)
    for share, value in quantiles.items():
        assert table.quantile(share) == pytest.approx(value, rel=0.006, abs=0.002)


def test_a_file_has_numbers_and_comments() -> None:
    text = "# netem's form\n -8192 0\n\n8192 # the last\n"
    assert delay_tables.parse(text, "x.dist") == DelayTable((-8192, 0, 8192))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.dist: has no numbers; needed: 1 to 16384 whole numbers"),
        ("# nothing\n", "x.dist: has no numbers"),
        ("1 2\n3 4.5\n", "x.dist:2: '4.5' is no entry of a table; allowed: whole numbers from -32"),
        ("1\n\n32768\n", "x.dist:3: '32768' is no entry"),
        ("t,down_mbit\n0,80\n", "x.dist:1: 't,down_mbit' is no entry"),
        ("9" * 5000, "x.dist:1: '99999999999999999999' is no entry"),
        ("0\n" * 16385, "x.dist:16385: is one number too many; allowed: 16384"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        delay_tables.parse(text, "x.dist")
    assert str(caught.value).startswith(said)
