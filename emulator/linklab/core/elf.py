"""Reads for which processor a program is made."""

from __future__ import annotations

from pathlib import Path
from typing import Final

X86_64: Final = "x86-64"

_PROCESSORS: Final = {3: "x86", 40: "arm", 62: X86_64, 183: "arm64", 243: "RISC-V"}
"""Processors by their numbers in ELF files (elf.h: EM_*)."""

_HEAD_BYTES: Final = 20
"""The length of e_ident (16), e_type and e_machine (2 each)."""


def processor(program: Path) -> str | None:
    """Returns the processor of an ELF file, or None for other files."""
    try:
        with program.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return None
    if len(head) < _HEAD_BYTES or not head.startswith(b"\x7fELF"):
        return None
    number = int.from_bytes(head[18:20], "big" if head[5] == 2 else "little")
    return _PROCESSORS.get(number, f"processor {number}")
