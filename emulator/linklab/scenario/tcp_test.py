import pytest

from linklab import scenario
from linklab.scenario import Scenario, ScenarioError, to_yaml
from linklab.scenario.tcp import ECN, MPTCP_SCHEDULERS, Ends


def parsed(tcp: str) -> Scenario:
    link = "down: 80 Mbit/s, up: 20 Mbit/s, rtt: 10 ms"
    return scenario.parse(
        f"name: a\npayload: {{size: 1 B}}\nlinks:\n  wifi: {{{link}}}\ntcp: {tcp}\n", "a.yaml"
    )


@pytest.mark.parametrize(
    ("text", "ends", "written"),
    [
        ("{}", Ends("cubic", "cubic"), "congestion_control: cubic"),
        ("{congestion_control: bbr}", Ends("bbr", "bbr"), "congestion_control: bbr"),
        (
            "{congestion_control: {server: dctcp}}",
            Ends("cubic", "dctcp"),
            "congestion_control: {client: cubic, server: dctcp}",
        ),
    ],
)
def test_each_end_has_its_congestion_control(text: str, ends: Ends, written: str) -> None:
    read = parsed(text)
    assert read.tcp.congestion_control == ends
    canonical = to_yaml(read)
    assert written in canonical
    assert scenario.parse(canonical, "again.yaml") == read


@pytest.mark.parametrize("ecn", ECN)
def test_ecn_is_a_sysctl_unless_it_is_the_kernels_default(ecn: str) -> None:
    read = parsed(f"{{ecn: {ecn}}}")
    assert scenario.parse(to_yaml(read), "again.yaml") == read
    assert ("ecn" in to_yaml(read)) is (ecn != "passive")
    wanted = None if ecn == "passive" else str(ECN[ecn])
    assert read.tcp.sysctls("bbr").get("net.ipv4.tcp_ecn") == wanted
    assert read.tcp.sysctls("bbr")["net.ipv4.tcp_congestion_control"] == "bbr"


@pytest.mark.parametrize("scheduler", MPTCP_SCHEDULERS)
def test_the_scheduler_is_a_sysctl_unless_it_is_the_kernels_default(scheduler: str) -> None:
    read = parsed(f"{{mptcp_scheduler: {scheduler}}}")
    assert scenario.parse(to_yaml(read), "again.yaml") == read
    assert ("mptcp_scheduler" in to_yaml(read)) is (scheduler != "default")
    wanted = None if scheduler == "default" else scheduler
    assert read.tcp.sysctls("lia").get("net.mptcp.scheduler") == wanted


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{ecn: always}", "tcp.ecn: unknown value 'always'; allowed: off, passive, on, accurate"),
        ("{congestion_control: prague}", "tcp.congestion_control: unknown value 'prague'"),
        ("{mptcp_scheduler: minrtt}", "tcp.mptcp_scheduler: unknown value 'minrtt'; allowed: def"),
        ("{congestion_control: {sender: bbr}}", "tcp.congestion_control: unknown key"),
        ("{congestion_control: {client: bbr2}}", "tcp.congestion_control.client: unknown"),
    ],
)
def test_unknown_settings_are_refused(text: str, error: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parsed(text)
    assert str(refused.value).startswith(f"a.yaml:5: {error}")
