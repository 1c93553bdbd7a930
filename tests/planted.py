"""Builds multilink with planted changes: regressions that must be found, and harmless changes."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from linklab.core.paths import REPOSITORY


@dataclass(frozen=True)
class Change:
    """An edit of multilink's source. `old`, which must occur once, becomes `new`."""

    file: str
    old: str
    new: str


REGRESSIONS = {
    "overlap at 95 % instead of 60 %": Change(
        "internal/cli/engine.go",
        "o.Overlap, o.Window, o.GiveUp = f.overlap, f.window, f.giveUp",
        "o.Overlap, o.Window, o.GiveUp = 0.95, f.window, f.giveUp",
    ),
    "a link that adopts another's connection": Change(
        "internal/download/connect.go",
        "\td.install(c, newSession(",
        "\tfor _, other := range d.connections {\n"
        "\t\tif other != c && other.session != nil {\n"
        "\t\t\tconn.Close()\n"
        "\t\t\tconn = other.session.Conn\n"
        "\t\t}\n"
        "\t}\n"
        "\td.install(c, newSession(",
    ),
    "fail-over lost": Change(
        "internal/download/choice.go",
        "\tworks := d.merged(each, now)\n\tfree := d.free()\n",
        "\tworks := d.merged(each, now)\n\tfree := d.free()\n"
        "\tif free == 0 {\n\t\treturn order{}\n\t}\n",
    ),
}

BENIGN = {
    "a log line more": Change(
        "internal/download/order.go",
        "\ts := c.session\n\ts.decision",
        '\td.Log.Warn("awaiting", "link", c.link.Name)\n\ts := c.session\n\ts.decision',
    ),
    "a clock read more": Change(
        "internal/download/order.go",
        "func (d *download) await(c *connection) {\n",
        "func (d *download) await(c *connection) {\n\ttime.Now()\n",
    ),
    "another map order": Change(
        "internal/download/download.go",
        "func (d *download) sample(now time.Duration) {\n\tfor _, l := range d.links {\n",
        "func (d *download) sample(now time.Duration) {\n"
        "\tbyName := map[string]*linkState{}\n"
        "\tfor _, l := range d.links {\n\t\tbyName[l.Name] = l\n\t}\n"
        "\tfor _, l := range byName {\n",
    ),
}


def build(directory: Path, *changes: Change) -> Path:
    """Builds multilink from a changed copy of its source. Returns the program's path. Raises
    AssertionError if the text to change is missing."""
    shutil.copytree(REPOSITORY / "client", directory / "client")
    shutil.copytree(REPOSITORY / "emulator" / "setup", directory / "emulator" / "setup")
    (directory / "emulator" / "linklab").symlink_to(REPOSITORY / "emulator" / "linklab")
    for change in changes:
        file = directory / "client" / change.file
        text = file.read_text()
        assert text.count(change.old) == 1, f"{change.file} does not have once: {change.old}"
        file.write_text(text.replace(change.old, change.new))
    program = directory / "multilink"
    done = subprocess.run(
        [directory / "emulator" / "setup" / "client", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return program
