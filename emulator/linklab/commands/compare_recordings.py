"""Implements `linklab compare DIR`: compares recorded downloads with the lab's, over links made
from the recordings."""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from linklab.api import requests
from linklab.commands import import_recordings, report, running
from linklab.commands.options import UsageError
from linklab.core.scratch import scratch_prefix
from linklab.display import printing
from linklab.field import files, making, prediction, recording
from linklab.field.making import MakingError
from linklab.field.prediction import Prediction
from linklab.field.recording import Recording, RecordingError
from linklab.report import predictions, tables
from linklab.scenario import Scenario


def run(options: argparse.Namespace) -> int:
    """Runs each recording's client, and those of `-a`, over the recording's links. Returns 1 if any
    run failed."""
    recordings = [_read(Path(name)) for name in options.scenarios]
    with _made(recordings, options.kind) as scenarios:
        plan = [
            (scenario, list(dict.fromkeys([one.contestant, *_named(options, scenario)])))
            for one, scenario in zip(recordings, scenarios, strict=True)
        ]
        series = running.run_plan(plan, options)
    found: dict[str, tuple[Scenario, Prediction]] = {}
    for one, scenario in zip(recordings, scenarios, strict=True):
        same = [
            recording.read(series.parent / request.label)
            for request, result in series.results
            if request.scenario == scenario
            and request.client_name == one.contestant
            and not isinstance(result, str)
        ]
        if same:
            found[one.source] = (scenario, prediction.beside(one, same))
    comparisons = [series.comparison(scenario, names) for scenario, names in plan]
    if options.json:
        beside = [
            predictions.to_json(source, made, scenario.description)
            for source, (scenario, made) in found.items()
        ]
        compared = [tables.to_json(all_rows) for all_rows in comparisons]
        said = {**running.to_json(series, options), "predictions": beside, "comparisons": compared}
        print(json.dumps(said, indent=2))
    else:
        console = printing.console()
        for source, (scenario, made) in found.items():
            console.print(predictions.table(source, made, scenario.description))
        for all_rows in comparisons:
            if len(all_rows.rows) > 1 or series.failures:
                tables.show(all_rows, console)
        print(running.in_one_line(series, options))
    report.of_directories([series.parent], options.report, predictions=found)
    return 1 if series.failures else 0


def _read(directory: Path) -> Recording:
    """Reads a recorded download by a client that the lab has. Raises UsageError."""
    if not recording.is_in(directory):
        raise UsageError(
            f"{directory}: is no recording of a download; allowed: scenarios alone, or recordings alone"
        )
    try:
        found = recording.read(directory)
    except RecordingError as error:
        raise UsageError(str(error)) from error
    if not found.is_complete:
        raise UsageError(
            f"{directory}: the recorded download is not complete, so there is nothing to compare with; "
            "allowed: `linklab import --scenario`, which makes a scenario of it"
        )
    if not found.contestant:
        raise UsageError(f"{directory}: nobody in the lab does what was recorded there")
    return found


def _named(options: argparse.Namespace, scenario: Scenario) -> Sequence[str]:
    return () if options.algorithms is None else requests.clients_of(options.algorithms, scenario)


@contextmanager
def _made(recordings: Sequence[Recording], kinds: Sequence[str]) -> Iterator[list[Scenario]]:
    """Yields a scenario for each recording, named like its directory, while the block lasts. Raises
    UsageError."""
    with tempfile.TemporaryDirectory(prefix=scratch_prefix("field")) as scratch:
        scenarios: list[Scenario] = []
        for one in recordings:
            name = _name(Path(one.source), [scenario.name for scenario in scenarios])
            try:
                made = making.scenario(name, [one], import_recordings.kinds_of([one], kinds))
            except MakingError as error:
                raise UsageError(str(error)) from error
            scenarios.append(files.write(made, Path(scratch, f"{name}.yaml"), [one.source]))
        yield scenarios


def _name(directory: Path, taken: Sequence[str]) -> str:
    """Returns a scenario name made from a directory's name."""
    words = re.findall("[a-z0-9]+", directory.resolve().name.lower())
    name = f"recorded-{'-'.join(words)}"[:56].strip("-")
    return name if name not in taken else f"{name}-{len(taken) + 1}"
