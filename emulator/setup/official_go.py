"""Puts the official Go into a directory of linklab's cache and prints where its `go` is.

Go's toolchains are modules (go.dev/doc/toolchain), so they come from where the user's modules come
from: GOPROXY. What comes is checked by go.sha256. Needs Python alone.
usage: official_go.py VERSION DIRECTORY
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from linklab.display.parts import Parts, Progress

PROXY = "https://proxy.golang.org"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
SUMS = Path(__file__).with_name("go.sha256")
PIECE_BYTES = 1 << 20
MOST_MIB = 256
"""No toolchain is larger, packed."""


def proxies() -> list[str]:
    """The module proxies to ask: those of GOPROXY, else Go's own."""
    named = [word for word in re.split("[,|]", os.environ.get("GOPROXY", "")) if "://" in word]
    return [word.rstrip("/") for word in named] or [PROXY]


def fetch(name: str, expected: str, target: Path, show: Progress) -> None:
    """Puts the toolchain's archive at `target`. Ends the program where it cannot be had."""
    refusals = []
    for proxy in proxies():
        url = f"{proxy}/golang.org/toolchain/@v/{name}"
        digest = hashlib.sha256()
        try:
            with urllib.request.urlopen(url, timeout=60) as answer, target.open("wb") as file:
                total = int(answer.headers.get("Content-Length") or 0)
                while piece := answer.read(PIECE_BYTES):
                    of = min(1.0, file.tell() / total) if total else 0
                    there = f"{file.tell() / 1e6:.0f} of {total / 1e6:.0f} MB"
                    show(f"fetching the compiler, {there}", 0.25 * of)
                    digest.update(piece)
                    file.write(piece)
                    if file.tell() > MOST_MIB << 20:
                        raise OSError(f"it has more than {MOST_MIB} MiB")
        except (urllib.error.URLError, OSError) as error:
            refusals.append(f"  {without_password(url)}: {error}")
            continue
        if digest.hexdigest() == expected:
            return
        refusals.append(f"  {without_password(url)}: not the SHA-256 of {SUMS.name}")
    sys.exit("linklab: Go cannot be had (set GOPROXY to a module proxy):\n" + "\n".join(refusals))


def without_password(url: str) -> str:
    """A URL as it may be printed."""
    return re.sub("//[^/]*@", "//", url)


def unpack(archive: Path, target: Path) -> None:
    """Unpacks a toolchain; modules have no modes, so its programs get theirs here."""
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(target)
    for program in [*target.glob("*/*/bin/*"), *target.glob("*/*/pkg/tool/*/*")]:
        program.chmod(0o755)


def main(version: str, kept: Path) -> None:
    """Prints the path of `go` below `kept`, fetched first if need be."""
    directory = kept / version
    if not (directory / "bin" / "go").exists():
        architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
        name = f"v0.0.1-go{version}.linux-{architecture}.zip"
        sums = dict(reversed(line.split()) for line in SUMS.read_text().splitlines())
        if name not in sums:
            sys.exit(f"linklab: no hash of {name} in {SUMS}")
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="new-", dir=kept) as work, Parts() as parts:
            show = parts.part("Go")
            fetch(name, sums[name], Path(work) / "archive", show)
            show("unpacking the compiler", 0.25)
            unpack(Path(work) / "archive", Path(work) / "unpacked")
            (unpacked,) = (Path(work) / "unpacked").glob("golang.org/*")
            shutil.rmtree(directory, ignore_errors=True)
            unpacked.rename(directory)
    print(directory / "bin" / "go")


if __name__ == "__main__":
    try:
        main(sys.argv[1], Path(sys.argv[2]))
    except KeyboardInterrupt:
        sys.exit(130)
