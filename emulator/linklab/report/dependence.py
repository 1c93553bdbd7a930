"""Tells which statements of a publication depend on what it leaves open (`unknowns.py`). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from linklab.report.reproduction import CheckedStatement
from linklab.report.statement import Statement
from linklab.report.unknowns import OURS, Setting

Word = Literal["always", "depends", "never", ""]


@dataclass(frozen=True, slots=True)
class Dependence:
    """Holds the verdicts on a statement, by setting, and what they say together. `on` names the unknowns
    of which a value alone changes the verdict. It is empty if only several together do."""

    statement: Statement
    word: Word
    on: tuple[str, ...]
    checked: Mapping[str, CheckedStatement] = field(hash=False)

    @property
    def text(self) -> str:
        if self.word != "depends":
            return self.word
        return f"depends on {', '.join(self.on) or 'several together'}"


def dependences(
    tried: Sequence[Setting], checked: Mapping[str, Sequence[CheckedStatement]]
) -> list[Dependence]:
    """Returns how each statement depends on the unknowns. `checked` has its verdicts by setting, in the
    order of statements."""
    return [
        _dependence(tried, {one.name: checked[one.name][index] for one in tried})
        for index in range(len(checked[OURS]))
    ]


def _dependence(tried: Sequence[Setting], checked: Mapping[str, CheckedStatement]) -> Dependence:
    known = {name: one for name, one in checked.items() if one.verdict in ("holds", "fails")}
    statement = checked[OURS].statement
    verdicts = {one.verdict for one in known.values()}
    if OURS not in known:
        return Dependence(statement, "", (), checked)
    if len(verdicts) == 1:
        word: Word = "always" if verdicts == {"holds"} else "never"
        return Dependence(statement, word, (), checked)
    on = (
        what
        for one in tried
        if len(one.values) == 1 and one.name in known
        for what in one.values
        if known[one.name].verdict != known[OURS].verdict
    )
    return Dependence(statement, "depends", tuple(dict.fromkeys(on)), checked)
