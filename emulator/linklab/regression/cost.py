"""What virtual time cannot see: processor time and memory, on the real clock.

Each program of the suite's `cost` downloads the same file over the loopback device as curl does,
in turns. What counts is the median over the rounds of its share of curl's cost in the same
round: another machine, or others that keep this one busy, change both. The file is the same, so
the ratios are those per megabyte too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linklab.core import statistics
from linklab.core.paths import MULTILINK
from linklab.core.placeholders import filled
from linklab.display.progress import progress
from linklab.regression.loopback import Cost, measure, room, serving, sparse
from linklab.regression.suite import CostPlan, Program, Suite
from linklab.scenario import ScenarioError

_LIMIT_S_PER_MB = 1.0
_LEAST_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Gate:
    """A program's medians beside curl's, and how many times curl's they may be."""

    name: str
    cpu_s_per_mb: float
    peak_bytes: int
    cpu_ratio: float
    memory_ratio: float
    cpu_limit: float
    memory_limit: float

    @property
    def broken(self) -> list[str]:
        """What is beyond its limit, in words; nothing if all is well."""
        ratios = (
            ("processor time", self.cpu_ratio, self.cpu_limit),
            ("memory", self.memory_ratio, self.memory_limit),
        )
        return [
            f"{self.name}: {what} {ratio:.2f} times curl's, at most {limit:g} times is allowed"
            for what, ratio, limit in ratios
            if ratio > limit
        ]


@dataclass(frozen=True, slots=True)
class CostReport:
    """The gates of a suite, from `rounds` downloads of `size_bytes`; what curl took in each."""

    suite: str
    size_bytes: int
    rounds: int
    gates: tuple[Gate, ...]
    curl: tuple[Cost, ...]

    @property
    def broken(self) -> list[str]:
        """What is beyond its limit, in words."""
        return [words for one in self.gates for words in one.broken]

    @property
    def exit_code(self) -> int:
        """1 where a program takes more than it may, else 0."""
        return 1 if self.broken else 0


def gate(program: Program, costs: Sequence[Cost], curl: Sequence[Cost], size_bytes: int) -> Gate:
    """The verdict on a program from its costs and curl's in the same rounds. Pure."""
    rounds = list(zip(costs, curl, strict=True))
    return Gate(
        name=program.name,
        cpu_s_per_mb=statistics.median(one.cpu_s for one in costs) / (size_bytes / 1e6),
        peak_bytes=round(statistics.median(one.peak_bytes for one in costs)),
        cpu_ratio=statistics.median(one.cpu_s / reference.cpu_s for one, reference in rounds),
        memory_ratio=statistics.median(
            one.peak_bytes / reference.peak_bytes for one, reference in rounds
        ),
        cpu_limit=program.cpu,
        memory_limit=program.memory,
    )


def take(plan: CostPlan, done: Callable[[], None]) -> tuple[list[Gate], Sequence[Cost]]:
    """Measures the plan's programs and curl; `done` is called after each download.

    Raises LoopbackError where one does not download what it should.
    """
    with room(2 * plan.size_bytes) as directory, serving(directory) as server:
        sparse(server.files / "file", plan.size_bytes)
        output = directory / "out"
        values = {
            "url": server.url("file"),
            "ca": server.ca,
            "output": output,
            "multilink": MULTILINK,
        }
        curl = ("curl", "-sSf", "--cacert", "{ca}", "-o", "{output}", "{url}")
        programs = {"curl": curl, **{one.name: one.command for one in plan.programs}}
        costs: dict[str, list[Cost]] = {name: [] for name in programs}
        limit_s = max(_LEAST_LIMIT_S, plan.size_bytes / 1e6 * _LIMIT_S_PER_MB)
        for _ in range(plan.rounds):
            for name, command in programs.items():
                argv = [filled(word, values) for word in command]
                costs[name].append(measure(argv, plan.size_bytes, output, limit_s))
                done()
    gates = [gate(one, costs[one.name], costs["curl"], plan.size_bytes) for one in plan.programs]
    return gates, costs["curl"]


def run(suite: Suite) -> CostReport:
    """Measures the suite's `cost`, with a progress bar; ScenarioError if it has none."""
    plan = suite.cost
    if plan is None:
        raise ScenarioError(f"{suite.path}: has no `cost`: nothing to watch on the real clock")
    with progress() as bar:
        task = bar.add_task("real clock", total=plan.rounds * (len(plan.programs) + 1))
        gates, curl = take(plan, lambda: bar.advance(task))
    return CostReport(suite.name, plan.size_bytes, plan.rounds, tuple(gates), tuple(curl))
