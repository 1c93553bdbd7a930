"""Scenarios: what a run emulates, read from YAML and checked down to the line.

A scenario is the single description of a run that both places, host and guest, and the
oracle work from. Whatever is wrong with a file is said as one ScenarioError:

    profiles/x.yaml:12: links.wifi.down: '80' has no unit; allowed: a rate such as '80 Mbit/s'

Each file here holds one mapping of it: the settings class, and a row for every key. Link models
bring their own (`linklab.models.registry`). `profiles/README.md` lists all keys, and is made from
the rows (`reference.py`).

YAML anchors, aliases and merge keys work; a key given twice is refused, and so is a file that
stands for more than a scenario can need (`document.py`).
"""

from linklab.scenario.client import ClientSettings
from linklab.scenario.finding import (
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
from linklab.scenario.reading import parse
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
    "find",
    "list_all",
    "load",
    "names_in",
    "parse",
    "ships",
    "to_yaml",
    "with_workload",
    "workload_names",
]
