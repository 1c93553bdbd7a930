"""`python -m linklab.places.guest.pack DIRECTORY`: writes image and kernels as files of a release."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from linklab.core.error_report import report_error
from linklab.places.guest import image, kernel
from linklab.places.guest.locked import lock


def main(directory: Path) -> int:
    """Writes all files, and makes them first if they are not in the cache.

    Refuses a kernel that is not one of image.lock, because no linklab would use it.
    """
    image.ensure("guest")
    for recipe in kernel.RECIPES:
        built = kernel.ensure(recipe=recipe)
        if kernel.described(built) != lock().built.get(built.name):
            report_error(
                f"{built.name} is not a kernel that image.lock names: where kernel.config, "
                "kernel.patch or the image has changed, emulator/setup/lock-kernel writes it"
            )
            return 1
        shutil.copy(built, directory / built.name)
    image.pack("guest", directory / image.archive_name("guest"))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
