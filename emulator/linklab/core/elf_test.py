import sys
from pathlib import Path

import pytest

from linklab.core import elf


def header(machine: int, *, big: bool = False) -> bytes:
    """The first bytes of an ELF file."""
    number = machine.to_bytes(2, "big" if big else "little")
    return b"\x7fELF\x02" + (b"\x02" if big else b"\x01") + bytes(12) + number + bytes(44)


@pytest.mark.parametrize(
    ("content", "processor"),
    [
        (header(62), "x86-64"),
        (header(183), "arm64"),
        (header(22, big=True), "processor 22"),
        (b"#!/bin/sh\n" + bytes(64), None),
        (b"\x7fELF", None),
        (b"", None),
    ],
)
def test_the_processor_of_a_program(content: bytes, processor: str | None, tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(content)
    assert elf.processor(path) == processor


def test_this_python_and_what_is_not_there(tmp_path: Path) -> None:
    assert elf.processor(Path(sys.executable)) in ("x86-64", "arm64")
    assert elf.processor(tmp_path / "none") is None
