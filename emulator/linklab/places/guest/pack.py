"""`python -m linklab.places.guest.pack DIRECTORY`: writes image and kernels as files of a release."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from linklab.core.error_report import report_error
from linklab.places.guest import image, kernel
from linklab.places.guest.locked import lock


def checked(built: Path) -> Path:
    """Returns the path of a kernel. Raises KernelError if image.lock does not name it, because no
    linklab would use it."""
    if kernel.described(built) != lock().built.get(built.name):
        raise kernel.KernelError(
            f"{built.name} is not a kernel that image.lock names: where kernel.config, "
            "kernel.patch or the image has changed, emulator/setup/lock-kernel writes it"
        )
    return built


def write(
    directory: Path, recipes: Sequence[kernel.KernelRecipe] = kernel.RECIPES, *, preset: int = 6
) -> None:
    """Writes image and kernels, and makes them first if they are not in the cache.

    An image that is there is kept. Preset 0 packs in a tenth of the time, a quarter larger. Raises
    ImageError and KernelError.
    """
    image.ensure("guest")
    for recipe in recipes:
        built = checked(kernel.ensure(recipe=recipe))
        shutil.copy(built, directory / built.name)
    packed = directory / image.archive_name("guest")
    if not packed.exists():
        image.pack("guest", packed, preset)


def main(directory: Path) -> int:
    try:
        write(directory)
    except kernel.KernelError as error:
        report_error(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
