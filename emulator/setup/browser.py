"""Puts Debian's Chromium and Caddy into DIRECTORY, and there a program `chromium` that starts it. For tests.

Needs Python alone and no rights: the packages of browser.lock are unpacked, and their scripts are not
run. They have all libraries but the C library, which has to be that of Debian 12 or a newer one.
Fonts are those of the packages, so that pages have the same widths on every machine. 124 MB are
fetched.
usage: browser.py DIRECTORY
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from linklab.core.error_report import report_error
from linklab.display.parts import Parts, Progress
from linklab.places.guest import deb, download, locked

LOCK = Path(__file__).with_name("browser.lock")
PROGRAM = """\
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")
libraries=$root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries:$libraries/pulseaudio FONTCONFIG_FILE=$root/fonts.conf
exec "$root/usr/lib/chromium/chromium-headless-shell" "$@"
"""
FONTS = """\
<?xml version="1.0"?>
<fontconfig><dir prefix="relative">usr/share/fonts</dir></fontconfig>
"""


def make(root: Path, packages: Path, show: Progress) -> None:
    """Makes the browser's directory. Raises DownloadError, DebError and OSError."""
    lock = locked.parse(LOCK.read_text())
    wanted = lock.packages["browser"]
    there, total = 0, sum(one.size_bytes for one in wanted)

    def fetched(size_bytes: int) -> None:
        nonlocal there
        there += size_bytes
        show(f"fetching {there / 1e6:.0f} of {total / 1e6:.0f} MB", 0.7 * there / total)

    download.fetch(wanted, lock.snapshot, packages, fetched)
    deb.link_merged(root)
    for count, one in enumerate(wanted, 1):
        deb.unpack(packages / one.file_name, root)
        show(f"unpacking, {count} of {len(wanted)} packages", 0.7 + 0.29 * count / len(wanted))
    (root / "fonts.conf").write_text(FONTS)
    (root / "chromium").write_text(PROGRAM)
    (root / "chromium").chmod(0o755)


def main(directory: Path) -> int:
    """Makes the directory anew if the lock has changed. If that fails, tests look for another browser."""
    if platform.machine() != "x86_64":
        return 0
    made_of = f"{LOCK.read_text()}{PROGRAM}{FONTS}"
    try:
        if not (directory / "lock").exists() or (directory / "lock").read_text() != made_of:
            shutil.rmtree(directory, ignore_errors=True)
            (directory / "packages").mkdir(parents=True)
            with Parts() as parts:
                show = parts.part("Chromium")
                make(directory, directory / "packages", show)
                show("finished", 1)
            shutil.rmtree(directory / "packages")
            (directory / "lock").write_text(made_of)
        subprocess.run([directory / "chromium", "--version"], check=True, capture_output=True)
    except (download.DownloadError, deb.DebError, OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(directory, ignore_errors=True)
        report_error(f"no Chromium, so its tests look for another browser: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
