"""`python -m linklab.places.guest.pack DIRECTORY`: the guest's image and kernel as files of a release."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from linklab.places.guest import image, kernel


def main(directory: Path) -> int:
    """Writes both files, made first if they are not in the cache."""
    image.ensure("guest")
    built = kernel.ensure()
    image.pack("guest", directory / image.archive_name("guest"))
    shutil.copy(built, directory / built.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
