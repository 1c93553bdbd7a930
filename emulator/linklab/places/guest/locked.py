"""What the guest's userland is made of, exactly, and its kernel's hash: image.lock, which
emulator/setup/lock-image and lock-kernel write."""

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
class Built:
    """The kernel that linklab's files make: the name with its key (`kernel.name`), and what it is."""

    name: str
    sha256: str
    size_bytes: int

    @property
    def line(self) -> str:
        """It in image.lock."""
        return f"built {self.name} {self.sha256} {self.size_bytes}"


@dataclass(frozen=True)
class Lock:
    """The packages of each image, the hash of the tree that each image is (`image.tree_hash`),
    the time (like 20261122T013214Z) at which Debian's archives had them all, and the kernel."""

    snapshot: str
    trees: dict[str, str]
    packages: dict[str, tuple[Package, ...]]
    built: Built | None = None


def parse(text: str) -> Lock:
    """The lock that `text` is: lines of words. Pure."""
    snapshot = ""
    trees: dict[str, str] = {}
    packages: dict[str, list[Package]] = {}
    built = None
    for line in text.splitlines():
        match line.split():
            case ["snapshot", snapshot]:
                pass
            case ["tree", image, digest]:
                trees[image] = digest
            case ["built", name, sha256, size]:
                built = Built(name, sha256, int(size))
            case [image, name, version, sha256, size, archive, path]:
                package = Package(name, version, sha256, int(size), archive, path)
                packages.setdefault(image, []).append(package)
    return Lock(snapshot, trees, {image: tuple(found) for image, found in packages.items()}, built)


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
