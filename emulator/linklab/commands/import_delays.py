"""Implements `linklab import --distribution`: makes a table of delays that netem plays, or copies one."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import linklab
from linklab.commands.options import UsageError
from linklab.core import units, whole_file
from linklab.importers import importing
from linklab.importers.format import Options
from linklab.models import delay_tables
from linklab.models.impairments import DISTRIBUTION_NAME, MAX_JITTER_S
from linklab.schema import document
from linklab.schema.document import Limits, ScenarioError
from linklab.traces.trace import TraceError

_FINE_S: Final = 0.001
"""The length of a sample, so that every probe of ping has its own."""

_NUMBERS: Final = re.compile(r"-?\d+(?:\s+-?\d+)*")


@dataclass(frozen=True, slots=True)
class _Made:
    """A table and the keys that play it. A table alone does not tell them."""

    text: str
    entries: int
    rtt_s: float | None = None
    delay_s: float | None = None
    jitter_s: float | None = None
    cut_ratio: float = 0.0


def run(arguments: argparse.Namespace, options: Options) -> int:
    """Writes the table. Raises UsageError if that is not possible."""
    file: Path = arguments.files[0]
    output: Path = arguments.distribution
    try:
        name = DISTRIBUTION_NAME.parse(output.stem)
    except ValueError as error:
        raise UsageError(f"--distribution {output}: {error}, and .dist") from error
    if output.suffix != ".dist":
        raise UsageError(f"--distribution {output}: allowed is a name with .dist")
    if output.exists() and not arguments.force:
        raise UsageError(f"{output}: exists; allowed: another name, or --force")
    try:
        made = _copied(file, options) if _is_table(file) else _measured(file, options)
        whole_file.write(output, made.text.encode())
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from error
    except (TraceError, ScenarioError) as error:
        raise UsageError(str(error)) from error
    keys = _keys(made, name, output)
    if arguments.json:
        said = {"destination": str(output), "entries": made.entries, "keys": keys}
        print(json.dumps(said, indent=2))
    else:
        print(f"{output}: {made.entries} delays of {file}")
        print("\n".join(keys))
        if made.cut_ratio:
            print(
                f"note: delays beyond 1 s of the mean are cut, {made.cut_ratio * 100:.2g} % of the time"
            )
    return 0


def _is_table(file: Path) -> bool:
    """Tells whether a file is a table already: numbers apart by spaces, and some of them negative.

    Mahimahi's traces are numbers, too. Lines of ping begin with a number. A pipe cannot be read twice,
    so it counts as a recording.
    """
    if file.exists() and not file.is_file():
        return False
    with file.open("rb") as opened:
        head = opened.read(1 << 12).decode("utf-8", "replace")
    lines = [text for line in head.splitlines() if (text := line.partition("#")[0].strip())]
    return bool(lines) and _NUMBERS.fullmatch(lines[0]) is not None and "-" in "".join(lines)


def _copied(file: Path, options: Options) -> _Made:
    text = document.read(file, str(file), Limits(delay_tables.MOST_BYTES, 0))
    try:
        table = delay_tables.parse(text, str(file))
    except ValueError as error:
        raise UsageError(str(error)) from error
    said = [line[1:].strip() for line in text.splitlines() if line.startswith("#")]
    has_licence = not options.licence and any(line.startswith("licence:") for line in said)
    comments = [*_comments(file, options)[has_licence:], *said]
    return _Made(delay_tables.written(table, comments), len(table.entries))


def _measured(file: Path, options: Options) -> _Made:
    bin_s = _FINE_S if options.bin_s is None else options.bin_s
    fine = replace(options, bin_s=bin_s, keep=("rtt",))
    samples = importing.samples(file, fine)
    delays = [(one.rtt_s, one.length_ns) for one in samples if one.rtt_s is not None]
    try:
        found = delay_tables.measured(delays, MAX_JITTER_S)
    except ValueError as error:
        raise UsageError(f"{file}: {error}") from error
    rtt_s, delay_s, jitter_s = (
        round(value, 6) for value in (found.least_s, found.delay_s, found.jitter_s)
    )
    comments = [
        *_comments(file, options),
        f"round trips of {units.format_duration(rtt_s)} and more",
        f"delay {units.format_duration(delay_s)}, jitter {units.format_duration(jitter_s)}",
    ]
    text = delay_tables.written(found.table, comments)
    return _Made(text, len(found.table.entries), rtt_s, delay_s, jitter_s, found.cut_ratio)


def _comments(file: Path, options: Options) -> list[str]:
    return [
        f"licence: {options.licence or 'that of the source'}",
        f"imported from: {file.name}, by linklab {linklab.__version__}",
    ]


def _keys(made: _Made, name: str, output: Path) -> list[str]:
    """Returns the lines of a scenario that play the table."""
    lines = [f"distributions: {{{name}: ./{output.name}}}"]
    if made.rtt_s is None or made.delay_s is None or made.jitter_s is None:
        return [*lines, f"impair_down: {{delay: …, jitter: …, distribution: {name}}}"]
    delay, jitter = units.format_duration(made.delay_s), units.format_duration(made.jitter_s)
    return [
        *lines,
        f"rtt: {units.format_duration(made.rtt_s)}",
        f"impair_down: {{delay: {delay}, jitter: {jitter}, distribution: {name}}}",
    ]
