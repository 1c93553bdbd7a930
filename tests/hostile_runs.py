"""Makes run directories that a stranger has changed: every value of every file, and the files
themselves."""

import functools
import itertools
import json
import operator
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from linklab.core.paths import PROFILES
from linklab.core.records import (
    FILES,
    EventRecord,
    LinkRecord,
    MachineRecord,
    ProcessRecord,
    QueueRecord,
    SubflowRecord,
    TrafficRecord,
    line,
)
from linklab.runs import beside_baseline, summary
from linklab.runs.beside_baseline import BesideBaseline, Movement
from run_directories import finished_run

_LARGE = 3 << 30
"""The bytes of a file that is nearly all hole."""

_RAW = "\0raw "
"""Begins a value that stands in a file without quotes, because JSON has no such value."""

HOSTILE: tuple[Any, ...] = (
    21_600,
    604_800,
    604_800 * 10**9,
    2**53,
    1e308,
    -1,
    -1e308,
    2**63,
    10**30,
    0,
    f"{_RAW}NaN",
    f"{_RAW}Infinity",
    f"{_RAW}1e999",
    "",
    "x",
    "\x1b]0;a\x07\u202eb",
    "y" * 300_000,
    None,
    True,
    [],
    {},
    [[[]]],
    f"{_RAW}{'[' * 5_000}",
)
"""The replacements of each value. The first four are the limits of some types."""


@dataclass(frozen=True)
class Change:
    """A change of one file of a run directory."""

    file: str
    what: str
    make: Callable[[Path], object]

    def __str__(self) -> str:
        return f"{self.file} {self.what}"[:120]


def whole_run(path: Path) -> Path:
    """Makes a run directory with every file that linklab reads."""
    run_dir = finished_run(path, "alg3", download_s=2.0)
    shutil.copy(PROFILES / "energy" / "galaxy-s7.yaml", run_dir / "energy.yaml")
    times = [n / 2 for n in range(6)]
    state: dict[str, Any] = {
        "up": True,
        "down_rate_bps": 60_000_000,
        "up_rate_bps": 20_000_000,
        "delay_s": 0.005,
        "jitter_s": 0.0,
        "loss_ratio": 0.001,
        "access_point": "one",
        "signal_dbm": -60.0,
        "late_s": 0.0,
    }
    made: list[Any] = []
    for link, t_s in itertools.product(("wifi", "lte"), times):
        made.append(LinkRecord(t_s=t_s, link=link, **state))
        for direction, each in (("down", 2_500_000), ("up", 50_000)):
            counted = {
                "t_s": t_s,
                "link": link,
                "direction": direction,
                "sent_bytes": round(t_s * each),
                "queue_bytes": 0,
                "dropped_packets": 1,
                "lost_packets": 1,
            }
            made.append(msgspec.convert(counted, QueueRecord))
        made.append(EventRecord(t_s, link, "rrc", "idle"))
        made.append(
            SubflowRecord(
                t_s=t_s, link=link, connection=1, endpoint=1, port=443, state="open", rtt_s=0.1
            )
        )
    flow: dict[str, Any] = {"t_s": 2.5, "direction": "up", "from_s": 0.5, "to_s": 2.0}
    delays: dict[str, Any] = {f"delay_p{n}_s": n / 1e3 for n in (50, 95, 99)}
    calls = {"sent_packets": 100, "lost_packets": 1, **delays}
    pages = {"pages": 2, **{f"page_p{n}_s": n / 1e2 for n in (50, 95, 99)}}
    for number, (link, sends, own) in enumerate(
        (("wifi", "call", calls), ("lte", "web", pages)), 1
    ):
        made.append(
            TrafficRecord(flow=number, link=link, kind=sends, received_bytes=9000, **flow, **own)
        )
    for t_s in times:
        made.append(MachineRecord(t_s, 0.5))
        for process in ("client", "server"):
            made.append(ProcessRecord(t_s=t_s, process=process, cpu_s=t_s / 9, rss_bytes=1 << 24))
    for kind, name in FILES.items():
        records = [one for one in made if isinstance(one, kind)]
        if records:
            (run_dir / name).write_bytes(b"".join(map(line, records)))
    _client(run_dir / "client.jsonl")
    movement = Movement("download_s", 2.0, 2.1, 0.5)
    beside_baseline.write(run_dir, BesideBaseline("default", (movement,)))
    summary.write(run_dir)
    return run_dir


def _client(file: Path) -> None:
    devices = [{"link": "wifi", "device": "wlan0"}, {"link": "lte", "device": "rmnet0"}]
    options = {"bandwidth_bps": {"wifi": 6e7}, "window_ns": 10**9, "padding": 0.1, "overlap": 0.1}
    events: list[dict[str, Any]] = [
        {"t_ns": 0, "event": "start", "algorithm": "alg3", "links": devices, "options": options},
        {"t_ns": 1, "event": "size", "link": "wifi", "bytes": 10_000_000, "resumed_bytes": 0},
    ]
    for number, link in enumerate(("wifi", "lte"), 1):
        own = {"link": link, "id": number}
        events += [
            {
                "t_ns": 10**7,
                "event": "request",
                **own,
                "offset": 0,
                "length": 5_000_000,
                "from": "lte",
            },
            {"t_ns": 10**8, "event": "first_byte", **own, "bytes": 1},
            *(
                {
                    "t_ns": n * 10**8,
                    "event": "sample",
                    "link": link,
                    "rtt_ns": 10**7,
                    "received_bytes": n * 250_000,
                    "throughput_bps": 2e7,
                    "min_rtt_ns": 10**7,
                    "in_flight": 1,
                    "segments": n * 200,
                    "out_of_order": n,
                }
                for n in range(2, 20)
            ),
            {"t_ns": 2 * 10**9, "event": "end", **own, "bytes": 5_000_000, "outcome": "complete"},
        ]
    events.sort(key=lambda one: int(one["t_ns"]))
    events.append(
        {"t_ns": 2 * 10**9, "event": "done", "outcome": "complete", "download_ns": 2 * 10**9}
    )
    file.write_text("".join(json.dumps(one) + "\n" for one in events))


def changes(run_dir: Path) -> Iterator[Change]:
    """Yields all changes of the files of a run directory."""
    for file in sorted(run_dir.iterdir()):
        name = file.name
        if file.suffix not in (".json", ".jsonl"):
            yield from _of_text(name, file.read_text())
        else:
            lines = [file.read_text()] if file.suffix == ".json" else file.read_text().splitlines()
            seen: set[tuple[str, ...]] = set()
            for index, text in enumerate(lines):
                document = json.loads(text)
                for path in _leaves(document):
                    shape = (str(document.get("event", "")), *(str(key) for key in path))
                    if shape not in seen:
                        seen.add(shape)
                        yield from _of_value(name, lines, index, document, path)
        yield from _of_file(name)


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the paths of all values, including mappings and lists."""
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    if path:
        yield path
    for key, one in inside:
        yield from _leaves(one, (*path, key))


def _of_value(
    name: str, lines: list[str], index: int, document: Any, path: tuple[Any, ...]
) -> Iterator[Change]:
    where = f":{index + 1} {'.'.join(map(str, path))}"

    def change(what: str, edit: Callable[[Any, Any], None]) -> Change:
        def make(file: Path) -> None:
            copy = json.loads(json.dumps(document))
            holder = copy
            for key in path[:-1]:
                holder = holder[key]
            edit(holder, path[-1])
            file.write_text("\n".join([*lines[:index], _text(copy), *lines[index + 1 :]]) + "\n")

        return Change(name, f"{where} {what}", make)

    for hostile in HOSTILE:
        yield change(f"= {hostile!r}", functools.partial(_put, hostile))
    yield change("left out", operator.delitem)


def _put(hostile: Any, holder: Any, key: Any) -> None:
    holder[key] = hostile


def _text(value: Any) -> str:
    raw: list[str] = []

    def marked(one: Any) -> Any:
        if isinstance(one, str) and one.startswith(_RAW):
            raw.append(one.removeprefix(_RAW))
            return f"@raw{len(raw) - 1}@"
        if isinstance(one, dict):
            return {key: marked(inside) for key, inside in one.items()}
        return [marked(inside) for inside in one] if isinstance(one, list) else one

    text = json.dumps(marked(value))
    for index, one in enumerate(raw):
        text = text.replace(f'"@raw{index}@"', one)
    return text


def _of_text(name: str, text: str) -> Iterator[Change]:
    """Yields changes of a YAML file. `schema` limits its values, so a few are enough."""
    lines = text.splitlines()
    for index, one in enumerate(lines):
        key, colon, _ = one.partition(": ")
        for hostile in ("1e308", ".nan", "-1", "''", '"\\e[31m"') if colon else ():
            other = "\n".join([*lines[:index], f"{key}: {hostile}", *lines[index + 1 :]])
            yield Change(name, f":{index + 1} = {hostile}", functools.partial(_write, other))


def _write(content: str, file: Path) -> None:
    file.write_text(content)


def _replaced(make: Callable[[Path], object]) -> Callable[[Path], object]:
    """Returns a change that makes something in the place of a file."""

    def replace(file: Path) -> None:
        file.unlink()
        make(file)

    return replace


def _hole(file: Path) -> None:
    file.write_bytes(b"")
    os.truncate(file, _LARGE)


def _of_file(name: str) -> Iterator[Change]:
    made: dict[str, Callable[[Path], object]] = {
        "cut": lambda file: os.truncate(file, file.stat().st_size * 2 // 3),
        "twice": lambda file: file.write_bytes(file.read_bytes() * 2),
        "backwards": lambda file: _write("".join(file.read_text().splitlines(True)[::-1]), file),
        "sparse": lambda file: os.truncate(file, _LARGE),
        "sparse_first": _hole,
        "long_line": lambda file: file.write_text('{"t_s": "' + "z" * (3 << 20) + '"}\n'),
        "bytes_only": lambda file: file.write_bytes(b"\xff\xfe\x00\n" * 100),
        "link": _replaced(lambda file: file.symlink_to("/dev/zero")),
        "pipe": _replaced(os.mkfifo),
        "directory": _replaced(Path.mkdir),
        "empty": lambda file: file.write_bytes(b""),
        "unlink": Path.unlink,
    }
    for what, make in made.items():
        yield Change(name, what, make)


def changed(run_dir: Path, copy: Path, change: Change) -> Path:
    """Copies a run directory with one change."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run_dir, copy)
    change.make(copy / change.file)
    return copy
