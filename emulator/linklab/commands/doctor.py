"""Implements `linklab doctor`: checks this machine and says how to fix what fails."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from linklab.commands.options import add
from linklab.core.paths import MULTILINK, cache_dir
from linklab.places import choice, host_programs
from linklab.places.emulated import qemu
from linklab.places.guest import confinement, image, image_root, kernel, release
from linklab.places.guest.boot import memory_directory
from linklab.places.guest.ending import GuestError
from linklab.runs import clients
from linklab.runs.clients import USUAL_LINKS, missing_packages, peers


@dataclass(frozen=True)
class Finding:
    """Holds one result. `needed` tells whether every run depends on it."""

    what: str
    fine: bool
    words: str
    needed: bool = True


_PURPOSES: dict[host_programs.Use, str] = {
    "every run": "",
    "host place": ", for the host place",
    "outside": ", for --origin, --outside and --listen-proxy",
}
_GUEST_GB, _PAYLOAD_GB = 3, 1
"""What the cache takes with the guest, and without it."""


def _system() -> str:
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
    except OSError:
        return platform.platform()
    names = dict(line.split("=", 1) for line in lines if "=" in line)
    return names.get("PRETTY_NAME", "").strip('"') + f", {platform.machine()}"


def _coming() -> tuple[bool, str]:
    """Tells whether the first run gets the guest's image and kernels, and how or why not."""
    if image.IN_WHEEL.exists():
        return True, "the first run unpacks it from the wheel"
    try:
        if release.address() is not None:
            return True, f"the first run fetches it ({release.RELEASE})"
    except release.ReleaseError as error:
        return False, str(error)
    refused = image_root.obstacle()
    return refused is None, refused or "the first run makes it, in minutes"


def _install(package: str) -> str:
    """Returns how to install a missing Debian package."""
    if package == "h2o":
        return "Debian 12 has h2o, 13 and later have not"
    return f"{'apt-get ' if shutil.which('apt-get') else ''}install {package}"


def findings() -> Iterator[Finding]:
    """Yields all results, the cheapest checks first."""
    yield Finding("system", True, f"{_system()}, Linux {platform.release()}")
    cores = len(os.sched_getaffinity(0))
    yield Finding("cores", True, f"{cores}: as many guests side by side")
    yield from _packages("every run", "host place")
    client = clients.client_obstacle()
    yield Finding("client", client is None, client or str(MULTILINK))
    yield _guest()
    yield _emulated()
    if choice.guest_obstacle() is None:
        around = confinement.fence()
        yield Finding("confinement", around.name != "none", around.words, needed=False)
    host = choice.host_obstacle()
    yield Finding("host place", host is None, host or "root, namespaces and netem", needed=False)
    yield from _packages("outside")
    for package in missing_packages(peers(USUAL_LINKS)):
        words = f"missing, for the host place and `exec`: {_install(package)}"
        yield Finding(package, False, words, needed=False)
    free = shutil.disk_usage(_existing(cache_dir())).free
    needed = _GUEST_GB if choice.guest_obstacle() is None else _PAYLOAD_GB
    words = f"{cache_dir()}, {free / 1e9:.0f} GB free ({needed} needed)"
    yield Finding("cache", free > needed * 1e9, words)


def _guest() -> Finding:
    """Tells whether guests can run, and where image and kernel are or come from."""
    refused = choice.guest_obstacle()
    kernels = kernel.RECIPES if choice.is_emulated() else (kernel.GUEST,)
    words = f"{kernel.cached()}, {image.cached('guest')}"
    if refused is None and (image.cached("guest") is None or not all(map(kernel.cached, kernels))):
        lacks = "its image" if image.cached("guest") is None else "its kernel"
        is_coming, how = _coming()
        words = f"{lacks} is not made yet: {how}"
        refused = None if is_coming else words
    try:
        words += f", memory in {memory_directory()}"
    except GuestError as error:
        refused = refused or str(error)
    return Finding("guest place", refused is None, refused or words, needed=False)


def _packages(*uses: host_programs.Use) -> Iterator[Finding]:
    """Looks for the programs of these uses, package by package."""
    programs = [one for one in host_programs.PROGRAMS if one.use in uses]
    for package in dict.fromkeys(one.package for one in programs):
        of_package = [one for one in programs if one.package == package]
        first = of_package[0]
        for one in of_package:
            why = host_programs.obstacle(one)
            if why is None:
                continue
            what = "" if one is first else f"{one.name} "
            remedy = _install(package)
            words = f"{what}{why}{_PURPOSES[one.use]}: {remedy}"
            yield Finding(package, False, words, one.use == "every run")
            break
        else:
            yield Finding(package, True, shutil.which(first.name) or first.name)


def _verdict(usable: bool, guest: bool, host: bool) -> str:
    """Returns the last line: what can run here."""
    if not usable:
        return "no lab can run here yet: see NO and - above"
    if not guest:
        return "labs can run here on the host, in real time: their figures do not repeat exactly"
    return "labs can run here" if host else "labs can run here, in the guest"


def _emulated() -> Finding:
    """Tells whether guests could run on an emulated processor."""
    missing = choice.emulation_obstacle()
    if missing is not None:
        return Finding("emulation", False, f"for another processor than x86-64: {missing}", False)
    when = choice.native_obstacle() or "--processor emulated"
    words = f"{qemu.find()}, about {choice.SLOWER} times slower ({when})"
    return Finding("emulation", True, words, needed=False)


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)


def add_options(parser: argparse.ArgumentParser) -> None:
    add(parser, "--json")


def run(options: argparse.Namespace) -> int:
    """Prints the results. Returns 0 if the guest or the host can run a lab, else 1."""
    found = list(findings())
    places = [finding for finding in found if finding.what.endswith(" place")]
    usable = all(one.fine for one in found if one.needed) and any(one.fine for one in places)
    if options.json:
        print(json.dumps({"usable": usable, "findings": [asdict(one) for one in found]}, indent=2))
    else:
        for one in found:
            words = f"{'ok ' if one.fine else 'NO ' if one.needed else '-  '} {one.what:<12} {one.words}"
            print(
                textwrap.fill(
                    words,
                    shutil.get_terminal_size().columns,
                    subsequent_indent=" " * 17,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            )
        print(f"\n{_verdict(usable, *(one.fine for one in places))}")
    return 0 if usable else 1
