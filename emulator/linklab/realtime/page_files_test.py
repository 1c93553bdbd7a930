"""Tests of page_files.py: what ships is what was pinned, and asks nobody else."""

import hashlib
import json
import re

import pytest

from linklab.realtime.page_files import DIRECTORY, files

VENDOR = DIRECTORY / "vendor"


def test_files_of_others_are_those_that_are_pinned() -> None:
    pinned = json.loads((DIRECTORY / "vendored.json").read_text())
    hashes = {name: digest for one in pinned for name, digest in one["sha256"].items()}
    there = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in VENDOR.iterdir()}
    assert there == hashes
    for one in pinned:
        assert one["licence"] == "MIT"
        assert f"v{one['version']}" in (VENDOR / f"{one['name']}.iife.min.js").read_text()
        assert "MIT License" in (VENDOR / f"{one['name']}.LICENSE").read_text()


@pytest.mark.parametrize("path", [path for path in files() if "/vendor/" not in path])
def test_a_file_has_no_inline_code_and_writes_no_markup(path: str) -> None:
    text = files()[path].content.decode()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
    )
    if path == "/":
        assert not re.search(r"\son\w+=|\sstyle=|<script>|javascript:", text)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
