"""What a client under test is told of its run. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from linklab.scenario import Scenario


@dataclass(frozen=True)
class Task:
    """What a client is to download in the lab, and where things are there; or to upload: the file
    `payload`.

    `wireless` has the links' signal strengths in the form of /proc/net/wireless, `energy` is the
    file of the energy model.
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
