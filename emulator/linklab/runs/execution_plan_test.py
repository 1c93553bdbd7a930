import math
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from linklab.runs.clients import Task, client_of
from linklab.runs.execution_plan import Plan
from linklab.runs.job import Job
from linklab.scenario import Scenario


def plan(client: str | None, scenario: Scenario, clock: str = "virtual") -> Plan:
    job = cast(Job, SimpleNamespace(client=client, clock=clock, payload="/p/1.bin"))
    found = None if client is None else client_of(client)
    scratch = Path("/scratch")
    task = cast(Task, None)
    return Plan(Path("/r"), Path("/"), scratch, job, job, scenario, found, task, scratch)


@pytest.mark.parametrize(
    ("client", "checks"),
    [("curl-lte", True), ("aria2-2", True), ("mptcp", True), ("alg3", False), (None, False)],
)
def test_files_of_other_people_s_programs_are_for_the_lab_to_check(
    client: str | None, checks: bool, small: Scenario
) -> None:
    assert plan(client, small).checks_output is checks


def test_the_first_subflow_has_a_link_of_its_own(small: Scenario) -> None:
    assert plan("mptcp-lte", small).first_link == "lte"
    assert plan("alg3", small).first_link is None


def test_only_loss_fetching_needs_http_without_tls(small: Scenario) -> None:
    assert plan("loss-fetching", small).needs_plain_http
    assert not plan("offloading-ack", small).needs_plain_http
    assert not plan(None, small).needs_plain_http


def test_a_download_in_virtual_time_is_not_waited_for_for_ever(small: Scenario) -> None:
    assert plan("alg3", small).patience_s == 1000
    assert plan("alg3", small, "real").patience_s == math.inf
    assert plan(None, small).patience_s == math.inf
