"""Checks the impairments that a user gives a link of a live lab, with the words of scenarios."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from msgspec import UNSET

from linklab.core.ip_family import Families
from linklab.models import impairments
from linklab.schema.document import ScenarioError, compose
from linklab.schema.mapping import Mapping
from linklab.schema.rows import keys


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
        raise without_place(error) from None


def without_place(error: ScenarioError) -> ValueError:
    """Returns the error of a text that is no file."""
    return ValueError(str(error).removeprefix(":1: "))
