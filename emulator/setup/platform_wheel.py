"""Puts the programs of a release into the wheel: the client, the guest's kernel, and the kernel of
the emulated machine. Such a wheel needs no compiler. The wheel for arm64 also has the client for
guests, whose processor is x86-64.

LINKLAB_WHEEL names the platform, `linux-amd64` or `linux-arm64`, and LINKLAB_WHEEL_FROM the directory
of the release. Without them the wheel has no programs and suits every platform. All are static.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TAGS = {
    "linux-amd64": "py3-none-manylinux_2_17_x86_64",
    "linux-arm64": "py3-none-manylinux_2_17_aarch64",
}

GUEST = "linux-amd64"
"""The platform of programs in guests (core/paths.py: GUEST_MULTILINK)."""


class PlatformWheel(BuildHookInterface[Any]):
    """Tells hatchling the further files and the tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the programs. Ends the build if a kernel is not the one of image.lock."""
        target = os.environ.get("LINKLAB_WHEEL")
        if target is None:
            return
        release = Path(os.environ["LINKLAB_WHEEL_FROM"]).resolve()
        build_data["pure_python"] = False
        build_data["tag"] = TAGS[target]
        scripts = {f"multilink-{target}": "multilink"}
        if target != GUEST:
            scripts[f"multilink-{GUEST}"] = f"multilink-{GUEST}"
        for file, name in scripts.items():
            build_data["shared_scripts"][str(release / file)] = name
        sys.path.insert(0, self.root)
        from linklab.places.guest import kernel
        from linklab.places.guest.locked import lock

        for recipe in kernel.RECIPES:
            built = release / kernel.name(recipe)
            if kernel.described(built) != lock().built.get(built.name):
                sys.exit(f"linklab: {built} is not the kernel that image.lock names")
            build_data["force_include"][str(built)] = f"linklab/data/kernel/{built.name}"
