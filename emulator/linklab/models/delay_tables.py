"""Makes netem's tables of delay distributions, and reads those of users. Pure.

netem adds the jitter times an entry / 8192 to the mean delay, for a random entry (tc-netem(8),
distribution). So the entries are quantiles with mean 0 and, for a standard deviation that equals the
jitter, with deviation 8192.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from linklab.core.bit_exact_math import exp, log, normal_quantile
from linklab.core.impairments import NORMAL

UNIT: Final = 8192
"""An entry of one jitter (NETEM_DIST_SCALE)."""

MOST_ENTRIES: Final = 16384
"""The largest table (NETEM_DIST_MAX)."""

MOST_BYTES: Final = 1 << 18
"""The largest file of a table. iproute2's have 25 kB."""

_LOW, _HIGH = -(2**15), 2**15 - 1
_QUANTILES = 4096

_SHAPE: Final = 3
"""The shape of Pareto's distribution, as in iproute2's table."""


@dataclass(frozen=True, slots=True)
class DelayTable:
    """Holds netem's table. The kernel is told the jitter times `widening`, which makes room for
    entries beyond 4 jitters."""

    entries: tuple[int, ...]
    widening: int = 1

    def quantile(self, share: float) -> float:
        """Returns the deviation from the mean, in jitters, that this share of packets does not
        exceed."""
        ordered = sorted(self.entries)
        index = min(math.floor(share * len(ordered)), len(ordered) - 1)
        return ordered[index] * self.widening / UNIT


_PARETO_MEAN: Final = _SHAPE / (_SHAPE - 1)
_PARETO_DEVIATION: Final = math.sqrt(_SHAPE / ((_SHAPE - 1) * (_SHAPE - 1) * (_SHAPE - 2)))


def _pareto(p: float) -> float:
    return (exp(-log(1 - p) / _SHAPE) - _PARETO_MEAN) / _PARETO_DEVIATION


def _uniform(p: float) -> float:
    return math.sqrt(3) * (2 * p - 1)


_QUANTILE_OF: Final[dict[str, tuple[Callable[[float], float], int]]] = {
    NORMAL: (normal_quantile, 1),
    "pareto": (_pareto, 8),
    "uniform": (_uniform, 1),
}
"""The quantiles of each distribution with mean 0 and deviation 1, and its table's widening."""

NAMES: Final = tuple(_QUANTILE_OF)
"""The distributions that need no file."""


@functools.cache
def of_name(name: str) -> DelayTable:
    quantile, widening = _QUANTILE_OF[name]
    shares = ((number + 0.5) / _QUANTILES for number in range(_QUANTILES))
    return DelayTable(tuple(round(quantile(share) / widening * UNIT) for share in shares), widening)


def parse(text: str, shown: str) -> DelayTable:
    """Reads a table in the form of iproute2's files: whole numbers, and comments after `#`.

    `shown` names the file in errors. Raises ValueError with the line.
    """
    entries = tuple(_entries(text, shown))
    if not entries:
        raise ValueError(f"{shown}: has no numbers; needed: 1 to {MOST_ENTRIES} whole numbers")
    return DelayTable(entries)


def _entries(text: str, shown: str) -> Iterator[int]:
    count = 0
    for number, line in enumerate(text.splitlines(), 1):
        for word in line.partition("#")[0].split():
            count += 1
            if count > MOST_ENTRIES:
                raise ValueError(
                    f"{shown}:{number}: is one number too many; allowed: {MOST_ENTRIES}"
                )
            yield _entry(word, f"{shown}:{number}")


def _entry(word: str, where: str) -> int:
    try:
        value = int(word) if len(word) < 20 else None
    except ValueError:
        value = None
    if value is None or not _LOW <= value <= _HIGH:
        raise ValueError(
            f"{where}: {word[:20]!r} is no entry of a table; "
            f"allowed: whole numbers from {_LOW} to {_HIGH}"
        )
    return value
