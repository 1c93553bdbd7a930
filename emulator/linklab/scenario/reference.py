"""Makes the document of all scenario keys from the rows that read and write them.

`linklab scenarios --keys` prints it. `profiles/README.md` is a copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from linklab.core.link_kinds import KINDS, either
from linklab.energy import model
from linklab.models import registry
from linklab.models.model import AnyModel
from linklab.queues import registry as disciplines
from linklab.scenario import clients, link, link_words, settings
from linklab.schema.rows import AnyTable, Listed, Row, Table

_KINDS: Final = either(f"`{name}`" for name in KINDS)

_HEAD: Final = f"""\
# Keys of a scenario

A scenario is one YAML file, called after its `name`. Values have units: `80 Mbit/s`, `10 ms`,
`250 MB`, `0.3 %`. Anchors, aliases and merge keys (`<<`) work; a key given twice is refused.
A scenario has one to eight links. Their names have up to 12 characters of a-z and 0-9, a letter first. A link is of
kind {_KINDS}. A link with the name of a kind needs no `kind`.
Kind `other` is for links of no other kind. It may have every model.
Links are sorted by kind, in the order above. Links of one kind keep the file's order. Addresses and devices follow
this order.

`linklab scenarios` lists the scenarios that ship, with one line each, and `linklab scenarios NAME` describes one.
`linklab scenarios --keys` prints this document: edit the rows in `emulator/linklab`.
"""


_PRESETS_HEAD: Final = """\
# Presets

A link may be one line: `lte: 12 Mbit/s/3 Mbit/s 60 ms`. [Which lines](../emulator/handbook/how-to/say-it-in-a-scenario.md#links-without-a-file)
there are. These words are such lines. Add one to `links.yaml`.

| word | what it is | line | source |
|---|---|---|---|
"""


_ENERGY_HEAD: Final = """\
# Keys of an energy model

An energy model is one YAML file in `profiles/energy`, or anywhere else, called after its `name`. A
scenario names it with `energy`, commands with `--energy-model`. `linklab energy` lists those that ship.
`linklab calibrate energy` makes one from measurements of a power meter. Keys that are left out count as 0.
1 mJ per Mbit is the same as 1 mW per Mbit/s.
"""


_QUEUES: Final = """\
The kernel's queue discipline of a direction, below the link's rate. `drop-tail` drops packets that find the queue
full, `drop-head` drops the oldest one then. `drop-tail` and `red` count bytes, `cake` counts memory, the others count
packets. The keys of other disciplines stand beside these two. `queue_down` and `queue_up` have the same keys."""


@dataclass(frozen=True, slots=True)
class _Section:
    """A mapping: its path, its description, and its rows with their defaults in words."""

    path: str
    about: str
    rows: list[tuple[Row, str]]

    def body(self) -> str:
        """Returns what stands below the heading."""
        lines = []
        if self.about:
            lines.append(f"{self.about}\n")
        lines += ["| key | default | allowed | what it is |", "|---|---|---|---|"]
        lines += [
            f"| `{row.key}` | {'**needed**' if row.needed else default} "
            f"| {row.value.allowed} | {row.about} |"
            for row, default in self.rows
        ]
        return "\n".join(lines) + "\n"


def markdown() -> str:
    """Returns the document."""
    presets = (
        f"| `{name}` | {one.title} | `{one.link}` | {one.source} |"
        for name, one in link_words.presets().items()
    )
    listed = _PRESETS_HEAD + "\n".join(presets) + "\n"
    parts = [*_written(settings.TABLE), listed, _ENERGY_HEAD, *_written(model.TABLE)]
    return "\n".join([_HEAD, *parts])


def _written(table: AnyTable) -> Iterator[str]:
    """Yields the sections of a table. Mappings with the same keys share one."""
    paths: dict[str, list[str]] = {}
    for one in _sections("", table):
        paths.setdefault(one.body(), []).append(f"`{one.path}`" if one.path else "At the top")
    for body, named in paths.items():
        yield f"## {', '.join(named)}\n\n{body}"


def _sections(path: str, table: AnyTable) -> Iterator[_Section]:
    """Yields a table's mapping and its nested mappings."""
    yield _Section(path, table.about, [(row, table.default(row)) for row in table.flat])
    for row in table.flat:
        yield from _behind(path, row)


def _behind(path: str, row: Row) -> Iterator[_Section]:
    below = f"{path}.{row.key}".strip(".")
    match row.value:
        case Table() as table:
            yield from _sections(below, table)
        case clients.EachClient():
            yield from _sections(f"{below}[]", clients.TABLE)
        case Listed() as listed:
            yield from _sections(f"{below}[]", listed.table)
        case model.Kinds():
            yield from _sections(f"{below}.KIND", model.LINK)
        case settings.LinkMapping():
            yield from _link(f"{below}.NAME")
        case disciplines.Choice() if row.key == "queue":
            yield _Section(below, _QUEUES, [(one, one.default or "") for one in disciplines.ROWS])
            for one in disciplines.DISCIPLINES:
                if one.table.rows:
                    path = f"{below}: {{discipline: {one.name}}}"
                    rows = [(own, one.table.default(own)) for own in one.table.flat]
                    yield _Section(path, one.table.about, rows)


def _link(path: str) -> Iterator[_Section]:
    models = [(one, row) for one in registry.MODELS for row in one.rows]
    yield _Section(
        path,
        link.TABLE.about,
        [
            *((row, link.TABLE.default(row)) for row in link.TABLE.flat),
            *((_of_kinds(row, one), row.default or "") for one, row in models),
        ],
    )
    for row in (*link.TABLE.flat, *(row for _, row in models)):
        yield from _behind(path, row)


def _of_kinds(row: Row, one: AnyModel) -> Row:
    """Returns a model's row with the link kinds that it is for, if not for all."""
    if set(one.kinds) == set(KINDS.values()):
        return row
    kinds = ", ".join(kind.name for kind in one.kinds)
    return replace(row, about=f"of kind {kinds}: {row.about}")
