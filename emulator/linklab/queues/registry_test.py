import pytest

from linklab.queues import registry
from linklab.queues.discipline import AnyDiscipline


@pytest.mark.parametrize("one", registry.DISCIPLINES, ids=lambda one: one.name)
def test_every_discipline_works_without_a_key(one: AnyDiscipline) -> None:
    settings = one.table.settings()
    assert registry.of_settings(settings) is one
    assert one.options(settings, 1_000_000) != one.options(settings, 2_000_000)
    assert not any(row.needed for row in one.table.flat)
