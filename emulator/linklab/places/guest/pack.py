"""`python -m linklab.places.guest.pack DIRECTORY`: writes image and kernel as files of a release."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from linklab.core.error_report import report_error
from linklab.places.guest import image, kernel
from linklab.places.guest.locked import lock


def main(directory: Path) -> int:
    """Writes both files, and makes them first if they are not in the cache.

    Refuses a kernel that is not the one of image.lock, because no linklab would use it.
    """
    image.ensure("guest")
    built = kernel.ensure()
    if kernel.described(built) != lock().built:
        report_error(
            f"{built.name} is not the kernel that image.lock names: where kernel.config, kernel.patch "
            "or the image has changed, emulator/setup/lock-kernel writes it"
        )
        return 1
    image.pack("guest", directory / image.archive_name("guest"))
    shutil.copy(built, directory / built.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
