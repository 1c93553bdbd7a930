import os
import shutil
import subprocess
import threading
import time
from collections import namedtuple
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from linklab.core.paths import REPOSITORY
from linklab.places.guest import image
from linklab.places.guest.image import ImageError
from linklab.places.guest.locked import Lock, Package

CONTENT = "what is in it"
Make = Callable[[image.Name, Path, Path, image.Progress], None]


def tree(root: Path) -> Path:
    (root / "usr").mkdir(parents=True)
    (root / "usr" / "file").write_text(CONTENT)
    (root / "usr" / "link").symlink_to("file")
    return root


def make(name: image.Name, root: Path, work: Path, progress: image.Progress) -> None:
    tree(root)


@pytest.fixture
def lock(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of one small package, whose image is what `tree` makes; where it is kept."""
    monkeypatch.setattr(image, "make", make)
    right = Lock(
        "", {"guest": image.tree_hash(tree(tmp_path / "model"))},
        {"guest": (Package("a", "1", "", 1000, "debian", "pool/a.deb"),)},
    )  # fmt: skip
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
    assert {one.name for one in lock.iterdir()} == {path.name, "lock"}


def test_what_came_out_otherwise_is_not_used(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def otherwise(name: image.Name, root: Path, work: Path, progress: image.Progress) -> None:
        tree(root)
        (root / "more").touch()

    monkeypatch.setattr(image, "make", otherwise)
    with pytest.raises(ImageError, match=r"came out otherwise than image\.lock says"):
        image.ensure("guest")
    assert [one.name for one in lock.iterdir()] == ["lock"]


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, OSError(5, "broken"), ImageError("no network")]
)
def test_nothing_half_made_is_left(
    error: BaseException, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: image.Name, root: Path, work: Path, progress: image.Progress) -> None:
        tree(root)
        raise error

    monkeypatch.setattr(image, "make", fail)
    with pytest.raises((KeyboardInterrupt, ImageError)):
        image.ensure("guest")
    assert [one.name for one in lock.iterdir()] == ["lock"]


def test_what_a_killed_one_left_is_removed(lock: Path) -> None:
    tree(lock / "new-abc" / "root")
    image.ensure("guest")
    assert not (lock / "new-abc").exists()


def test_two_at_a_time_make_it_once(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(2)
    made = []

    def slowly(name: image.Name, root: Path, work: Path, progress: image.Progress) -> None:
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
    with pytest.raises(
        ImageError, match=r"no room for the guest image: .*image needs 0 MB; LINKLAB_CACHE"
    ):
        image.ensure("guest")
    assert image.cached("guest") is None


def test_documents_stay_out_but_licences() -> None:
    assert image.wanted("usr/share/doc/h2o/copyright")
    assert not image.wanted("usr/share/doc/h2o/README.gz")
    assert not image.wanted("usr/share/man/man1/sh.1.gz")
    assert image.wanted("usr/share/manual")
    assert image.wanted("usr/bin/h2o")


def test_a_machine_that_allows_nothing_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "_can_make_namespaces", lambda root: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ImageError, match="needs user namespaces, which this machine refuses"):
        image.inside(tmp_path, ["true"])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert image.inside(tmp_path, ["true"]) == ["chroot", str(tmp_path), "true"]


@pytest.mark.skipif(image.cached("guest") is None, reason="the guest image is not made yet")
def test_the_image_has_what_a_run_starts() -> None:
    root = image.cached("guest")
    assert root is not None
    for name in ("h2o", "curl", "aria2c", "mptcpize", "mnexec", "bash", "sh", "which", "unshare"):
        assert (root / "usr/bin" / name).exists(), name
    script = "import linklab.runs.guest_session, linklab.runs.execution"
    words = ["/usr/bin/env", "PYTHONPATH=/tmp/emulator", image.PYTHON, "-c", script]
    subprocess.run(
        image.inside(root, words, work=REPOSITORY), check=True, env=image.ENVIRONMENT
    )  # fmt: skip
