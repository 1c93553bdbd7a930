import io
import tarfile
from pathlib import Path

import pytest

from linklab.places.guest import deb
from linklab.places.guest.deb import DebError


def package(path: Path, members: list[tarfile.TarInfo], *, data: str = "data.tar.xz") -> Path:
    """A Debian package of these members; each file's content is its name."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        for member in members:
            content = member.name.encode() if member.isfile() else b""
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    parts = [("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), (data, packed.getvalue())]
    with path.open("wb") as file:
        file.write(b"!<arch>\n")
        for name, content in parts:
            file.write(f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode())
            file.write(content + b"\n" * (len(content) % 2))
    return path


def entry(
    name: str, kind: bytes = tarfile.REGTYPE, *, mode: int = 0o644, to: str = ""
) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.linkname, member.mtime = kind, mode, to, 1
    return member


def test_a_package_is_unpacked_into_merged_directories(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    deb.link_merged(root)
    members = [
        entry("./", tarfile.DIRTYPE),
        entry("./bin/", tarfile.DIRTYPE),
        entry("./bin/su", mode=0o4755),
        entry("./bin/second", tarfile.LNKTYPE, to="./bin/su"),
        entry("./lib64/ld.so", tarfile.SYMTYPE, to="/lib/ld.so"),
        entry("./etc/secret", mode=0o000),
    ]
    deb.unpack(package(tmp_path / "one.deb", members), root)
    assert (root / "usr/bin/su").read_text() == "./bin/su"
    assert (root / "usr/bin/su").stat().st_mode & 0o7777 == 0o755  # Not with its owner's rights.
    assert (root / "bin/second").read_text() == "./bin/su"
    assert (root / "usr/lib64/ld.so").readlink() == Path("/lib/ld.so")
    assert (root / "etc/secret").stat().st_mode & 0o777 == 0o644
    assert (root / "bin").is_symlink()


def test_what_is_not_wanted_stays_out(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    file = package(tmp_path / "one.deb", [entry("./usr/a"), entry("./usr/b")])
    deb.unpack(file, root, wanted=lambda name: name != "usr/a")
    assert [path.name for path in (root / "usr").iterdir()] == ["b"]


def test_what_comes_later_takes_the_place(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    file = package(
        tmp_path / "one.deb", [entry("./a", tarfile.SYMTYPE, to="/elsewhere"), entry("./a")]
    )
    deb.unpack(file, root)
    assert (root / "a").read_text() == "./a"


@pytest.mark.parametrize("name", ["./usr/../../out", "/etc/../../out"])
def test_nothing_is_written_beside_the_root(name: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with pytest.raises(DebError, match=r"one\.deb is no Debian package"):
        deb.unpack(package(tmp_path / "one.deb", [entry(name)]), root)
    assert not (tmp_path / "out").exists()


def test_what_is_no_package_is_named(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    odd = tmp_path / "odd.deb"
    odd.write_text("<html>")
    with pytest.raises(DebError, match=r"odd\.deb is no Debian package: it does not begin"):
        deb.unpack(odd, root)
    without = package(tmp_path / "without.deb", [], data="other.tar")
    with pytest.raises(DebError, match="it has no data"):
        deb.unpack(without, root)
    whole = package(tmp_path / "whole.deb", [entry("./a")])
    whole.write_bytes(whole.read_bytes()[:240])
    with pytest.raises(DebError, match=r"whole\.deb"):
        deb.unpack(whole, root)
    with pytest.raises(DebError, match="is no file, directory or link"):
        deb.unpack(package(tmp_path / "pipe.deb", [entry("./p", tarfile.FIFOTYPE)]), root)
