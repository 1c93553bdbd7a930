"""Reads all of linklab's YAML files, within limits. Pure, except `read`.

A few hundred bytes of YAML can expand to more values than fit into memory, by aliases of aliases
and merges of merges. A few kilobytes can nest deeper than a program's stack. So the loader counts
the values of a document while it reads, and counts an alias each time it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import yaml
from yaml.composer import Composer
from yaml.nodes import Node

from linklab.core.errors import LinklabError


class ScenarioError(LinklabError, ValueError):
    """A scenario cannot be found, read or emulated. The message says where and why."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits the size of a file, and the number of its values with aliases expanded."""

    size_bytes: int
    values: int


LIMITS: Final = Limits(1 << 20, 50_000)
"""The limits for files that people write. The largest file that ships has 3 kB and 200 values."""

MAX_DEPTH: Final = 50
"""The deepest nesting of mappings and lists. A scenario has 5 levels."""

MAX_SCALAR: Final = 20_000
"""The most characters of one value, some pages of description."""


def read(
    path: Path,
    shown: str,
    limits: Limits = LIMITS,
    opener: Callable[[Path], BinaryIO] = lambda path: path.open("rb"),
) -> str:
    """Returns the text of a file. Raises ScenarioError if it cannot be read, is too large or is no
    text."""
    try:
        with opener(path) as file:
            content = file.read(limits.size_bytes + 1)
    except OSError as error:
        raise ScenarioError(f"{shown}: cannot be read: {error.strerror}") from error
    if len(content) > limits.size_bytes:
        raise ScenarioError(f"{shown}: is too large; allowed: {limits.size_bytes} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{shown}: is not UTF-8 text") from error


def compose(text: str, shown: str, needed: str, *, canonical: bool = False) -> Node:
    """Returns the root of YAML text. `shown` names the file in errors, `needed` are its root's
    keys.

    `canonical` text, which linklab has written itself, is read five times as fast. Raises
    ScenarioError with file and line.
    """
    _check_size(text, shown, LIMITS)
    loader = _CanonicalLoader if canonical else _Loader
    root: Node | None = _loaded(text, shown, lambda: loader(text).get_single_node())
    if root is None:
        raise ScenarioError(f"{shown}:1: the file is empty; needed: {needed}")
    return root


def plain(text: str, shown: str, limits: Limits) -> Any:
    """Returns YAML text as mappings, lists and strings, which is much faster. Raises ScenarioError."""
    _check_size(text, shown, limits)
    return _loaded(text, shown, lambda: _PlainLoader(text, limits).get_single_data())


def _check_size(text: str, shown: str, limits: Limits) -> None:
    if len(text) > limits.size_bytes:
        raise ScenarioError(f"{shown}: is too large; allowed: {limits.size_bytes} characters")


def _loaded(text: str, shown: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except _TooMuch as error:
        assert error.problem_mark is not None
        line = error.problem_mark.line + 1
        raise ScenarioError(f"{shown}:{line}: {error.problem}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{mark.line + 1}: " if mark else " "
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise ScenarioError(f"{shown}:{place}not valid YAML: {problem}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problem = f"character {error.character!r} is not allowed"
        raise ScenarioError(f"{shown}:{line}: not valid YAML: {problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ScenarioError(f"{shown}: not valid YAML: {error}") from error


class _TooMuch(yaml.MarkedYAMLError):
    """The document exceeds a limit."""


class _Limited(Composer):
    """Composes nodes and counts their values."""

    def __init__(self, limits: Limits) -> None:
        Composer.__init__(self)
        self._limits = limits
        self._depth = 0
        self._values = 0
        self._stands_for: dict[int, int] = {}
        self._kept: list[Node] = []
        """Keeps the nodes alive, so that no id in `_stands_for` is reused."""

    peek_event: Callable[[], Any]

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            return self._alias(parent, index, event)
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > MAX_SCALAR:
            self._refuse(f"a value of {len(event.value)} characters; allowed: {MAX_SCALAR}", event)
        before = self._values
        self._count(1, event)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(f"is nested too deeply; allowed: {MAX_DEPTH} levels", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if event.anchor is not None and node is not None:
            self._stands_for[id(node)] = self._values - before
            self._kept.append(node)
        return node

    def _alias(self, parent: Node | None, index: int, event: Any) -> Node | None:
        node = super().compose_node(parent, index)
        stands_for = self._stands_for.get(id(node))
        if stands_for is None:
            self._refuse(f"*{event.anchor} is named within what it stands for", event)
        self._count(stands_for, event)
        return node

    def _count(self, values: int, event: Any) -> None:
        self._values += values
        if self._values > self._limits.values:
            self._refuse(
                f"with its aliases the file stands for more than {self._limits.values} values",
                event,
            )

    def _refuse(self, problem: str, event: Any) -> NoReturn:
        raise _TooMuch(problem=problem, problem_mark=event.start_mark)


class _Loader(_Limited, yaml.SafeLoader):
    """Uses the loader in pure Python, which has the better messages."""

    def __init__(self, text: str) -> None:
        yaml.SafeLoader.__init__(self, text)
        _Limited.__init__(self, LIMITS)


class _CanonicalLoader(_Limited, yaml.CSafeLoader):
    """Uses libyaml's parser."""

    def __init__(self, text: str) -> None:
        yaml.CSafeLoader.__init__(self, text)
        _Limited.__init__(self, LIMITS)


class _PlainLoader(_Limited, yaml.CBaseLoader):
    """Uses libyaml's parser. Every scalar is a string."""

    def __init__(self, text: str, limits: Limits) -> None:
        yaml.CBaseLoader.__init__(self, text)
        _Limited.__init__(self, limits)
