"""Reads scenarios, which describe what a run emulates, from YAML, and checks every line.

Guest, host and oracle all work from the scenario. A wrong file raises one ScenarioError:

    profiles/x.yaml:12: links.wifi.down: '80' has no unit; allowed: a rate such as '80 Mbit/s'

Each file of this folder defines one mapping: its settings class, and a row for every key. Link models
define their own keys (`linklab.models.registry`). `reference.py` makes `profiles/README.md`, which
lists all keys, from the rows.

YAML anchors, aliases and merge keys work. Duplicate keys are refused, and so are files that expand to
more than a scenario can need (`document.py`).
"""

from linklab.scenario.client import ClientSettings
from linklab.scenario.finding import (
    file_of,
    find,
    list_all,
    load,
    names_in,
    ships,
    with_workload,
    workload_names,
)
from linklab.scenario.link import (
    LinkSettings,
    default_bandwidth_bps,
    default_queue_bytes,
)
from linklab.scenario.payload import Payload
from linklab.scenario.reading import of_links, parse
from linklab.scenario.settings import SAMPLE_S, Scenario
from linklab.scenario.tcp import TcpSettings
from linklab.scenario.writing import to_yaml
from linklab.schema.document import ScenarioError

__all__ = [
    "SAMPLE_S",
    "ClientSettings",
    "LinkSettings",
    "Payload",
    "Scenario",
    "ScenarioError",
    "TcpSettings",
    "default_bandwidth_bps",
    "default_queue_bytes",
    "file_of",
    "find",
    "list_all",
    "load",
    "names_in",
    "of_links",
    "parse",
    "ships",
    "to_yaml",
    "with_workload",
    "workload_names",
]
