import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


delays = st.lists(
    st.tuples(st.floats(0.001, 1.0), st.integers(1, 10**10)), min_size=2, max_size=40
).filter(lambda found: max(found)[0] - min(found)[0] > 1e-3)


@given(delays)
def test_a_table_of_measured_delays_has_their_quantiles(found: list[tuple[float, int]]) -> None:
    made = delay_tables.measured(found, 0.25)
    assert made.cut_ratio == 0.0
    assert made.least_s == min(found)[0]
    total = sum(weight for _, weight in found)
    mean_s = sum(value * weight for value, weight in found) / total
    assert made.least_s + made.delay_s == pytest.approx(mean_s)
    for share in (0.01, 0.3, 0.5, 0.9, 0.99):
        said_s = mean_s + made.table.quantile(share) * made.jitter_s
        below = sum(weight for value, weight in found if value < said_s - made.jitter_s / 4096)
        above = sum(weight for value, weight in found if value > said_s + made.jitter_s / 4096)
        assert below / total <= share + 1e-3
        assert above / total <= 1 - share + 1e-3


def test_equal_times_have_equal_shares_of_a_table() -> None:
    table = delay_tables.measured([(0.02, 7), (0.04, 7)], 0.25).table
    assert table.entries == (-8192,) * 2048 + (8192,) * 2048
    assert [table.quantile(share) for share in (0.0, 0.49, 0.5, 1.0)] == [-1.0, -1.0, 1.0, 1.0]
    assert DelayTable((8192, -8192, 0)).quantile(1.0) == 1.0
    # The first of 4096 quantiles is that of 1/8192, which this share of the time does not exceed.
    first, *others = delay_tables.measured([(0.02, 1), (0.04, 8191)], 0.25).table.entries
    assert (first, {*others}) == (others[0], {first})


def test_the_jitter_is_the_standard_deviation() -> None:
    made = delay_tables.measured([(0.02, 1), (0.03, 2), (0.06, 1)], 0.25)
    assert made.jitter_s == pytest.approx(statistics.pstdev([0.02, 0.03, 0.03, 0.06]))


def test_a_table_has_as_many_and_as_large_entries_as_netem_takes() -> None:
    entries = (-(2**15), 2**15 - 1) * 8192
    text = delay_tables.written(DelayTable(entries), [])
    assert delay_tables.parse(text, "x.dist") == DelayTable(entries)
    assert {len(line.split()) for line in text.splitlines()} == {8}


def test_a_table_that_is_written_reads_back_as_the_same() -> None:
    table = delay_tables.measured([(0.02, 10), (0.03, 5), (0.5, 1)], 0.25).table
    text = delay_tables.written(table, ["licence: CC0\nas told", "of me"])
    assert text.startswith("# licence: CC0\n# as told\n# of me\n")
    assert delay_tables.parse(text, "x.dist") == table


def test_the_tail_beyond_the_largest_jitter_is_cut() -> None:
    made = delay_tables.measured([(0.02, 90), (5.0, 10)], 0.25)
    assert made.cut_ratio == 0.1
    assert made.jitter_s == 0.25
    assert max(made.table.entries) == 2**15 - 1


@pytest.mark.parametrize("found", [[], [(0.1, 3)], [(0.1, 3), (0.1, 4)]])
def test_delays_that_do_not_differ_make_no_table(found: list[tuple[float, int]]) -> None:
    with pytest.raises(ValueError, match="has no delays that differ; needed: at least two"):
        delay_tables.measured(found, 0.25)
