"""Makes tables of many runs: a row for each run, link, request or sample.

The first columns of every table identify the run: `run` (the directory's name), `scenario`,
`contestant`, `seed`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from linklab.analysis.run import LoadError, Run, find_runs
from linklab.core import extras, whole_file
from linklab.energy.account import LinkEnergyFigures
from linklab.runs import queue_figures
from linklab.runs.figures import ENERGY_FIGURES, RUN_FIGURES

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]


_LINK_ENERGY = tuple(one.name for one in fields(LinkEnergyFigures))


def _runs(run: Run) -> Iterator[Row]:
    """Yields the run's figures. If the run failed, they are empty and `error` says why.

    Figures of energy are empty if the run has no energy model.
    """
    made, figures = run.job, run.figures
    energy = figures.energy if figures else None
    yield {
        "place": made.place if made else "field",
        "clock": made.clock if made else "real",
        "size_bytes": figures.carried_bytes if figures else None,
        **{one.key: one.of(figures) if figures else None for one in RUN_FIGURES},
        "energy_model": energy.model if energy else None,
        **{one.key: one.of(energy) if energy else None for one in ENERGY_FIGURES},
        "error": run.error,
        "started_at": made.started_at if made else None,
        "revision": made.versions.get("revision") if made else None,
        "guest_image": made.versions.get("guest_image") if made else None,
        "guest_kernel": made.versions.get("guest_kernel") if made else None,
        "multilink": made.versions.get("multilink") if made else None,
    }


def _links(run: Run) -> Iterator[Row]:
    """Yields the links' figures of a successful run, with energy if the run has an energy model."""
    if run.figures is not None:
        energies = run.figures.energy.links if run.figures.energy else {}
        for name, link in run.figures.links.items():
            cost = {one: getattr(energies.get(name), one, None) for one in _LINK_ENERGY}
            yield {"link": name, **asdict(link), **cost}


def _processes(run: Run) -> Iterator[Row]:
    """Yields the samples of client's and server's processor time and memory; none in virtual time."""
    for process, looked in ((run.figures and run.figures.processes) or {}).items():
        for every, figures in looked.items():
            yield {"process": process, "every": every, **asdict(figures)}


def _queues(run: Run) -> Iterator[Row]:
    """Yields the figures of each link's queues: marks, drops by reason, sojourn times."""
    for link, queues in ((run.figures and run.figures.queues) or {}).items():
        for direction, one in queues.items():
            known = one.flat()
            yield {
                "link": link,
                "direction": direction,
                **{name: known.get(name) for name in queue_figures.NAMES},
            }


def _traffic(run: Run) -> Iterator[Row]:
    """Yields the figures of each flow of other hosts."""
    for one in (run.figures and run.figures.traffic) or []:
        yield asdict(one)


def _clients(run: Run) -> Iterator[Row]:
    """Yields the figures of each of several clients."""
    for one in (run.figures and run.figures.clients) or []:
        yield {"client": one.client, "algorithm": one.algorithm, **one.flat()}


def _shares(run: Run) -> Iterator[Row]:
    """Yields the rate and the share of each who uses a shared link."""
    for link, one in ((run.figures and run.figures.shares) or {}).items():
        for who, share in one.shares.items():
            rate = one.rates_bps[who]
            yield {"link": link, "who": who, "rate_bps": rate, "share": share, "jain": one.jain}


def _power(run: Run) -> Iterator[Row]:
    """Yields the device's power: the total (`link` is empty), and for each link."""
    for one in run.power:
        for link, power_w in ((None, one.power_w), *one.links_w.items()):
            yield {"t_s": one.t_s, "length_s": one.length_s, "link": link, "power_w": power_w}


def _workload(run: Run) -> Iterator[Row]:
    """Yields a workload's figures; none for a file download."""
    for key, value in ((run.figures.workload if run.figures else None) or {}).items():
        yield {"figure": key, "value": value}


TABLES: dict[str, Callable[[Run], Iterable[Any]]] = {
    "runs": _runs,
    "links": _links,
    "workload": _workload,
    "requests": lambda run: run.requests,
    "samples": lambda run: run.samples,
    "states": lambda run: run.states,
    "queues": lambda run: run.queues,
    "queue-figures": _queues,
    "traffic": _traffic,
    "clients": _clients,
    "shares": _shares,
    "events": lambda run: run.events,
    "power": _power,
    "processes": _processes,
    "process-samples": lambda run: run.process_samples,
}
"""The tables, each with the function that gives a run's rows."""


def _plain(row: Any) -> Row:
    if isinstance(row, dict):
        return row
    return (
        asdict(row)
        if is_dataclass(row) and not isinstance(row, type)
        else msgspec.structs.asdict(row)
    )


@dataclass(frozen=True)
class Runs(Sequence[Run]):
    """Several runs. `rows` and `frame` make one table of all."""

    _runs: tuple[Run, ...]

    def __getitem__(self, index: Any) -> Any:
        return self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    def rows(self, table: str = "runs") -> Iterator[Row]:
        """Yields the rows of a table of TABLES. Raises LoadError."""
        if table not in TABLES:
            raise LoadError(f"no table {table!r}; allowed: {', '.join(TABLES)}")
        for run in self._runs:
            whose = {
                "run": run.name,
                "scenario": run.job.scenario if run.job else None,
                "contestant": run.contestant,
                "seed": run.job.seed if run.job else None,
            }
            for row in TABLES[table](run):
                yield whose | _plain(row)

    def frame(self, table: str = "runs") -> pandas.DataFrame:
        """Returns the table as a pandas DataFrame. Raises LoadError, ImportError without pandas."""
        import pandas  # linklab does not require pandas.

        return pandas.DataFrame(list(self.rows(table)))


def load(*paths: str | Path) -> Runs:
    """Loads the runs at and below these directories. Raises LoadError."""
    return Runs(tuple(run for path in paths for run in find_runs(Path(path))))


def write_csv(rows: Iterable[Row], path: Path) -> int:
    """Writes rows as CSV with a header; None is an empty field. Returns their number. Raises OSError."""
    written = 0
    with whole_file.replacing(path) as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="", write_through=True)
        writer: csv.DictWriter[str] | None = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(text, list(row))
                writer.writeheader()
            writer.writerow(row)
            written += 1
        text.flush()
        text.detach()
    return written


def write_parquet(rows: Iterable[Row], path: Path) -> int:
    """Writes rows as Parquet, and returns their number. Raises OSError, MissingExtra."""
    extras.require("export", "Parquet")
    import pyarrow  # pyarrow is slow to load and only needed for Parquet.
    from pyarrow import parquet

    table = pyarrow.Table.from_pylist(list(rows))
    with whole_file.replacing(path) as file:
        parquet.write_table(table, file, compression="zstd")
    return int(table.num_rows)


FORMATS: dict[str, Callable[[Iterable[Row], Path], int]] = {
    ".csv": write_csv,
    ".parquet": write_parquet,
}
"""The function that writes a file, by the ending of the file's name."""
