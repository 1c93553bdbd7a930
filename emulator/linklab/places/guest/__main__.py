"""`python -m linklab.places.guest`: has guest image and kernel made, with a progress bar."""

from __future__ import annotations

import platform
import sys

from linklab.core.complaint import complain
from linklab.places.guest import image, kernel


def main() -> int:
    """Makes what of the guest is not in the cache; says nothing if all is.

    Nor on other processors: there is the host place, and `linklab doctor` says why.
    """
    if platform.machine() != "x86_64":
        return 0
    try:
        build_kernel()
    except (image.ImageError, kernel.KernelError) as error:
        print(f"linklab: {error}", file=sys.stderr)
        return 1
    return 0


def build_kernel() -> None:
    """Has image and kernel made, with a progress bar, unless they are in the cache."""
    if image.cached("guest") is not None and kernel.cached() is not None:
        return
    from linklab.core.progress import progress

    with progress() as bar:
        if bar.disable:
            complain("making the guest's image and kernel, which takes minutes")
        task = bar.add_task("", total=100)

        def show(what: str, fraction: float) -> None:
            bar.update(task, description=what, completed=round(100 * fraction))

        image.ensure("guest", show)
        kernel.ensure(show)


if __name__ == "__main__":
    sys.exit(main())
