from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.regression import baseline
from linklab.regression.baseline import Baseline, BaselineError
from linklab.regression.figures import Cell, Values
from linklab.regression.fingerprint import Fingerprint

FINGERPRINT = Fingerprint({"Go": "go1.26", "H2O": "2.2.5"}, {"ls": "0123456789abcdef"})
ONE: Values = {
    "download_s": 30.612,
    "efficiency": 0.978,
    "link_delta_s": 0.04,
    "wasted_bytes": 1200,
    "stalled_s": 0.0,
}
MADE = Baseline(
    "the first: with 'quotes', a colon: and Δ",
    "2026-11-21",
    FINGERPRINT,
    {
        Cell("ls", "alg3", 10): ONE,
        Cell("ls", "alg3", 9): {**ONE, "link_delta_s": None, "wasted_bytes": None},
        Cell("ao", "alg1", 1): ONE,
    },
)

names = st.from_regex(r"[a-z0-9][a-z0-9-]{0,12}", fullmatch=True)
numbers = st.floats(0, 1e4).map(lambda value: round(value, 4))
optional = st.none() | numbers
figures = st.fixed_dictionaries(
    {
        "download_s": numbers,
        "efficiency": numbers,
        "link_delta_s": optional,
        "wasted_bytes": st.none() | st.integers(0, 10**9).map(float),
        "stalled_s": optional,
    }
)
cells = st.dictionaries(
    st.builds(Cell, names, names, st.integers(0, 2**63 - 1)), figures, min_size=1
)


def test_a_cell_is_a_line_and_lines_are_sorted() -> None:
    lines = baseline.write(MADE).splitlines()
    assert [line for line in lines if line.startswith("- {")] == [
        "- {scenario: ao, algorithm: alg1, seed: 1, download_s: 30.612, efficiency: 0.978, "
        "link_delta_s: 0.04, wasted_bytes: 1200, stalled_s: 0.0}",
        "- {scenario: ls, algorithm: alg3, seed: 9, download_s: 30.612, efficiency: 0.978, "
        "stalled_s: 0.0}",
        "- {scenario: ls, algorithm: alg3, seed: 10, download_s: 30.612, efficiency: 0.978, "
        "link_delta_s: 0.04, wasted_bytes: 1200, stalled_s: 0.0}",
    ]


def test_energy_models_are_there_where_something_depends_on_them() -> None:
    assert "energy_models" not in baseline.write(MADE)
    made = replace(MADE, fingerprint=replace(FINGERPRINT, energy_models={"ls": "fedcba9876543210"}))
    assert baseline.parse(baseline.write(made), "x") == made


def test_a_workload_s_figures_have_a_mapping_of_their_own() -> None:
    cell = Cell("ls+large-page", "mptcp", 1)
    values = {**ONE, "page_load_s": 3.1416, "document_s": 0.5, "object_s": 0.25}
    made = Baseline("page", "2026-11-22", FINGERPRINT, {cell: values})
    text = baseline.write(made)
    assert "workload: {page_load_s: 3.1416, document_s: 0.5, object_s: 0.25}}" in text
    assert baseline.parse(text, "x") == made
    with pytest.raises(BaselineError, match="ls.large-page mptcp seed 1: no workload has page_s"):
        baseline.parse(text.replace("page_load_s", "page_s"), "x")


@given(st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1), cells)
def test_what_is_written_is_read(reason: str, found: dict[Cell, Values]) -> None:
    made = Baseline(reason, "2026-11-21", FINGERPRINT, found)
    assert baseline.parse(baseline.write(made), "x") == made


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("download_s: 30.612, ", "", r"x: is no baseline: .*download_s.*\$\.cells\[0\]"),
        ("download_s: 30.612", "download_s: fast", r"\$\.cells\[0\]\.download_s"),
        ("download_s: 30.612", "download_s: nan", "ao alg1 seed 1: download_s cannot be nan"),
        ("efficiency: 0.978", "efficiency: inf", "efficiency cannot be inf"),
        ("cells:\n", "<<<<<<< ours\ncells:\n", r"x:\d+: not valid YAML"),
        ("seed: 10", "seed: 9", "ls alg3 seed 9 is there twice"),
        ("fingerprint:", "fingerprints:", "fingerprint"),
    ],
)
def test_a_damaged_file_is_refused(old: str, new: str, said: str) -> None:
    text = baseline.write(MADE)
    assert old in text
    with pytest.raises(BaselineError, match=said):
        baseline.parse(text.replace(old, new, 1), "x")
