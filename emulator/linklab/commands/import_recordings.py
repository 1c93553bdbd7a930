"""Implements `linklab import --scenario`: turns recorded downloads into a scenario."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from linklab.commands.options import UsageError
from linklab.core.link_kinds import KINDS, LinkKind, either, kind_of, link_name
from linklab.field import files, making, recording
from linklab.field.making import Made, MakingError
from linklab.field.recording import Recording, RecordingError
from linklab.scenario import Scenario
from linklab.scenario.name import FORM


def run(options: argparse.Namespace, not_for_scenarios: Sequence[str]) -> int:
    """Imports recordings. Raises UsageError if that is not possible."""
    if not_for_scenarios:
        raise UsageError(f"{not_for_scenarios[0]}: does not go with --scenario; allowed: --kind")
    file: Path = options.scenario
    if file.suffix != ".yaml" or not FORM.fullmatch(file.stem):
        raise UsageError(
            f"--scenario {file}: is no name of a scenario; allowed: up to 64 of a-z, 0-9 and '-', "
            "and .yaml, such as drive.yaml"
        )
    try:
        recordings = _read(options.files)
        made = making.scenario(file.stem, recordings, kinds_of(recordings, options.kind))
        sources = [path.name or str(path) for path in options.files]
        scenario = files.write(made, file, sources, overwrite=options.force)
    except (RecordingError, MakingError) as error:
        raise UsageError(str(error)) from error
    if options.json:
        print(json.dumps(_as_json(file, made, recordings), indent=2))
    else:
        _show(file, scenario, made, recordings)
    return 0


def _read(files: Sequence[Path]) -> list[Recording]:
    """Reads run directories and captures. Raises RecordingError, OSError."""
    for file in files:
        if not file.exists():
            raise RecordingError(
                f"{file}: is not there; needed: run directories of downloads, or files of tcpdump"
            )
    captures = [file for file in files if file.is_file()]
    made = [recording.read(file) for file in files if file not in captures]
    if not captures:
        return made
    from linklab.field import capture  # dpkt is slow to load.

    for file in captures:
        if not capture.is_capture(file):
            what = "is no capture" if file.stat().st_size else "is empty"
            raise RecordingError(
                f"{file}: {what}; allowed: run directories of downloads, and files of tcpdump"
            )
    return [*made, *capture.read(captures)]


def kinds_of(recordings: Iterable[Recording], given: Iterable[str]) -> dict[str, LinkKind]:
    """Returns the kind of each link, as given, or from its name or device. Raises UsageError."""
    told: dict[str, LinkKind] = {}
    for text in given:
        name, _, word = text.partition("=")
        if word not in KINDS:
            raise UsageError(f"--kind {text}: allowed is LINK=KIND, with {either(KINDS)}")
        told[name] = KINDS[word]
    found: dict[str, LinkKind] = {}
    for one in (history for recorded in recordings for history in recorded.histories):
        try:
            link_name(one.link)
        except ValueError as error:
            raise UsageError(
                f"link {one.link!r}: {error}; `multilink get --link NAME=DEVICE` names it"
            ) from error
        kind = told.get(one.link) or kind_of(one.link, one.device)
        if kind is None:
            raise UsageError(
                f"link {one.link!r} of {one.device!r}: is it {either(KINDS)}? "
                f"Needed: --kind {one.link}=KIND"
            )
        found[one.link] = kind
    for link in told:
        if link not in found:
            raise UsageError(
                f"--kind {link}: no such link was recorded; there are {', '.join(found)}"
            )
    return found


def _show(file: Path, scenario: Scenario, made: Made, recordings: Sequence[Recording]) -> None:
    count = len(recordings)
    print(f"{file}: {len(scenario.links)} links of {count} recording{'' if count == 1 else 's'}")
    for name, link in scenario.links.items():
        print(
            f"{name:<12}mean {link.down_rate_bps / 1e6:.2f} Mbit/s, round trip "
            f"{link.rtt_s * 1e3:.1f} ms, queue {link.queue_down_bytes / 1e3:.0f} kB"
        )
    for note in made.notes:
        print(f"note: {note}")
    who = recordings[0].contestant
    if who:
        print(f"the same again: linklab run {file} -a {who}")


def _as_json(file: Path, made: Made, recordings: Sequence[Recording]) -> dict[str, object]:
    return {
        "scenario": str(file),
        "traces": list(made.traces),
        "recordings": [
            {"source": one.source, "contestant": one.contestant, "download_s": one.length_s}
            for one in recordings
        ],
        "links": {
            link: [asdict(one.capacity) for one in seen]
            for link, seen in making.links_of(recordings).items()
        },
        "notes": made.notes,
    }
