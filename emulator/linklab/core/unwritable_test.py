import errno
import tempfile
from pathlib import Path

import pytest

from linklab.core.unwritable import remedy


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_each_place_is_named_by_what_moves_it(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    out = tmp_path / "runs"
    for path, words in (
        (cache / "bundle" / "x", "LINKLAB_CACHE"),
        (cache.parent, "LINKLAB_CACHE"),
        (out / "run" / "run.json", "--out"),
        (tmp_path / "temporary" / "linklab-run-1-a", "TMPDIR"),
    ):
        assert words in remedy(OSError(code, "refused", str(path)), out), path
    assert remedy(OSError(code, "refused", "/elsewhere/file"), out) == ""
    assert remedy(OSError(errno.EIO, "broken", str(cache / "x")), out) == ""


def test_it_is_found_behind_what_was_made_of_it(cache: Path) -> None:
    with pytest.raises(RuntimeError) as found:
        try:
            raise OSError(errno.EROFS, "refused", str(cache / "authority"))
        except OSError as error:
            raise RuntimeError("certificates cannot be kept") from error
    assert "LINKLAB_CACHE" in remedy(found.value, None)


def test_no_temporary_directory_at_all() -> None:
    error = FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")
    assert "TMPDIR" in remedy(error, None)
