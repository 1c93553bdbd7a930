"""Writes a scenario's canonical form, with every value and default. Pure."""

from __future__ import annotations

from typing import Any

import yaml

from linklab.scenario.settings import TABLE, Scenario


class _Flow(dict[str, object]):
    """A mapping that is written on one line (YAML's flow style)."""


class _Dumper(yaml.SafeDumper):
    """Writes block style at the top, _Flow mappings on one line, and indented lists."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(
    _Flow,
    lambda dumper, data: dumper.represent_mapping(
        "tag:yaml.org,2002:map", data.items(), flow_style=True
    ),
)


def to_yaml(scenario: Scenario) -> str:
    """Writes the canonical form, with every value and default. It loads to the same scenario."""
    document = {
        key: {name: _flowing(link) for name, link in value.items()}
        if key == "links"
        else _flowing(value)
        for key, value in TABLE.write(scenario).items()
    }
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)


def _flowing(written: Any) -> Any:
    if isinstance(written, dict):
        return _Flow({key: _flowing(value) for key, value in written.items()})
    if isinstance(written, list):
        return [_flowing(value) for value in written]
    return written
