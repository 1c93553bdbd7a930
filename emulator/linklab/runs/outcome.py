"""What the lab noted of the client's process (`outcome.json` of a run directory)."""

from __future__ import annotations

import msgspec


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """`outcome.json`: how the client's process went, as the lab saw it.

    `elapsed_ns` is from the client's start to its end; `received_bytes` what each
    of its devices took in, headers included; `output_bytes` the size of the file that
    it was to write, None where there is none.
    """

    exit_code: int
    elapsed_ns: int
    received_bytes: dict[str, int]
    output_bytes: int | None
