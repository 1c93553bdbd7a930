"""`python -m linklab.places.guest`: makes the guest's image and kernel, with a progress line each.

Needs nothing but Python: `make setup` runs it before there is an environment.
"""

from __future__ import annotations

import platform
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from linklab.core.error_report import report_error
from linklab.display.parts import Parts, Progress
from linklab.places.guest import image, image_root, kernel, release


def main() -> int:
    """Makes the parts of the guest that are not in the cache. Prints nothing if all are.

    If another processor than x86-64 cannot make them, they are not made. Then labs run on the host,
    and `linklab doctor` says why.
    """
    is_foreign = platform.machine() != "x86_64"
    if is_foreign and release.address() is None and image_root.obstacle() is not None:
        return 0
    try:
        kernels = kernel.RECIPES if is_foreign else (kernel.GUEST,)
        if not is_made(kernels):
            with Parts() as parts:
                ensure_guest(parts.report, kernels)
    except (image_root.ImageError, kernel.KernelError) as error:
        report_error(error)
        return 1
    except KeyboardInterrupt:
        report_error("interrupted; what is half made is removed")
        return 130
    return 0


Report = Callable[[str, str, float], None]
"""A function that is called with a part (`image` or a kernel's), its current step and its finished
fraction. Two threads call it."""

Kernels = Sequence[kernel.KernelRecipe]


class _Stopped(Exception):
    """Making the image or the kernel stops, because the other has failed."""


def is_made(kernels: Kernels = (kernel.GUEST,)) -> bool:
    return image.cached("guest") is not None and all(map(kernel.cached, kernels))


def ensure_guest(report: Report, kernels: Kernels = (kernel.GUEST,)) -> None:
    """Makes image and kernels in parallel, unless they are in the cache, and reports them.

    Raises ImageError and KernelError.
    """
    if is_made(kernels):
        return
    with ThreadPoolExecutor(1) as other:
        stopped = threading.Event()

        def making(name: str, ensure: Callable[[Progress], Path]) -> None:
            begun = threading.Event()

            def show(what: str, fraction: float) -> None:
                if stopped.is_set():
                    raise _Stopped
                begun.set()
                report(name, what, fraction)

            ensure(show)
            if begun.is_set():
                report(name, "finished", 1)

        of_image = other.submit(making, "image", lambda show: image.ensure("guest", show))
        of_image.add_done_callback(lambda done: stopped.set() if done.exception() else None)
        try:
            for recipe in kernels:
                making(recipe.called, partial(kernel.ensure, recipe=recipe))
        except _Stopped:
            pass  # The image has failed, and its error says why.
        except BaseException:
            stopped.set()
            raise
        of_image.result()


if __name__ == "__main__":
    sys.exit(main())
