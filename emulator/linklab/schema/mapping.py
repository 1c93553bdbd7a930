"""Reads YAML mappings value by value, so that every error has its file, line and field. Pure.

profiles/x.yaml:12: links.wifi.down: '80' has no unit; allowed: a rate such as '80 Mbit/s'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from linklab.schema.document import ScenarioError

_MERGE_TAG = "tag:yaml.org,2002:merge"
NULL_TAG = "tag:yaml.org,2002:null"
"""The tag of a value that is left out."""

_KEY_LIKE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,29}", re.ASCII)

T = TypeVar("T")


def guess(word: str, known: Collection[str]) -> str:
    """Returns a suggestion for an error message, "" if no known word is similar."""
    import difflib  # Imported here because it is slow to load and only errors need it.

    close = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _quoted(key: str) -> str:
    """Returns an unknown key for an error message, "" for what nobody means as a key. The file may be
    another one that the server can read, such as /etc/shadow, and the error goes to a client."""
    return f" {key!r}" if _KEY_LIKE.fullmatch(key) else ""


@dataclass(frozen=True, slots=True)
class Keys:
    """Holds the keys of a mapping. `named` checks keys that a file may choose freely, such as
    names."""

    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()
    named: Callable[[str], str] | None = None

    @property
    def all(self) -> tuple[str, ...]:
        return self.needed + self.optional


class Mapping:
    """Reads a mapping of the file. Converts its values, and reports errors with file and line."""

    def __init__(self, shown: str, node: Node, where: str, keys: Keys) -> None:
        self.shown = shown
        self.node = node
        self.where = where
        if not isinstance(node, MappingNode):
            form = f" with the keys {', '.join(keys.all)}" if keys.all else ""
            self.fail(None, f"must be a mapping{form}")
        self.values = self._entries(node, keys)
        for key in keys.needed:
            if key not in self.values:
                message = f"{key!r} is missing; needed: {', '.join(keys.needed)}"
                if keys.optional:
                    message += f"; optional: {', '.join(keys.optional)}"
                self.fail(None, message)

    def _entries(self, node: MappingNode, keys: Keys) -> dict[str, Node]:
        """Returns the mapping's values by key. Its own keys win over those of merged mappings."""
        own: dict[str, Node] = {}
        lines: dict[str, int] = {}
        merged: dict[str, Node] = {}
        for key_node, value in node.value:
            if key_node.tag == _MERGE_TAG:
                for name, inherited in self._merge(value, keys).items():
                    merged.setdefault(name, inherited)
                continue
            if not isinstance(key_node, ScalarNode):
                self.fail_at(key_node, self.where, "a key must be a word")
            key = key_node.value
            if keys.named is not None:
                self._scalar(key_node, self.where, keys.named)
            elif key not in keys.all:
                self.fail_at(
                    key_node,
                    self.where,
                    f"unknown key{_quoted(key)}{guess(key, keys.all)}; allowed: {', '.join(keys.all)}",
                )
            if key in own:
                self.fail_at(
                    key_node, self.path(key), f"is given twice, first in line {lines[key]}"
                )
            own[key] = value
            lines[key] = key_node.start_mark.line + 1
        return {**merged, **own}

    def _merge(self, value: Node, keys: Keys) -> dict[str, Node]:
        merged: dict[str, Node] = {}
        for node in value.value if isinstance(value, SequenceNode) else [value]:
            if not isinstance(node, MappingNode):
                self.fail_at(value, self.where, "'<<' merges mappings only")
            for name, inherited in self._entries(node, keys).items():
                merged.setdefault(name, inherited)
        return merged

    def path(self, key: str | None) -> str:
        return ".".join(part for part in (self.where, key) if part)

    def fail_at(self, node: Node, where: str, message: str) -> NoReturn:
        place = f"{self.shown}:{node.start_mark.line + 1}: "
        raise ScenarioError(place + (f"{where}: {message}" if where else message))

    def fail(self, key: str | None, message: str) -> NoReturn:
        """Raises ScenarioError for the value of `key`, or for the mapping itself."""
        node = self.values[key] if key is not None and key in self.values else self.node
        self.fail_at(node, self.path(key), message)

    def has(self, key: str) -> bool:
        return key in self.values

    def get(self, key: str, convert: Callable[[str], T]) -> T:
        """Returns the scalar `key` through `convert`. A ValueError becomes a ScenarioError."""
        return self._scalar(self.values[key], self.path(key), convert)

    def _scalar(self, node: Node, where: str, convert: Callable[[str], T]) -> T:
        if not isinstance(node, ScalarNode):
            self.fail_at(node, where, "must be a single value")
        if node.tag == NULL_TAG and not node.style:
            self.fail_at(node, where, "has no value")
        try:
            return convert(node.value)
        except ValueError as error:
            self.fail_at(node, where, str(error))

    def each(self, key: str, convert: Callable[[str], T]) -> list[T]:
        """Returns the scalars in the list `key` through `convert`."""
        node = self.values[key]
        if not isinstance(node, SequenceNode):
            self.fail(key, "must be a list")
        return [
            self._scalar(item, f"{self.path(key)}[{index}]", convert)
            for index, item in enumerate(node.value)
        ]

    def one_or_each(self, key: str, convert: Callable[[str], T]) -> list[T]:
        """Returns the scalar `key`, or the scalars in its list, through `convert`."""
        if isinstance(self.values[key], SequenceNode):
            return self.each(key, convert)
        return [self.get(key, convert)]

    def get_or(self, key: str, convert: Callable[[str], T], default: T) -> T:
        return self.get(key, convert) if key in self.values else default

    def sub(self, key: str, keys: Keys) -> Mapping:
        return Mapping(self.shown, self.values[key], self.path(key), keys)

    def count(self, key: str) -> int:
        """Returns the number of entries in the list `key`, 1 if it is missing or no list."""
        node = self.values.get(key)
        return len(node.value) if isinstance(node, SequenceNode) else 1

    def items(self, key: str, keys: Keys, short: str | None = None) -> list[Mapping]:
        """Returns the mappings in the list `key`, none if it is missing. A single value in the list
        stands for a mapping of the key `short` alone."""
        if key not in self.values:
            return []
        node = self.values[key]
        if not isinstance(node, SequenceNode):
            self.fail(key, "must be a list")
        return [
            Mapping(self.shown, _long(item, short), f"{self.path(key)}[{index}]", keys)
            for index, item in enumerate(node.value)
        ]


def _long(item: Node, short: str | None) -> Node:
    if short is None or not isinstance(item, ScalarNode):
        return item
    key = ScalarNode("tag:yaml.org,2002:str", short, item.start_mark, item.end_mark)
    return MappingNode("tag:yaml.org,2002:map", [(key, item)], item.start_mark, item.end_mark)


# --- Converters of scalars. A ValueError says what is wrong and what is allowed.


def within(parse_one: Callable[[str], T], low: T, high: T, form: str) -> Callable[[str], T]:
    """Returns `parse_one` limited to low..high. `form` says in errors what is allowed."""

    def convert(text: str) -> T:
        value = parse_one(text)
        if not low <= value <= high:  # type: ignore[operator]
            raise ValueError(f"{text!r} is out of range; allowed: {form}")
        return value

    return convert


def integer(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise ValueError(f"{text!r} is not a whole number; allowed: 0 to 9223372036854775807")
    return int(text)


def boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither; allowed: true, false")
    return text.lower() == "true"


def one_of(*allowed: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in allowed:
            raise ValueError(
                f"unknown value {text!r}{guess(text, allowed)}; allowed: {', '.join(allowed)}"
            )
        return text

    return convert
