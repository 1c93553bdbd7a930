"""What the guest's userland is made of, exactly: image.lock, which emulator/setup/lock-image writes."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

_LOCK = Path(__file__).with_name("image.lock")


@dataclass(frozen=True)
class Package:
    """One Debian package: where its file lies in which of Debian's archives, and what it is."""

    name: str
    version: str
    sha256: str
    size_bytes: int
    archive: str
    path: str

    @property
    def file_name(self) -> str:
        """What its file is called."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Lock:
    """The packages of each image, the hash of the tree that each image is (`image.tree_hash`),
    and the time (like 20261122T013214Z) at which Debian's archives had them all."""

    snapshot: str
    trees: dict[str, str]
    packages: dict[str, tuple[Package, ...]]


def parse(text: str) -> Lock:
    """The lock that `text` is: lines of words. Pure."""
    snapshot = ""
    trees: dict[str, str] = {}
    packages: dict[str, list[Package]] = {}
    for line in text.splitlines():
        match line.split():
            case ["snapshot", snapshot]:
                pass
            case ["tree", image, digest]:
                trees[image] = digest
            case [image, name, version, sha256, size, archive, path]:
                package = Package(name, version, sha256, int(size), archive, path)
                packages.setdefault(image, []).append(package)
    return Lock(snapshot, trees, {image: tuple(found) for image, found in packages.items()})


@functools.cache
def lock() -> Lock:
    """The lock of this linklab."""
    return parse(_LOCK.read_text())


def version(name: str) -> str | None:
    """The version of a package in one of the images, or None."""
    for packages in lock().packages.values():
        for package in packages:
            if package.name == name:
                return package.version
    return None
