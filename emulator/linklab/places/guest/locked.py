"""Reads image.lock: the exact packages of the guest's images, and the hashes of the kernels.

emulator/setup/lock-image and lock-kernel write it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path

_LOCK = Path(__file__).with_name("image.lock")


@dataclass(frozen=True)
class Package:
    """A Debian package: version, hash, size, and its path in one of Debian's archives."""

    name: str
    version: str
    sha256: str
    size_bytes: int
    archive: str
    path: str

    @property
    def file_name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Built:
    """A built kernel: its name with the cache key (`kernel.name`), hash and size."""

    name: str
    sha256: str
    size_bytes: int

    @property
    def line(self) -> str:
        return f"built {self.name} {self.sha256} {self.size_bytes}"


@dataclass(frozen=True)
class Lock:
    """The content of image.lock.

    Attributes:
        snapshot: time (like 20261122T013214Z) at which Debian's archives had all packages.
        trees: hash of each image (`image.tree_hash`).
        packages: packages of each image.
        built: the kernels by name.
    """

    snapshot: str
    trees: dict[str, str]
    packages: dict[str, tuple[Package, ...]]
    built: dict[str, Built] = field(default_factory=dict)


def parse(text: str) -> Lock:
    """Reads a lock from its text, which consists of lines of words. Pure."""
    snapshot = ""
    trees: dict[str, str] = {}
    packages: dict[str, list[Package]] = {}
    built: dict[str, Built] = {}
    for line in text.splitlines():
        match line.split():
            case ["snapshot", snapshot]:
                pass
            case ["tree", image, digest]:
                trees[image] = digest
            case ["built", name, sha256, size]:
                built[name] = Built(name, sha256, int(size))
            case [image, name, version, sha256, size, archive, path]:
                package = Package(name, version, sha256, int(size), archive, path)
                packages.setdefault(image, []).append(package)
    return Lock(snapshot, trees, {image: tuple(found) for image, found in packages.items()}, built)


@functools.cache
def lock() -> Lock:
    return parse(_LOCK.read_text())


def version(name: str) -> str | None:
    """Returns the version of a package in one of the images, or None."""
    for packages in lock().packages.values():
        for package in packages:
            if package.name == name:
                return package.version
    return None
