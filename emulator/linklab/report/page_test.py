"""Tests what a page's groups compute of their runs."""

from pathlib import Path

import msgspec
import pytest

from linklab import scenario
from linklab.core.link_kinds import LTE, WIFI
from linklab.report.page import Group
from linklab.runs.job_test import JOB
from linklab.runs.loaded_runs import LoadedRun
from linklab.runs.one_window_test import TAIL_S, run
from linklab.runs.run_figures import RunFigures

ONE = scenario.find("static-80-50")


def loaded(client: str, seed: int, figures: RunFigures) -> LoadedRun:
    made = msgspec.structs.replace(JOB, client=client, seed=seed)
    return LoadedRun(Path(f"{client}-{seed}"), made, ONE, figures)


def test_all_clients_of_a_group_pay_the_phone_for_the_same_time() -> None:
    wifi, lte = run(2.0, WIFI), run(3.0, LTE)
    runs = {
        "curl-wifi": [loaded("curl-wifi", 1, wifi), loaded("curl-wifi", 2, wifi)],
        "curl-lte": [loaded("curl-lte", 1, lte)],
    }
    energies = Group("title", ONE, "guest", "virtual", runs).energies
    (first, first_s, own), (second, _, alone) = energies["curl-wifi"]
    assert (first, first_s, second) == (1, 2.0, 2)
    assert own.phone_j == pytest.approx(0.226 * (3 + TAIL_S))
    assert alone == wifi.energy, "nobody else ran with seed 2"
    assert [one for _, _, one in energies["curl-lte"]] == [lte.energy]
