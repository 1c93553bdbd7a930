"""Draws the sizes of a page's objects from its seed. Pure."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise
from random import Random

from linklab.core import bit_exact_math
from linklab.models import draws
from linklab.scenario.workload import Page


def sizes_bytes(page: Page, whole_bytes: int) -> list[int]:
    """Returns the objects' sizes, which sum to `whole_bytes`: log-normal with the page's variation,
    then scaled. If there are fewer bytes than objects, the first objects have one byte each."""
    count = min(page.objects, whole_bytes)
    sigma = math.sqrt(bit_exact_math.log(1 + page.variation**2))
    random = Random(page.seed)
    drawn = [draws.lognormal(random, 1.0, sigma) for _ in range(count)]
    # Each object has one byte, plus its share of the rest.
    ends = [0.0, *accumulate(drawn)]
    spare = whole_bytes - count
    return [
        1 + round(spare * end / ends[-1]) - round(spare * begin / ends[-1])
        for begin, end in pairwise(ends)
    ]
