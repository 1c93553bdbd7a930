"""Runs every value that a scenario may name once: few runs, each with several of them."""

import itertools
import math
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from conftest import Linklab
from linklab import scenario
from linklab.core.link_kinds import KINDS
from linklab.links.stack_test import LAYERS, LINK
from linklab.models.registry import MODELS
from linklab.queues.registry import DISCIPLINES
from linklab.scenario import tcp, traffic, workload

T = TypeVar("T")

WORKLOAD_KEYS: Final = {
    "file": "",
    "player": "{rate: 4 Mbit/s, start: 100 kB, low: 100 kB, high: 200 kB}",
    "page": "{objects: 5}",
    "rounds": "{answer: 100 kB, request: 1 kB}",
    "paced": "{rate: 4 Mbit/s}",
    "upload": "{}",
}
TRAFFIC_KEYS: Final = {"bulk": "{}", "web": "{}", "call": "{rate: 100 kbit/s}"}

LINKS: Final = 3
RUNS: Final = max(len(workload.NAMES), math.ceil((len(KINDS) + len(MODELS)) / LINKS))
"""Each workload occurs, and on links each model, and each kind without a model."""

SEED: Final = 48


def dealt(values: Iterable[T], number: int, draws: random.Random) -> Iterator[T]:
    """Yields so many values in a random order, each at least once. The number must be enough."""
    kept = [*values]
    assert len(kept) <= number
    draws.shuffle(kept)
    filled = [*itertools.islice(itertools.cycle(kept), number)]
    draws.shuffle(filled)
    yield from filled


def links_of(draws: random.Random) -> Iterator[str]:
    """Yields all runs' links: each has a kind, two disciplines, and a model if any is left."""
    number = RUNS * LINKS
    kinds = dealt(KINDS, number - len(MODELS), draws)
    queues = dealt([one.name for one in DISCIPLINES], 2 * number, draws)
    for model in dealt([*MODELS, *[None] * (number - len(MODELS))], number, draws):
        if model is None:
            kind, keys = next(kinds), ""
        else:
            key = model.rows[0].key
            kind, keys = draws.choice(model.kinds).name, f", {key}: {LAYERS[key]}"
        yield (
            f"{{kind: {kind}, {LINK}, queue_down: {next(queues)}, queue_up: {next(queues)}{keys}}}"
        )


def scenarios() -> list[str]:
    """Returns one scenario for each run."""
    draws = random.Random(SEED)
    controls = dealt(tcp.CONGESTION_CONTROLS, 2 * RUNS, draws)
    senders = dealt(tcp.CONGESTION_CONTROLS, 2 * RUNS, draws)
    schedulers, ecn = dealt(tcp.MPTCP_SCHEDULERS, RUNS, draws), dealt(tcp.ECN, RUNS, draws)
    flows, links = dealt(traffic.KINDS, RUNS, draws), links_of(draws)
    made = []
    for name in dealt(workload.NAMES, RUNS, draws):
        flow = next(flows)
        made.append(
            f"""name: named
payload: {{size: 1 MB}}
tcp:
  congestion_control: {{client: {next(controls)}, server: {next(controls)}}}
  ecn: {next(ecn)}
  mptcp: true
  mptcp_scheduler: {next(schedulers)}
links:
  one: {next(links)}
  two: {next(links)}
  three: {next(links)}
traffic:
  - {{link: one, {flow}: {TRAFFIC_KEYS[flow]}}}
  - {{link: two, bulk: {{congestion_control: {next(senders)}}}}}
  - {{link: three, direction: up, bulk: {{congestion_control: {next(senders)}}}}}
"""
        )
        if name != workload.WHOLE_FILE:
            made[-1] += f"workload: {{{name}: {WORKLOAD_KEYS[name]}}}\n"
    return made


def test_every_name_is_in_one_of_them() -> None:
    found = [scenario.parse(text) for text in scenarios()]
    links = [link for one in found for link in one.links.values()]
    models = {type(model) for link in links for model in link.models}
    assert models == {model.settings for model in MODELS}
    queues = {type(one) for link in links for one in (link.discipline_down, link.discipline_up)}
    assert queues == {one.table.settings for one in DISCIPLINES}
    assert {link.kind for link in links} == set(KINDS.values())
    assert {one.workload.name for one in found} == set(workload.NAMES)
    assert {one.tcp.mptcp_scheduler for one in found} == set(tcp.MPTCP_SCHEDULERS)
    assert {one.tcp.ecn for one in found} == set(tcp.ECN)
    ends = [one.tcp.congestion_control for one in found]
    assert {*(e.client for e in ends), *(e.server for e in ends)} == set(tcp.CONGESTION_CONTROLS)
    senders = {flow.congestion_control for one in found for flow in one.traffic}
    assert senders >= set(tcp.CONGESTION_CONTROLS)


def test_each_runs(linklab: Linklab, tmp_path: Path) -> None:
    files = [tmp_path / f"named-{number}.yaml" for number in range(RUNS)]
    for file, text in zip(files, scenarios(), strict=True):
        file.write_text(text.replace("name: named", f"name: {file.stem}", 1))
    done = linklab("compare", *files, "-a", "alg3", "--parallel", 1, "--json")
    assert done.code == 0, done.out + done.err
    assert [one["scenario"] for one in done.json["comparisons"]] == [one.stem for one in files]
