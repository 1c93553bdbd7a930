"""Puts the programs of a release into the wheel: for x86-64 the guest's kernel and the client, for
arm64 the client. Such a wheel needs no compiler.

LINKLAB_WHEEL names the platform, `linux-amd64` or `linux-arm64`, and LINKLAB_WHEEL_FROM the directory
of the release. Without them the wheel has neither and suits every platform. Both programs are static.
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


class PlatformWheel(BuildHookInterface[Any]):
    """Tells hatchling the further files and the tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the programs. Ends the build if the kernel is not the one of image.lock."""
        target = os.environ.get("LINKLAB_WHEEL")
        if target is None:
            return
        release = Path(os.environ["LINKLAB_WHEEL_FROM"]).resolve()
        build_data["pure_python"] = False
        build_data["tag"] = TAGS[target]
        build_data["shared_scripts"][str(release / f"multilink-{target}")] = "multilink"
        if target == "linux-amd64":
            sys.path.insert(0, self.root)
            from linklab.places.guest import kernel
            from linklab.places.guest.locked import lock

            built = release / kernel.name()
            if kernel.described(built) != lock().built.get(built.name):
                sys.exit(f"linklab: {built} is not the kernel that image.lock names")
            build_data["force_include"][str(built)] = f"linklab/data/kernel/{built.name}"
