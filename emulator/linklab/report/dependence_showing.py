"""Shows which statements depend on what a publication leaves open: as dots, in words, and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rich.console import Console

from linklab.report.dependence import Dependence
from linklab.report.publication import Publication
from linklab.report.reproduction_showing import measured_text, tell
from linklab.report.statement import KINDS
from linklab.report.unknowns import Setting

Unknowns = dict[str, Any]
"""What the page shows of unknowns (`rows`)."""

_DOTS: Final = {"holds": "●", "fails": "○"}


def show(
    stated: Publication, tried: Sequence[Setting], told: Sequence[Dependence], console: Console
) -> None:
    """Prints the settings, a line of dots for each statement, and a summary."""
    for number, one in enumerate(tried, 1):
        values = ", ".join(f"{what}: {value.name}" for what, value in one.values.items())
        tell(
            f"setting {number}, {one.name}{f' ({values})' if len(one.values) > 1 else ''}", console
        )
    tell("● holds, ○ does not, · has no figure", console)
    for found in told:
        if found.word:
            dots = "".join(_dot(found, setting) for setting in tried)
            said = found.statement
            words = f"{said.title} {said.words} {said.expected.text} ({said.source})"
            tell(f"{dots} {found.text}: {words}", console)
    for line in summary(stated, tried, told):
        tell(line, console)


def summary(
    stated: Publication, tried: Sequence[Setting], told: Sequence[Dependence]
) -> Iterator[str]:
    """Yields how many statements of each kind hold always, never, or depend on what."""
    for kind in KINDS:
        of_kind = [one for one in told if one.statement.kind == kind and one.word]
        if not of_kind:
            continue
        counts = {word: sum(one.word == word for one in of_kind) for word in ("always", "never")}
        yield (
            f"{kind}: of {len(of_kind)} {counts['always']} hold in all {len(tried)} settings, "
            f"{counts['never']} in none; {len(of_kind) - sum(counts.values())} depend"
        )
        for what in dict.fromkeys(what for one in tried for what in one.values):
            hang = [one for one in of_kind if what in one.on]
            if hang:
                yield f"  {len(hang)} on {what}"
        together = sum(one.word == "depends" and not one.on for one in of_kind)
        if together:
            yield f"  {together} on several together alone"
    for unknown in stated.unknowns:
        named = [one for one in told if unknown.what in one.on and one.statement.kind == "outcome"]
        if unknown.moves and named:
            lines = ", ".join(dict.fromkeys(str(one.statement.line) for one in named))
            yield f"{unknown.what}: `moves` lacks what it moves (statements of line {lines})"


def rows(stated: Publication, tried: Sequence[Setting], told: Sequence[Dependence]) -> Unknowns:
    """Returns the page's table of dots."""
    return {
        "name": stated.name,
        "summary": "\n".join(summary(stated, tried, told)),
        "settings": [one.name for one in tried],
        "unknowns": [
            {
                "what": one.what,
                "range": one.range,
                "why": one.why,
                "tried": [value.name for value in one.values],
            }
            for one in stated.unknowns
            if one.values
        ],
        "rows": [
            {
                "title": one.statement.title,
                "words": one.statement.words,
                "published": one.statement.expected.text,
                "source": one.statement.source,
                "kind": one.statement.kind,
                "verdict": one.text,
                "dots": [
                    {
                        "mark": _dot(one, setting),
                        "measured": measured_text(one.checked[setting.name]),
                    }
                    for setting in tried
                ],
            }
            for one in told
            if one.word
        ],
    }


def to_json(
    stated: Publication, tried: Sequence[Setting], told: Sequence[Dependence]
) -> dict[str, Any]:
    """Returns `unknowns` as plain data: settings{name}: value by unknown; statements[], in the order of
    all statements: verdict (always, depends, never, null without figures), on[], verdicts{setting}."""
    return {
        "unknowns": {
            "settings": {
                one.name: {what: value.name for what, value in one.values.items()} for one in tried
            },
            "statements": [
                {
                    "verdict": one.word or None,
                    "on": list(one.on),
                    "verdicts": {name: found.verdict for name, found in one.checked.items()},
                }
                for one in told
            ],
        }
    }


def _dot(one: Dependence, setting: Setting) -> str:
    return _DOTS.get(one.checked[setting.name].verdict, "·")
