"""Seeds from names. Pure."""

from __future__ import annotations

import hashlib
import random
from typing import Final

BLOCK: Final = 10
"""So many seeds in a row draw evenly: as many as there are runs of each kind in thesis 3.3."""


def seed_for(run_seed: int, *names: str) -> int:
    """A 64-bit seed for the part of a run that `names` describe, such as ("wifi", "loss").

    Derived from the names and not from an order, so that a further link or layer leaves
    everybody else's randomness as it was (the way of the Shadow simulator's host seeds).
    """
    digest = hashlib.sha256(f"linklab seed {run_seed}".encode())
    for name in names:
        encoded = name.encode()
        digest.update(b"\0%d\0" % len(encoded) + encoded)
    return int.from_bytes(digest.digest()[:8], "big")


def random_for(run_seed: int, *names: str) -> random.Random:
    """A generator with the seed of `seed_for`."""
    return random.Random(seed_for(run_seed, *names))


def quantile_for(run_seed: int, *names: str) -> float:
    """A number from 0 to below 1, of which the seeds 1 to 10 have one in every tenth.

    So have 11 to 20 and every further `BLOCK`, in an order of chance: Latin hypercube sampling
    (McKay). Ten runs then stand for what many would show; each by itself is as random as any, and
    numbers for other names are independent of it.
    """
    block, place = divmod(run_seed - 1, BLOCK)
    order = random_for(block, *names, "order")
    tenths = sorted(range(BLOCK), key=lambda _: order.random())
    return (tenths[place] + random_for(run_seed, *names).random()) / BLOCK
