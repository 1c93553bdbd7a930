"""Chooses where runs happen, and makes the guest if it is not in the cache."""

from __future__ import annotations

import os
from collections.abc import Sequence

from linklab.api.progress import PLACE, Progress, Tell
from linklab.places import choice
from linklab.places.choice import Environment
from linklab.places.guest import __main__ as guest
from linklab.places.guest import kernel
from linklab.runs import clients, runner


def ready(place: str, clock: str, tell: Tell, processor: str | None = None) -> Environment:
    """Chooses environment, clock and processor. Makes the guest's image and kernel if needed.

    Raises PlaceError, RunError, ImageError, KernelError.
    """
    chosen = choice.choose(place, clock, processor)
    prepare(chosen, tell)
    return chosen


def prepare(where: Environment, tell: Tell) -> None:
    """Tells an environment. Makes image and kernel if it is the guest. Raises RunError,
    ImageError and KernelError."""
    tell(Progress(PLACE, str(where), 1, 1))
    if where.name == "guest":
        require_client()
        make(where, lambda part, what, fraction: tell(Progress(part, what, fraction, 1)))


def is_made(where: Environment) -> bool:
    """Tells whether an environment's guest is in the cache."""
    return guest.is_made(_kernels(where))


def make(where: Environment, report: guest.Report) -> None:
    """Makes an environment's guest if it is not in the cache. Raises ImageError and KernelError."""
    guest.ensure_guest(report, _kernels(where))


def require_client() -> None:
    """Raises RunError if there is no multilink, which every guest gets."""
    missing = clients.client_obstacle()
    if missing is not None:
        raise runner.RunError(missing)


def _kernels(where: Environment) -> guest.Kernels:
    return kernel.RECIPES if where.is_emulated else (kernel.GUEST,)


def require(
    names: Sequence[str], place: str = "guest", clock: str = "auto", processor: str | None = None
) -> None:
    """Raises RunError if these clients cannot run in the environment."""
    missing = clients.obstacle(names, choice.choose(place, clock, processor).name)
    if missing is not None:
        raise runner.RunError(missing)


def most_side_by_side(where: Environment) -> int:
    """Returns how many runs go in parallel: one per core in virtual time. On the real clock runs
    would disturb each other."""
    return len(os.sched_getaffinity(0)) if where.clock == "virtual" else 1
