"""Holds what a caller may say of runs, as options of a command or arguments of a function. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from linklab.api.errors import UsageError
from linklab.core.limits import (
    MAX_RUNS,
    MAX_SEED,
    MAX_SHIFT_S,
    MAX_SIDE_BY_SIDE,
    MAX_TIME_S,
    MAX_TIMEOUT_S,
    MIN_RESTART_S,
)
from linklab.places.names import CLOCKS, PLACES, PROCESSORS

RUNS: Final = Path("runs")
"""The default directory of run directories."""

CLIENT: Final = "adaptive"
"""The default algorithm of a run, as of `multilink` (client/internal/cli/engine.go)."""

StrPath = str | Path


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What is run, by arguments of `linklab.run`. Raises UsageError for a number that is not allowed."""

    seed: int = 1
    shift: float = 0.0
    energy_model: str | None = None
    server: str | Sequence[str] | None = None
    server_restarts: float | None = None
    port: int | None = None
    share: Sequence[StrPath] = ()
    pcap: str | None = None
    tls_keys: bool = False

    def __post_init__(self) -> None:
        _whole("seed", self.seed, 0, MAX_SEED)
        _seconds("shift", self.shift, MAX_SHIFT_S)
        if self.server_restarts is not None:
            _seconds("server_restarts", self.server_restarts, MAX_TIME_S, MIN_RESTART_S)
        if self.port is not None:
            _whole("port", self.port, 1, 65535)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where and for how long runs go on, by arguments of `linklab.compare`. Raises UsageError for a
    value that is not allowed."""

    place: str = "auto"
    clock: str = "auto"
    processor: str | None = None
    out: StrPath = RUNS
    timeout: float | None = None
    parallel: int | None = None

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("place", self.place, PLACES),
            ("clock", self.clock, CLOCKS),
            ("processor", self.processor or "auto", PROCESSORS),
        ):
            if value not in allowed:
                raise UsageError(f"{name} cannot be {value!r}; allowed: {', '.join(allowed)}")
        if self.timeout is not None:
            _seconds("timeout", self.timeout, MAX_TIMEOUT_S)
        if self.parallel is not None:
            _whole("parallel", self.parallel, 1, MAX_SIDE_BY_SIDE)


def require_runs(runs: int) -> None:
    """Raises UsageError if so many runs of each client are not allowed."""
    _whole("runs", runs, 1, MAX_RUNS)


def _whole(name: str, value: int, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        shown = "2^63-1" if most == MAX_SEED else most
        raise UsageError(f"{name} cannot be {value!r}; allowed: {least} to {shown}")


def _seconds(name: str, value: float, most: float, least: float = 0.0) -> None:
    if not isinstance(value, int | float) or not least <= value <= most:
        raise UsageError(f"{name} cannot be {value!r}; allowed: {least:g} to {most:.0f} seconds")
