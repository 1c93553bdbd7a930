"""`python -m linklab.places.guest`: has the guest kernel built, with a progress bar."""

from __future__ import annotations

import platform
import sys

from linklab.core.complaint import complain
from linklab.places.guest import kernel


def main() -> int:
    """Builds the guest kernel if it is not in the cache; says nothing if it is.

    Nor where none can be built: then there is the host place, and `linklab doctor` says why.
    """
    if platform.machine() != "x86_64" or not kernel.SOURCE_ARCHIVE.exists():
        return 0
    try:
        build_kernel()
    except kernel.KernelError as error:
        print(f"linklab: {error}", file=sys.stderr)
        return 1
    return 0


def build_kernel() -> None:
    """Has the guest kernel built, with a progress bar, unless it is in the cache."""
    if kernel.cached() is not None:
        return
    from linklab.core.progress import progress

    with progress() as bar:
        if bar.disable:
            complain("building the guest kernel, which takes minutes")
        task = bar.add_task("", total=100)
        kernel.ensure(
            lambda what, fraction: bar.update(
                task, description=what, completed=round(100 * fraction)
            )
        )


if __name__ == "__main__":
    sys.exit(main())
