"""`python -m linklab.places.guest`: makes the guest's image and kernel, with a progress bar."""

from __future__ import annotations

import platform
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from linklab.core.error_report import report_error
from linklab.places.guest import image, image_root, kernel


def main() -> int:
    """Makes the parts of the guest that are not in the cache. Prints nothing if all are.

    It does nothing on processors other than x86-64. There labs run on the host, and
    `linklab doctor` says why.
    """
    if platform.machine() != "x86_64":
        return 0
    try:
        make_guest()
    except (image_root.ImageError, kernel.KernelError) as error:
        report_error(error)
        return 1
    except KeyboardInterrupt:
        report_error("interrupted; what is half made is removed")
        return 130
    return 0


class _Stopped(Exception):
    """Making the image or the kernel stops, because the other has failed."""


def make_guest() -> None:
    """Makes image and kernel in parallel, with a progress bar each, unless they are in the cache.

    Raises ImageError and KernelError.
    """
    if image.cached("guest") is not None and kernel.cached() is not None:
        return
    from linklab.display.progress import progress  # rich is slow to load.

    with progress() as bar, ThreadPoolExecutor(1) as other:
        if bar.disable:
            report_error("making the guest's image and kernel, which takes minutes")

        stopped = threading.Event()

        def showing(what: str) -> kernel.Progress:
            task = bar.add_task(what, total=100)

            def show(what: str, fraction: float) -> None:
                if stopped.is_set():
                    raise _Stopped
                if what != bar.tasks[task].description:
                    bar.reset(task, description=what)  # Otherwise its clock stands still.
                bar.update(task, completed=round(100 * fraction))

            return show

        of_image = other.submit(image.ensure, "guest", showing("the guest's image"))
        of_image.add_done_callback(lambda done: stopped.set() if done.exception() else None)
        try:
            kernel.ensure(showing("the guest kernel"))
        except _Stopped:
            pass  # The image has failed, and its error says why.
        except BaseException:
            stopped.set()
            raise
        of_image.result()


if __name__ == "__main__":
    sys.exit(main())
