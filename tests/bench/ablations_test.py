import pytest
from linklab.core.paths import REPOSITORY

from bench.ablations import PARTS


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_in_the_source_once(part: str) -> None:
    change = PARTS[part]
    assert (REPOSITORY / "client" / change.file).read_text().count(change.old) == 1
