"""Seeds from names. Pure."""

from __future__ import annotations

import hashlib
import random


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
