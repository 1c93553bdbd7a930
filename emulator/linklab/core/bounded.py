"""The types of what the files of a run directory hold, with their limits. Pure.

A program in the lab, or a stranger, may have written such a file. The limits are far beyond what
linklab and multilink write, and keep what is computed from a value finite in time and memory.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeVar

from msgspec import Meta

from linklab.core.limits import MAX_RUN_S, MAX_SHIFT_S

_MOST_COUNTED: Final = 2**53
"""Up to here a float holds every integer, as programs have it that read JSON."""

_MOST: Final = 1e15

Seconds = Annotated[float, Meta(ge=0, le=MAX_RUN_S)]
SomeSeconds = Annotated[float, Meta(gt=0, le=MAX_RUN_S)]
"""How long something took that took any time."""

Shift = Annotated[float, Meta(ge=0, le=MAX_SHIFT_S)]
"""Seconds by which a client starts after its scenario."""

Lateness = Annotated[float, Meta(ge=-MAX_RUN_S, le=MAX_RUN_S)]
Nanoseconds = Annotated[int, Meta(ge=0, le=int(MAX_RUN_S * 1e9))]
UnixNanoseconds = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=_MOST_COUNTED)]
Bytes = Count
Rate = Annotated[float, Meta(ge=0, le=_MOST)]
"""Bits a second, as measured."""

Bps = Annotated[int, Meta(ge=0, le=int(_MOST))]
"""Bits a second, as shaped."""

Packets = Annotated[float, Meta(ge=0, le=_MOST)]
Dbm = Annotated[float, Meta(ge=-1_000, le=1_000)]
Ratio = Annotated[float, Meta(ge=0, le=1)]
Figure = Annotated[float, Meta(ge=-_MOST, le=_MOST)]
"""A number of any meaning."""

LargeFigure = Annotated[float, Meta(ge=-_MOST * MAX_RUN_S, le=_MOST * MAX_RUN_S)]
"""An integral over time."""

Port = Annotated[int, Meta(ge=0, le=65535)]
ExitCode = Annotated[int, Meta(ge=-(2**31), le=2**32 - 1)]
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]

Name = Annotated[str, Meta(max_length=1_000)]
"""What something is called: a link, a device, a kind of event, a version."""

LinkName = Annotated[str, Meta(min_length=1, max_length=1_000)]

Words = Annotated[str, Meta(max_length=200_000)]
"""What somebody says, a path, an argument of a command: Linux allows one 128 KiB."""

Few = Meta(max_length=1_000)
"""Of a mapping or list that names links, versions, figures and the like."""

_V = TypeVar("_V")
ByName = Annotated[dict[Name, _V], Few]
