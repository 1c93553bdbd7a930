"""Makes the documents' tables of measured figures anew, by the line that stands above each.

.venv/bin/python emulator/handbook/tables.py [NAME…]

Above a table stands `<!-- table NAME: FIGURE of SCENARIO,… by CLIENT,… seeds N -->`. FIGURE is one of
`FIGURES`. Below the table stand the revision that made it, and a hash of what decides its figures. A table is stale if that hash
is another one now. Dates do not matter.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from linklab import scenario as scenarios
from linklab.core.paths import REPOSITORY
from linklab.core.version import own_version
from linklab.links import oracle
from linklab.places.guest import image, kernel
from linklab.regression import fingerprint

HANDBOOK: Final = Path(__file__).parent
PAGES: Final = (REPOSITORY / "README.md", *sorted(HANDBOOK.rglob("*.md")))
CLIENT: Final = REPOSITORY / "client"
_IMPORT: Final = re.compile(r'^\s*(?:\w+ )?"github\.com/linklab/linklab/client/([\w/]+)"$', re.M)

Row = Mapping[str, Any]


def _seconds(row: Row) -> str:
    return f"{row['download_s']:.1f}"


def _energy(row: Row) -> str:
    return f"{row['energy']['joules_per_byte'] * 1e6:.3f}, {row['download_s']:.1f}"


def _startup(row: Row) -> str:
    """The seconds until the player plays, and how often it stalls, if it does."""
    stalls = row["workload"]["interruptions"]
    return f"{row['workload']['startup_s']:.2f}" + (f", {stalls:.0f} stalls" if stalls else "")


FIGURES: Final[dict[str, Callable[[Row], str]]] = {
    "seconds": _seconds,
    "energy": _energy,
    "startup": _startup,
}

_TABLE: Final = re.compile(
    r"<!-- table (?P<name>[\w-]+): (?P<figure>\w+) of (?P<scenarios>\S+) by (?P<clients>\S+) "
    r"seeds (?P<seeds>\d+) -->\n(?P<body>.*?)<!-- end (?P=name) (?P<inputs>\w*) -->",
    re.S,
)


@dataclass(frozen=True)
class Table:
    """A table of a page, as its first line describes it, and as it stands there."""

    page: Path
    name: str
    figure: str
    scenarios: tuple[str, ...]
    clients: tuple[str, ...]
    seeds: int
    body: str
    inputs: str

    def now(self) -> str:
        """Returns the hash of what decides the figures now: kernel, image, scenarios with their
        energy models, and the client."""
        cases = {name: fingerprint.of_scenario(scenarios.find(name)) for name in self.scenarios}
        energy = sorted({str(scenarios.find(name).energy) for name in self.scenarios})
        models = [_text(REPOSITORY / "profiles/energy" / f"{name}.yaml") for name in energy]
        decides = [
            *(self.figure, self.clients, self.seeds, cases, models),
            *(kernel.key(), image.path("guest").name, engine()),
        ]
        return hashlib.sha256(json.dumps(decides).encode()).hexdigest()[:16]


def packages(program: str = "cmd/multilink", client: Path = CLIENT) -> list[str]:
    """Returns the folders of the client's packages that are in a program, in order."""
    found, left = {program}, [program]
    while left:
        for file in _files(client / left.pop()):
            new = set(_IMPORT.findall(file.read_text())) - found
            found |= new
            left += new
    return sorted(found)


def engine(client: Path = CLIENT) -> str:
    """Returns a hash of multilink's code without comments and tests."""
    code = [_code(file) for one in packages(client=client) for file in _files(client / one)]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()


def _files(package: Path) -> list[Path]:
    return sorted(file for file in package.glob("*.go") if not file.name.endswith("_test.go"))


def _code(file: Path) -> str:
    lines = (line.strip() for line in file.read_text().splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def tables(pages: Sequence[Path] = PAGES) -> Iterator[Table]:
    """Yields the tables of pages. Raises ValueError for one whose first line asks for no known figure."""
    for page in pages:
        for found in _TABLE.finditer(page.read_text()):
            table = Table(
                page,
                found["name"],
                found["figure"],
                tuple(found["scenarios"].split(",")),
                tuple(found["clients"].split(",")),
                int(found["seeds"]),
                found["body"],
                found["inputs"],
            )
            if table.figure not in FIGURES:
                raise ValueError(
                    f"{page.name}: table {table.name}: {table.figure!r} is no figure; "
                    f"allowed: {', '.join(FIGURES)}"
                )
            yield table


def measured(table: Table, out: Path) -> list[dict[str, Any]]:
    """Runs a table's clients in its scenarios. Returns the comparisons of `linklab campaign --json`."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{table.name}.yaml"
    matrices = [
        {"scenarios": [name], "algorithms": [*table.clients], "runs": table.seeds}
        for name in table.scenarios
    ]
    file.write_text(yaml.safe_dump({"name": table.name, "matrices": matrices}))
    runs = out / table.name
    shutil.rmtree(runs, ignore_errors=True)  # Those of another linklab would be refused.
    words = ["campaign", str(file), "--out", str(runs), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "linklab", *words], stdout=subprocess.PIPE, check=True
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)["comparisons"]
    return found


def body(table: Table, found: Sequence[Mapping[str, Any]]) -> str:
    """Returns a table's lines and those below it. Pure, but for the revision."""
    has_oracle = table.figure == "seconds"
    ideal = ["oracle", "oracle of the best link"] if has_oracle else []
    lines = [["scenario", *ideal, *table.clients]]
    lines.append(["---"] * len(lines[0]))
    for one in found:
        rows = {row["algorithm"]: row for row in one["rows"]}
        cells = [f"`{one['scenario']}`"]
        if has_oracle:
            scenario = scenarios.find(one["scenario"])
            alone = {link: oracle.single_link_s(scenario, link) for link in scenario.links}
            best = min(alone, key=lambda link: alone[link])
            cells += [f"{one['oracle_s']:.1f}", f"{alone[best]:.1f} ({best})"]
        lines.append(cells + [FIGURES[table.figure](rows[name]) for name in table.clients])
    shown = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    seeds = "seed 1" if table.seeds == 1 else f"medians of seeds 1 to {table.seeds}"
    made = f"*`make tables NAME={table.name}`: linklab {own_version()}, guest kernel {kernel.key()}, {seeds}.*"
    return f"\n{shown}\n{made}\n\n"


def replaced(table: Table, made: str) -> str:
    """Returns the text of a table's page with another body, and the hash of now."""

    def whole(found: re.Match[str]) -> str:
        if found["name"] != table.name:
            return found[0]
        head = found[0].partition("\n")[0]
        return f"{head}\n{made}<!-- end {table.name} {table.now()} -->"

    return _TABLE.sub(whole, table.page.read_text())


def main(names: Sequence[str]) -> int:
    """Makes the named tables, or all stale ones. Returns 2 for an unknown name."""
    known = {table.name: table for table in tables()}
    if unknown := [name for name in names if name not in known]:
        print(f"tables: no table is called {unknown[0]!r}; there are: {', '.join(known)}")
        return 2
    stale = [name for name, table in known.items() if table.inputs != table.now()]
    for name in names or stale:
        table = known[name]
        table.page.write_text(
            replaced(table, body(table, measured(table, REPOSITORY / "build/tables")))
        )
        print(f"{name}: made anew in {table.page.relative_to(REPOSITORY)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
