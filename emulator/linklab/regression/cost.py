"""Measures processor time and memory on the real clock, because virtual time cannot see them.

The programs of the suite's `cost` and curl download the same file over the loopback device, in
turns. The figure is the median, over the rounds, of the program's cost divided by curl's cost in
the same round. Another machine or other load changes both alike. The file is the same, so the
ratios also hold per megabyte.
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
    """A program's median costs, their ratios to curl's, and the largest allowed ratios."""

    name: str
    cpu_s_per_mb: float
    peak_bytes: int
    cpu_ratio: float
    memory_ratio: float
    cpu_limit: float
    memory_limit: float

    @property
    def broken(self) -> list[str]:
        """Lists in words what exceeds its limit; empty if nothing does."""
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
    """The gates of a suite, from `rounds` downloads of `size_bytes`, and curl's cost in each."""

    suite: str
    size_bytes: int
    rounds: int
    gates: tuple[Gate, ...]
    curl: tuple[Cost, ...]

    @property
    def broken(self) -> list[str]:
        """Lists in words what exceeds its limit."""
        return [words for one in self.gates for words in one.broken]

    @property
    def exit_code(self) -> int:
        """The exit code: 1 if a program exceeds a limit, else 0."""
        return 1 if self.broken else 0


def gate(program: Program, costs: Sequence[Cost], curl: Sequence[Cost], size_bytes: int) -> Gate:
    """Returns the verdict on a program from its costs and curl's in the same rounds. Pure."""
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
    """Measures the plan's programs and curl. `done` is called after each download.

    Raises LoopbackError if a download fails.
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
    """Measures the suite's `cost`, with a progress bar. Raises ScenarioError if it has none."""
    plan = suite.cost
    if plan is None:
        raise ScenarioError(f"{suite.path}: has no `cost`: nothing to watch on the real clock")
    with progress() as bar:
        task = bar.add_task("real clock", total=plan.rounds * (len(plan.programs) + 1))
        gates, curl = take(plan, lambda: bar.advance(task))
    return CostReport(suite.name, plan.size_bytes, plan.rounds, tuple(gates), tuple(curl))
