"""Writes scenarios as a list, in detail and as JSON, for `linklab scenarios`."""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from linklab.core import units
from linklab.core.ip_family import ONLY_IPV4, in_words
from linklab.core.link_kinds import link_title
from linklab.core.link_state import DIRECTIONS
from linklab.links import oracle
from linklab.models import impairments, registry
from linklab.models.trace import Trace
from linklab.queues import registry as queues
from linklab.report.statement import Statement
from linklab.scenario import LinkSettings, Scenario
from linklab.scenario.finding import SCENARIOS
from linklab.scenario.workload import Workload
from linklab.traces import library, plain

WIDTH = 80

_OWN = "Own design"

GROUPS: Final = {"publications": "Publications", "today": "Links of today", "own": "Own designs"}
"""The folders of the shipped scenarios with their titles, in the order of the list."""

_GENERATED = "*"
_GENERATED_MEANS = (
    f"{_GENERATED} plays a trace that linklab generated. No trace that ships was recorded."
)


def publication(scenario: Scenario) -> str:
    """Returns the scenario's source up to the first number, comma or colon, else our own name."""
    match = re.match(r"[^\d,:]*[^\d,:\s]", scenario.source)
    return match.group() if match else _OWN


def group(scenario: Scenario) -> str | None:
    """Returns the folder of a shipped scenario, a key of `GROUPS`; None for a user's scenario."""
    if scenario.path is None or scenario.path.parent.parent != SCENARIOS:
        return None
    return scenario.path.parent.name


def _heading(scenario: Scenario) -> tuple[int, str]:
    """Returns the position and the title of the block that lists a scenario."""
    folder = group(scenario) or ("own" if publication(scenario) == _OWN else "publications")
    of = f": {publication(scenario)}" if folder == "publications" else ""
    return list(GROUPS).index(folder), f"{GROUPS[folder]}{of}"


def overview(scenarios: Iterable[Scenario], oracles: Mapping[str, float] | None = None) -> str:
    """Returns one line per scenario, sorted by `GROUPS` and publication. `oracles` (seconds by name)
    adds their times."""
    groups: dict[tuple[int, str], list[Scenario]] = {}
    listed = list(scenarios)
    for one in listed:
        groups.setdefault(_heading(one), []).append(one)
    names = max((len(one.name) for one in listed), default=0)
    blocks = []
    has_generated = False
    for heading in sorted(groups, key=lambda one: (one[0], one[1].casefold())):
        lines = [heading[1]]
        for one in groups[heading]:
            line = f"  {one.name:<{names}} {_size(one.payload.size_bytes):>8}"
            if oracles is not None:
                line += f" {_seconds(oracles[one.name]):>9}"
            title = re.sub(rf"^{re.escape(publication(one))}, ", "", one.title, flags=re.IGNORECASE)
            title = textwrap.shorten(title, WIDTH - len(line) - 2, placeholder="…")
            is_generated = _plays_generated(one.links.values())
            has_generated |= is_generated
            mark = _GENERATED if is_generated else " "
            lines.append(f"{line} {mark}{title[:1].upper()}{title[1:]}".rstrip())
        blocks.append("\n".join(lines))
    if has_generated:
        blocks.append(_GENERATED_MEANS)
    return "\n\n".join(blocks)


def details(scenario: Scenario, stated: Sequence[Statement] = ()) -> str:
    """Returns all facts about a scenario, including the statements of publications about it."""
    least_s = oracle.oracle_s(scenario)
    alone = [
        f"{link_title(link)} alone {_seconds(oracle.single_link_s(scenario, link))}"
        for link in scenario.links
    ]
    rows: list[tuple[str, str]] = [
        ("source", scenario.source),
        ("about", scenario.description),
        ("file", str(scenario.path or "")),
        ("payload", _size(scenario.payload.size_bytes)),
        ("workload", "" if scenario.workload == Workload() else scenario.workload.name),
    ]
    rows += [(link_title(name), _link(name, link)) for name, link in scenario.links.items()]
    rows.append(("events", str(len(scenario.events)) if scenario.events else ""))
    rows += [("others", flow.words) for flow in scenario.traffic]
    several = scenario.clients if len(scenario.clients) > 1 else ()
    rows.append(("clients", ", ".join(one.words for one in several)))
    rows.append(("oracle", f"{_seconds(least_s)}; {', '.join(alone)}"))
    rows += [("published", text) for text in _stated(stated)]
    lines = [f"{scenario.name}  {scenario.title}".rstrip()]
    before = ""
    for label, text in rows:
        if text:
            lines += _wrapped("" if label == before else label, text)
            before = label
    return "\n".join(lines)


def to_json(
    scenarios: Iterable[Scenario],
    oracles: Mapping[str, float] | None = None,
    stated: Mapping[str, Sequence[Statement]] | None = None,
) -> list[dict[str, object]]:
    """Returns the scenarios as plain data in base units. `oracle_s` is null unless `oracles` has a
    finite value. `stated` has statements by scenario name."""
    return [
        {
            "name": one.name,
            "title": one.title,
            "description": one.description,
            "group": group(one),
            "publication": publication(one),
            "source": one.source,
            "file": str(one.path) if one.path else None,
            "payload_bytes": one.payload.size_bytes,
            "workload": one.workload.name,
            "oracle_s": _finite((oracles or {}).get(one.name)),
            "links": {
                name: {
                    "kind": link.kind.name,
                    "down_rate_bps": link.down_rate_bps,
                    "up_rate_bps": link.up_rate_bps,
                    "rtt_s": link.rtt_s,
                    "loss_ratio": link.loss_ratio,
                    "ip": list(link.families),
                    "models": [word for word, _ in _models(link)],
                    "plays_generated_trace": _plays_generated([link]),
                }
                for name, link in one.links.items()
            },
            "events": len(one.events),
            "published": [
                {
                    "what": said.title,
                    "who": said.compared_clients,
                    "value": said.expected.text,
                    "source": said.source,
                }
                for said in (stated or {}).get(one.name, ())
            ],
        }
        for one in scenarios
    ]


def oracles(
    scenarios: Sequence[Scenario], done: Callable[[int], None] = lambda _: None
) -> dict[str, float]:
    """Returns the oracle time in seconds of every scenario by name. Calls `done` after each with
    the number finished."""
    times = {}
    for number, one in enumerate(scenarios, 1):
        times[one.name] = oracle.oracle_s(one)
        done(number)
    return times


def _link(name: str, link: LinkSettings) -> str:
    parts = [
        *([] if name == link.kind.name else [link.kind.title]),
        f"{units.format_rate(link.down_rate_bps)} down, {units.format_rate(link.up_rate_bps)} up",
        f"RTT {units.format_duration(link.rtt_s)}",
    ]
    if link.ip is not None or link.families != ONLY_IPV4:
        parts.append(in_words(link.families))
    if link.loss_ratio:
        parts.append(f"loss {units.format_ratio(link.loss_ratio)}")
    parts += _queues(link)
    parts += [words for _, words in _models(link)]
    parts += _impairments(link)
    return ", ".join([*parts, *(["its trace is generated"] if _plays_generated([link]) else [])])


def _queues(link: LinkSettings) -> list[str]:
    """Returns the queue disciplines that are not the default one."""
    down, up = (
        None if one == queues.DEFAULT else queues.of_settings(one).name
        for one in (link.discipline_down, link.discipline_up)
    )
    if down == up:
        return [] if down is None else [f"queues {down}"]
    return [f"queue {way} {name}" for way, name in (("down", down), ("up", up)) if name is not None]


def _impairments(link: LinkSettings) -> list[str]:
    """Describes the impairments of each direction by their keys."""
    said = []
    for direction in DIRECTIONS:
        found = impairments.of(link, direction)
        if found:
            words = (f"{key}: {value}" for key, value in impairments.in_words(found))
            said.append(f"impaired {direction}link ({', '.join(words)})")
    return said


def _plays_generated(links: Iterable[LinkSettings]) -> bool:
    traces = [one for link in links for one in link.models if isinstance(one, Trace)]
    return any(library.is_generated(plain.header(one.file)) for one in traces)


def _models(link: LinkSettings) -> list[tuple[str, str]]:
    """Returns the key and a short description of every model of a link."""
    return [
        words
        for settings in link.models
        for words in registry.of_settings(settings).summary(settings)
    ]


def _stated(stated: Iterable[Statement]) -> list[str]:
    """Returns one line of published values per measure and place in a publication."""
    grouped = itertools.groupby(stated, key=lambda one: (one.title, one.source))
    return [
        f"{title} ({source}): {', '.join(f'{one.compared_clients} {one.expected.text}' for one in those)}"
        for (title, source), those in grouped
    ]


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"  {label:<10} ",
        subsequent_indent=" " * 15,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _size(size_bytes: int) -> str:
    """Writes sizes from 1 MB up in MB, so that 90.75 MB does not become 90750 kB."""
    return f"{size_bytes / 1e6:g} MB" if size_bytes >= 1e6 else units.format_size(size_bytes)


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if math.isfinite(value) else "never"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
