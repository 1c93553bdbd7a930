import io

import pytest
from linklab.core.paths import REPOSITORY
from rich.console import Console

from bench.ablations import PARTS, SCENARIOS, tables


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_in_the_source_once(part: str) -> None:
    change = PARTS[part]
    assert (REPOSITORY / "client" / change.file).read_text().count(change.old) == 1


def test_nothing_is_cut_at_80_columns() -> None:
    whole = dict.fromkeys(SCENARIOS, 104.111)
    without = {part: dict.fromkeys(SCENARIOS, 380.2) for part in PARTS}
    text = io.StringIO()
    console = Console(file=text, width=80)
    for shown in tables(whole, without):
        console.print(shown)
    assert text.getvalue().count("+265.2 %") == len(PARTS) * len(SCENARIOS)
    assert all(name in text.getvalue() for name in (*PARTS, *SCENARIOS))
