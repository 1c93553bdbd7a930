"""Reads and checks the impairments that a user gives a link of a live lab, with the words of scenarios."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from msgspec import UNSET

from linklab.core.impairments import Impairments
from linklab.core.ip_family import Families
from linklab.core.link_state import Direction
from linklab.models import impairments
from linklab.schema.document import ScenarioError, compose
from linklab.schema.mapping import Mapping
from linklab.schema.rows import keys


def parse(direction: Direction, text: str) -> Impairments:
    """Reads the impairments of a direction, such as "loss: 1 %, delay: 20 ms". Raises ValueError."""
    inner = text.strip().removeprefix("{").removesuffix("}")
    try:
        mapping = Mapping(
            "",
            compose(f"{{{inner}}}", "", "impairments"),
            impairments.KEYS[direction],
            impairments.TABLE.keys,
        )
        if not mapping.values:
            mapping.fail(
                None, f"changes nothing; allowed: any of {', '.join(impairments.TABLE.keys.all)}"
            )
        return impairments.TABLE.of(mapping)
    except ScenarioError as error:
        raise _without_place(error) from None


def require_fit(
    changes: Iterable[impairments.Impairing], names: Collection[str], families: Families
) -> None:
    """Raises ValueError if the last change has a value that is not allowed, or does not fit those before.

    `names` are the scenario's distributions, `families` those of the link's addresses.
    """
    stacked = list(changes)
    written = {
        key: impairments.TABLE.write(found)
        for direction, key in impairments.KEYS.items()
        if (found := impairments.of(stacked[-1], direction)) is not UNSET
    }
    try:
        where = Mapping("", compose(json.dumps(written), "", ""), "", keys(impairments.ROWS))
        for key in written:
            impairments.TABLE.read(where, key)
        impairments.check(where, stacked, names, families)
    except ScenarioError as error:
        raise _without_place(error) from None


def _without_place(error: ScenarioError) -> ValueError:
    """Returns the error of a text that is no file."""
    return ValueError(str(error).removeprefix(":1: "))
