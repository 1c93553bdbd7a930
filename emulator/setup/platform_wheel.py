"""Puts the programs that linklab needs into the wheel: the client, the guest's image and kernel, the
kernel of the emulated machine, and the JavaScript of the report's charts. Such a wheel needs neither compiler nor network. The wheel for arm64
also has the client for guests, whose processor is x86-64.

`make release` names the platform by LINKLAB_WHEEL, `linux-amd64` or `linux-arm64`, and the directory
of the release by LINKLAB_WHEEL_FROM. Without them the wheel is for this machine, and its programs are
those that `make setup` made. All are static.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TAGS = {
    "linux-amd64": "py3-none-manylinux_2_17_x86_64",
    "linux-arm64": "py3-none-manylinux_2_17_aarch64",
}
MACHINES = {"x86_64": "linux-amd64", "aarch64": "linux-arm64"}

GUEST = "linux-amd64"
"""The platform of programs in guests (core/paths.py: GUEST_MULTILINK)."""


class PlatformWheel(BuildHookInterface[Any]):
    """Tells hatchling the further files and the tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the programs. Ends the build if one is missing, or a kernel is not that of image.lock."""
        sys.path.insert(0, self.root)
        from linklab.places.guest import image, kernel, pack
        from linklab.report import vega

        target = os.environ.get("LINKLAB_WHEEL") or MACHINES.get(platform.machine())
        if target is None:
            sys.exit(f"linklab: no wheel for {platform.machine()}; allowed: {', '.join(MACHINES)}")
        named = os.environ.get("LINKLAB_WHEEL_FROM")
        clients = {f"multilink-{target}": "multilink"}
        if target != GUEST:
            clients[f"multilink-{GUEST}"] = f"multilink-{GUEST}"
        recipes = kernel.RECIPES if named or target != GUEST else (kernel.GUEST,)
        try:
            release = Path(named).resolve() if named else self._gathered(clients, recipes)
            for recipe in recipes:
                pack.checked(release / kernel.name(recipe))
        except kernel.KernelError as error:
            sys.exit(f"linklab: {error}")
        build_data["pure_python"] = False
        build_data["tag"] = TAGS[target]
        for file, name in clients.items():
            build_data["shared_scripts"][str(release / file)] = name
        build_data["force_include"][str(vega.bundled())] = "linklab/data/vega.js"
        for folder, name in (
            ("image", image.archive_name("guest")),
            *(("kernel", kernel.name(recipe)) for recipe in recipes),
        ):
            build_data["force_include"][str(release / name)] = f"linklab/data/{folder}/{name}"

    def _gathered(self, clients: dict[str, str], recipes: Any) -> Path:
        """Gathers what this checkout has as a release has it. The image is packed once."""
        from linklab.places.guest import image, kernel, pack

        checkout = Path(self.root).parent
        files = [checkout / "build" / name for name in clients.values()]
        made = [image.cached("guest"), *map(kernel.cached, recipes), *map(Path.exists, files)]
        if not all(made):
            sys.exit(
                f"linklab: the wheel brings the client and the guest, which are not made yet: "
                f"`make wheel` in {checkout} makes them and the wheel"
            )
        directory = checkout / "build" / "wheel"
        directory.mkdir(exist_ok=True)
        for source, name in zip(files, clients, strict=True):
            shutil.copy(source, directory / name)
        pack.write(directory, recipes, preset=0)
        return directory
