"""Tells the user what to do if linklab cannot write a file."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from linklab.core.paths import cache_dir

_REFUSALS = (
    *(errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT),
    *(errno.ENOTDIR, errno.EEXIST),
)


def remedy(error: BaseException, out: Path | None) -> str:
    """Returns how to choose another path for a file that could not be written; "" for other errors.

    It looks at the error and its causes. `out` is the directory of the run directories, if any.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError):
            if cause.errno == errno.ENOENT and "temporary directory" in str(cause):
                return _TEMPORARY
            if cause.errno in _REFUSALS and cause.filename is not None:
                return _of(Path(os.fsdecode(cause.filename)).absolute(), out)
        cause = cause.__cause__ or cause.__context__
    return ""


_TEMPORARY = "; TMPDIR names another place for temporary files"


def _of(path: Path, out: Path | None) -> str:
    if path.is_relative_to(cache_dir()) or cache_dir().is_relative_to(path):
        return "; LINKLAB_CACHE names another place for linklab's cache"
    if out is not None and path.is_relative_to(out.absolute()):
        return "; --out names another place for run directories"
    places = (os.environ.get("TMPDIR"), tempfile.tempdir, "/dev/shm", "/tmp", "/var/tmp")
    if any(path.parent == Path(one).absolute() for one in places if one):
        return _TEMPORARY
    return ""
