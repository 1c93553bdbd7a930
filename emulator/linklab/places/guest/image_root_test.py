import os
from pathlib import Path

import pytest

from linklab.places.guest import image_root, locked
from linklab.places.guest.image_root import ImageError


def test_programs_of_each_image_can_run_where_the_host_has_no_bubblewrap() -> None:
    """With nothing else of its own, Debian 13 has none."""
    for packages in locked.lock().packages.values():
        names = {one.name for one in packages}
        assert names >= {"bubblewrap", "libcap2", "libselinux1", "libc6"}


def test_a_machine_that_allows_nothing_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_root, "has_namespaces", lambda root: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ImageError, match="needs user namespaces"), image_root.inside(tmp_path):
        pass


def test_root_does_without_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that allows none: what is worked in lies in the image meanwhile."""
    monkeypatch.setattr(image_root, "has_namespaces", lambda root: False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    root, work = tmp_path / "root", tmp_path / "work"
    for path in (root / "tmp", root / "dev", work):
        path.mkdir(parents=True)
    (work / "file").touch()
    # What one left who was killed there.
    (root / "tmp" / "work" / "source").mkdir(parents=True)
    (root / "dev" / "null").touch()
    monkeypatch.setattr(os, "mknod", lambda path, mode, device: Path(path).touch(exist_ok=False))
    with pytest.raises(KeyboardInterrupt), image_root.inside(root, work=work) as command:
        words = command(["true"])
        assert words[words.index("chroot") + 1] == str(root)
        assert (root / "dev" / "null").exists()
        assert [one.name for one in (root / "tmp" / "work").iterdir()] == ["file"]
        raise KeyboardInterrupt
    assert (work / "file").exists()
    assert not list((root / "dev").iterdir())


def test_root_that_may_do_nothing_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, mode: int, device: int) -> None:
        raise PermissionError

    monkeypatch.setattr(image_root, "has_namespaces", lambda root: False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "mknod", refuse)
    with (
        pytest.raises(ImageError, match="take image and kernel from a release"),
        image_root.inside(tmp_path),
    ):
        pass
