"""Defines the types of values in a run directory's files, with their limits. Pure.

The files are untrusted: a program in the lab may have written them. The limits are far above what
linklab and multilink write. They bound the time and memory of computations with a value.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeVar

from msgspec import Meta

from linklab.core.limits import MAX_RUN_S, MAX_SHIFT_S

_MOST_COUNTED: Final = 2**53
"""Floats hold every integer up to here. Many JSON readers use floats."""

_MOST: Final = 1e15

Seconds = Annotated[float, Meta(ge=0, le=MAX_RUN_S)]
SomeSeconds = Annotated[float, Meta(gt=0, le=MAX_RUN_S)]
"""A duration above 0."""

Shift = Annotated[float, Meta(ge=0, le=MAX_SHIFT_S)]
"""Seconds from the scenario's start to the client's start."""

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
"""A name or a version, such as of a link, a device or a kind of event."""

LinkName = Annotated[str, Meta(min_length=1, max_length=1_000)]

Words = Annotated[str, Meta(max_length=200_000)]
"""A message, a path, or an argument of a command. Linux allows 128 KiB for an argument."""

Few = Meta(max_length=1_000)
"""The limit for mappings and lists of links, versions, figures and the like."""

_V = TypeVar("_V")
ByName = Annotated[dict[Name, _V], Few]
