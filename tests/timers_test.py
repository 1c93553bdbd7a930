"""Tests when a NAT and the relay to the outside forget flows, to the microsecond of virtual time."""

from pathlib import Path

import pytest
from conftest import Linklab, ScenarioFile, succeeded
from idle_flows import NAT_IDLE, RELAY_IDLE, SECOND_NS, Idle, faults, keys, plan, probe
from linklab.relay.rule import PROGRAM as RELAY


@pytest.mark.parametrize(
    ("idle", "flows", "until_s", "relay"),
    [(NAT_IDLE, 60, 24, ()), (RELAY_IDLE, 20, 600, (RELAY,))],
    ids=["NAT", "relay"],
)
def test_a_flow_is_forgotten_at_its_idle_time(
    linklab: Linklab,
    scenario: ScenarioFile,
    idle: Idle,
    flows: int,
    until_s: int,
    relay: tuple[Path, ...],
) -> None:
    wifi, more = keys(NAT_IDLE)
    file = scenario("timers", wifi=wifi, more=more)
    packets = plan(3, idle, flows, until_s * SECOND_NS)
    done = succeeded(linklab, "exec", *probe(file, packets, *relay))
    assert not faults(done.run_dir, packets, idle)
