"""Defines the allowed names of scenarios, suites and the like. Pure."""

from __future__ import annotations

import re
from typing import Final

from linklab.schema.quantities import pattern

FORM: Final = re.compile("[a-z0-9][a-z0-9-]{0,63}")

_WITH_WORKLOAD: Final = re.compile(rf"{FORM.pattern}(\+{FORM.pattern})?")

NAME: Final = pattern(
    _WITH_WORKLOAD.pattern, "name", "up to 64 of a-z, 0-9 and '-', such as 'static-80-50'"
)
