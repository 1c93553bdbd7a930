import importlib.util
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from linklab.display.parts import Progress
from linklab.places.guest import image, image_root
from linklab.places.guest.image_root import ImageError
from linklab.places.guest.locked import Lock, Package

CONTENT = "what is in it"
Make = Callable[[image.Name, Path, Path, Progress], None]


def tree(root: Path) -> Path:
    (root / "usr").mkdir(parents=True)
    (root / "usr" / "file").write_text(CONTENT)
    (root / "usr" / "link").symlink_to("file")
    return root


def make(name: image.Name, root: Path, work: Path, progress: Progress) -> None:
    tree(root)


@pytest.fixture
def lock(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of one small package, whose image is what `tree` makes; where it is kept."""
    monkeypatch.setattr(image, "make", make)
    right = Lock(
        "",
        {"guest": image.tree_hash(tree(tmp_path / "model"))},
        {"guest": (Package("a", "1", "", 10_000, "debian", "pool/a.deb"),)},
    )
    monkeypatch.setattr(image, "lock", lambda: right)
    return cache / "image"


def test_a_hash_of_a_tree_tells_what_is_in_it(tmp_path: Path) -> None:
    root = tree(tmp_path / "a")
    hashes = [image.tree_hash(root)]
    os.utime(root / "usr" / "file", (1, 1))
    assert image.tree_hash(root) == image.tree_hash(tree(tmp_path / "elsewhere")) == hashes[0]
    changes: list[Callable[[], object]] = [
        lambda: (root / "usr" / "file").chmod(0o755),
        lambda: (root / "usr" / "file").write_text("other"),
        lambda: (root / "usr" / "file").rename(root / "usr" / "other"),
        lambda: (root / "usr" / "link").unlink(),
        lambda: (root / "usr" / "link").symlink_to("elsewhere"),
        lambda: (root / "empty").mkdir(),
        lambda: (root / "empty").chmod(0o700),
    ]
    for change in changes:
        change()
        hashes.append(image.tree_hash(root))
    assert len(set(hashes)) == len(changes) + 1


def test_what_was_made_is_checked_and_kept(lock: Path) -> None:
    assert image.cached("guest") is None
    path = image.ensure("guest")
    assert path == image.cached("guest") == image.path("guest")
    assert path.parent == lock
    assert path.name == f"guest-{image.tree_hash(path)[:16]}"
    assert {one.name for one in lock.iterdir()} == {path.name, "guest.lock"}


def test_what_came_out_otherwise_is_not_used(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def otherwise(name: image.Name, root: Path, work: Path, progress: Progress) -> None:
        tree(root)
        (root / "more").touch()

    monkeypatch.setattr(image, "make", otherwise)
    with pytest.raises(ImageError, match=r"came out otherwise than image\.lock says"):
        image.ensure("guest")
    assert [one.name for one in lock.iterdir()] == ["guest.lock"]


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, OSError(5, "broken"), ImageError("no network")]
)
def test_nothing_half_made_is_left(
    error: BaseException, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: image.Name, root: Path, work: Path, progress: Progress) -> None:
        tree(root)
        raise error

    monkeypatch.setattr(image, "make", fail)
    with pytest.raises((KeyboardInterrupt, ImageError)):
        image.ensure("guest")
    assert [one.name for one in lock.iterdir()] == ["guest.lock"]


def test_what_a_killed_one_left_is_removed(lock: Path) -> None:
    tree(lock / "new-guest-abc" / "root")
    image.ensure("guest")
    assert not (lock / "new-guest-abc").exists()


def test_two_at_a_time_make_it_once(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(2)
    made = []

    def slowly(name: image.Name, root: Path, work: Path, progress: Progress) -> None:
        made.append(name)
        time.sleep(0.05)  # Time for the other one to make it too, were it not locked out.
        tree(root)

    def ensure(_: int) -> Path:
        together.wait()
        return image.ensure("guest")

    monkeypatch.setattr(image, "make", slowly)
    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(ensure, range(2)))) == 1
    assert made == ["guest"]


def test_no_room_is_said_beforehand(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(image.needed_bytes("guest") - 1))
    with pytest.raises(ImageError, match=r"no room for the guest image: .*image needs 0 MB;"):
        image.ensure("guest")
    assert image.cached("guest") is None


@pytest.fixture
def released(lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A release with the image, and a machine that could not make it."""
    directory = tmp_path / "release"
    directory.mkdir()
    made = image.ensure("guest")
    image.pack("guest", directory / image.archive_name("guest"))
    shutil.rmtree(made)
    monkeypatch.setenv("LINKLAB_RELEASE", f"file://{directory}")

    def fail(name: image.Name, root: Path, work: Path, progress: Progress) -> None:
        raise ImageError("cannot be made here")

    monkeypatch.setattr(image, "make", fail)
    return directory


def test_an_image_comes_from_a_release(released: Path) -> None:
    said: list[tuple[str, float]] = []
    path = image.ensure("guest", lambda what, of: said.append((what, of)))
    fractions = [of for _, of in said]
    assert fractions == sorted(fractions)
    assert {what.split(",")[0] for what, _ in said} >= {"fetching", "unpacking"}
    assert fractions[-1] == 0.99
    assert (path / "usr" / "file").read_text() == CONTENT
    assert path.name == f"guest-{image.tree_hash(path)[:16]}"
    other = released / "again"
    image.pack("guest", other)
    assert other.read_bytes() == (released / image.archive_name("guest")).read_bytes()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("cut", "end-of-stream"),
        ("changed", "Corrupt|sanity|Format"),
        ("not there", "No such file"),
        ("another tree", "is not the one that image.lock says"),
        ("too large", "has more than 45000 bytes"),
        ("a bomb", "unpacks to more than 45000 bytes"),
        ("a name like a bomb", "unpacks to more than 45000 bytes"),
    ],
)
def test_a_broken_release_is_said_and_not_used(
    fault: str, words: str, released: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = released / image.archive_name("guest")
    match fault:
        case "cut":
            packed.write_bytes(packed.read_bytes()[:100])
        case "changed":
            packed.write_bytes(packed.read_bytes()[:-1] + b"x")
        case "not there":
            packed.unlink()
        case "another tree":
            archive(packed, {"usr/file": "something else"})
        case "too large":
            packed.write_bytes(os.urandom(45_001))
        case "a bomb":
            archive(packed, {"usr/file": "0" * 10_000_000})
        case "a name like a bomb":
            archive(packed, {"usr/" + "f" * 10_000_000: ""})
    with pytest.raises(ImageError, match="cannot be made here"):
        image.ensure("guest")
    assert re.search(words, capsys.readouterr().err)
    assert image.cached("guest") is None
    assert [one.name for one in lock.iterdir()] == ["guest.lock"]


def test_a_broken_release_is_one_line_where_no_image_can_be_made(
    released: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = released / image.archive_name("guest")
    packed.unlink()
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(image_root, "_RUN_X86_64", ())
    with pytest.raises(ImageError, match=f"^file:.*/{packed.name}: .*; making the guest runs"):
        image.ensure("guest")
    assert capsys.readouterr().err == ""


def test_what_pip_fetches_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel's hash is known once it is there."""
    script = "import sys; open(sys.argv[sys.argv.index('--dest') + 1], 'wb').write(bytes(1 << 28))"
    monkeypatch.setattr(image, "_pip", lambda work: [sys.executable, "-c", script])
    with pytest.raises(ImageError, match="File too large"):
        image._fetch_wheels(tmp_path)
    assert (tmp_path / "wheels").stat().st_size <= image._WHEEL_BYTES


def archive(packed: Path, files: Mapping[str, str], **link: str) -> None:
    """An archive of links, and then files."""
    with tarfile.open(packed, "w:xz") as made:
        for name, target in link.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            made.addfile(member)
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content.encode()))


@pytest.mark.parametrize(
    ("name", "words"),
    [("../out", "leads out"), ("/tmp/linklab-out", "leads out"), ("link/out", "behind a link")],
)
def test_nothing_of_a_release_lands_elsewhere(
    name: str, words: str, released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive(released / image.archive_name("guest"), {name: "planted"}, link=str(tmp_path))
    with pytest.raises(ImageError, match="cannot be made here"):
        image.ensure("guest")
    assert words in capsys.readouterr().err
    assert not list(tmp_path.rglob("out"))
    assert not Path("/tmp/linklab-out").exists()


def test_a_release_changes_no_file_of_the_user(
    released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = tmp_path / "home" / "secret"
    secret.parent.mkdir()
    secret.write_text("key")
    secret.chmod(0o600)
    before = secret.stat()
    with tarfile.open(released / image.archive_name("guest"), "w:xz") as made:
        for name, kind, target in (
            ("link", tarfile.SYMTYPE, str(secret.parent)),
            ("file", tarfile.LNKTYPE, "link/secret"),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            made.addfile(member)
    with pytest.raises(ImageError, match="cannot be made here"):
        image.ensure("guest")
    assert "file is a hard link" in capsys.readouterr().err
    assert secret.stat() == before


def test_a_python_without_pip_gets_one_for_this(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert image._pip(tmp_path) == [sys.executable, "-m", "pip"]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = subprocess.run([*image._pip(tmp_path), "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("pip ")
    assert str(tmp_path / "environment") in done.stdout


def test_a_python_that_cannot_have_pip_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", "/usr/bin/false")
    with pytest.raises(ImageError, match="fetched by pip, which /usr/bin/false lacks: install"):
        image._pip(tmp_path)


def test_why_pip_fetched_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last line alone says that there is no such package."""
    said = [
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'name resolution'",
        "ERROR: Could not find a version that satisfies the requirement msgspec==1",
        "ERROR: No matching distribution found for msgspec==1",
    ]
    script = f"import sys; sys.exit({chr(10).join(said)!r})"
    monkeypatch.setattr(image, "_pip", lambda work: [sys.executable, "-c", script])
    with pytest.raises(ImageError) as error:
        image._fetch_wheels(tmp_path)
    assert str(error.value).splitlines()[1:] == [f"  {said[0]}", f"  {said[2]}"]


def test_documents_stay_out_but_licences() -> None:
    assert image.wanted("usr/share/doc/h2o/copyright")
    assert not image.wanted("usr/share/doc/h2o/README.gz")
    assert not image.wanted("usr/share/man/man1/sh.1.gz")
    assert image.wanted("usr/share/manual")
    assert image.wanted("usr/bin/h2o")


def test_that_is_told_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "programs"
    refusing.mkdir()
    for name in ("bwrap", "unshare"):
        (refusing / name).symlink_to("/bin/false")
        monkeypatch.setenv("PATH", str(refusing))
        image_root._refusal.cache_clear()
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        with pytest.raises(ImageError, match="needs user namespaces, which this machine refuses"):
            image.make("guest", tmp_path / "root", tmp_path)
        assert not (tmp_path / "packages").exists()
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        image_root._refusal.cache_clear()
        assert image_root.obstacle() is None
        (refusing / name).unlink()
    image_root._refusal.cache_clear()
