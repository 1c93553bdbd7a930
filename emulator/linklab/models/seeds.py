"""Derives seeds from names. Pure."""

from __future__ import annotations

import hashlib
import random
from typing import Final

BLOCK: Final = 10
"""This many consecutive seeds draw evenly. Thesis 3.3 has as many runs of each kind."""


def seed_for(run_seed: int, *names: str) -> int:
    """Returns a 64-bit seed for the part of a run that `names` describe, such as ("wifi", "loss").

    It depends on the names and not on an order. So a further link or layer does not change the
    random numbers of others (like the Shadow simulator's host seeds).
    """
    digest = hashlib.sha256(f"linklab seed {run_seed}".encode())
    for name in names:
        encoded = name.encode()
        digest.update(b"\0%d\0" % len(encoded) + encoded)
    return int.from_bytes(digest.digest()[:8], "big")


def random_for(run_seed: int, *names: str) -> random.Random:
    return random.Random(seed_for(run_seed, *names))


def quantile_for(run_seed: int, *names: str) -> float:
    """Returns a number from 0 to below 1; the seeds 1 to 10 have one in every tenth.

    So do 11 to 20 and every further `BLOCK`, in random order: Latin hypercube sampling (McKay). Ten
    runs then represent many. Each number by itself is uniformly random, and independent of the
    numbers for other names.
    """
    block, place = divmod(run_seed - 1, BLOCK)
    order = random_for(block, *names, "order")
    tenths = sorted(range(BLOCK), key=lambda _: order.random())
    return (tenths[place] + random_for(run_seed, *names).random()) / BLOCK
