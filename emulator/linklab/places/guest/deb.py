"""Unpacks Debian packages (deb(5)) on any distribution, without root and without their scripts.

No library fits: python-debian is under the GPL and needs dpkg's rules for names, and other
distributions have no dpkg-deb. A package is an ar archive of three files.
"""

from __future__ import annotations

import lzma
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO

from linklab.core.errors import LinklabError

_MAGIC = b"!<arch>\n"
_HEADER_BYTES = 60

_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Directories that are links into /usr (usrmerge). Packages of Debian 12 still use their names."""


class DebError(LinklabError, RuntimeError):
    """A file is no readable Debian package. The message names it."""


def place(name: str) -> str:
    """Returns the path of a package's file, relative to the root. Pure.

    Raises ValueError for a path outside the root.
    """
    parts = PurePosixPath(name).parts
    parts = tuple(part for part in parts if part not in ("/", "."))
    if ".." in parts:
        raise ValueError(f"{name} leads out of it")
    if parts and parts[0] in _MERGED:
        parts = ("usr", *parts)
    return "/".join(parts)


def unpack(package: Path, root: Path, *, wanted: Callable[[str], bool] = lambda _: True) -> None:
    """Unpacks a package below `root`: the files whose path is `wanted`.

    The caller owns the files, and none has a set-user-ID bit. Raises DebError and OSError.
    """
    with package.open("rb") as file:
        try:
            _to_data(file)
            with tarfile.open(fileobj=file, mode="r|*") as data:
                for member in data:
                    name = place(member.name)
                    if name and wanted(name):
                        extract(data, member, root, name)
        except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError) as error:
            raise DebError(f"{package} is no Debian package: {error}") from error


def extract(data: tarfile.TarFile, member: tarfile.TarInfo, root: Path, name: str) -> None:
    """Makes the file, directory or link of an archive at `root`/`name`.

    The caller owns it, and it has no set-user-ID bit. Raises ValueError for other types, and OSError.
    """
    path = root / name
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if member.issym():
        path.symlink_to(member.linkname)
    elif member.islnk():
        path.hardlink_to(root / place(member.linkname))
    elif member.isfile():
        content = data.extractfile(member)
        assert content is not None
        with path.open("xb") as file:
            shutil.copyfileobj(content, file)
        path.chmod(0o755 if member.mode & 0o100 else 0o644)
    else:
        raise ValueError(f"{member.name} is no file, directory or link")


def _to_data(file: IO[bytes]) -> None:
    """Seeks to the archive of the package's files."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin like one")
    while header := file.read(_HEADER_BYTES):
        name, size = header[:16].decode().rstrip(" /"), int(header[48:58])
        if name.startswith("data.tar"):
            return
        file.seek(size + size % 2, 1)
    raise ValueError("it has no data")


def link_merged(root: Path) -> None:
    """Makes the links into /usr (usrmerge) in an empty root."""
    for name in (*_MERGED[:3], "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
