"""Holds what a client under test is told about its run. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from linklab.scenario import Scenario


@dataclass(frozen=True)
class Task:
    """Describes what a client downloads in the lab, or uploads (the file `payload`), and where
    files are.

    `peers` is the directory of the compiled peers' programs. `wireless` has the links' signal
    strengths in the form of /proc/net/wireless. `energy` is the file of the energy model.
    """

    scenario: Scenario
    url: str
    ca_file: str
    output: str
    run_dir: str
    payload: str
    sha256: str
    multilink: str
    wireless: str
    energy: str
    peers: str = ""
