import pytest

from linklab import scenario
from linklab.traffic.task import FIRST_PORT, EndTask, tasks

LINK = "down: 80 Mbit/s, up: 20 Mbit/s, rtt: 10 ms"
DEVICES = {"wifi": "wlan0", "lte": "rmnet0"}


def of(traffic: str, seed: int = 1, more: str = "") -> list[tuple[EndTask, EndTask]]:
    text = (
        f"name: a\npayload: {{size: 1 B}}\nlinks:\n  wifi: {{{LINK}}}\n  lte: {{{LINK}}}\n"
        f"traffic: [{traffic}]\n{more}"
    )
    return tasks(scenario.parse(text), seed, dict.fromkeys(DEVICES, "10.0.0.1"), DEVICES)


def test_the_server_listens_and_the_end_that_the_data_leaves_sends() -> None:
    (down, up) = of("{link: wifi, bulk: {}}, {link: lte, direction: up, bulk: {connections: 3}}")
    assert [(one["listens"], one["sends"]) for one in down] == [(True, True), (False, False)]
    assert [(one["listens"], one["sends"]) for one in up] == [(True, False), (False, True)]
    assert [one["device"] for one in (down[1], up[1])] == ["wlan0", "rmnet0"]
    assert [one["port"] for one in (*down, *up)] == [FIRST_PORT] * 2 + [FIRST_PORT + 1] * 2
    assert [one["connections"] for one in up] == [3, 3]


def test_times_are_whole_nanoseconds_and_the_end_may_be_open() -> None:
    (bounded, _), (open_, _) = of(
        "{link: wifi, bulk: {}, from: 0.1 s, to: 2.5 s}, {link: wifi, call: {rate: 1 Mbit/s}}"
    )
    assert (bounded["from_ns"], bounded["to_ns"]) == (100_000_000, 2_500_000_000)
    assert (open_["from_ns"], open_["to_ns"]) == (0, None)
    assert (open_["packet_bytes"], open_["rate_bps"]) == (1200, 1_000_000)


@pytest.mark.parametrize("direction", ["down", "up"])
def test_the_sender_s_congestion_control_is_the_scenario_s_unless_the_flow_has_one(
    direction: str,
) -> None:
    """It is not the host's, which a client with Multipath TCP sets to its own."""
    ends = {"down": "bbr", "up": "reno"}
    flows = (
        f"{{link: wifi, direction: {direction}, bulk: {{}}}}, "
        f"{{link: wifi, direction: {direction}, bulk: {{congestion_control: vegas}}}}"
    )
    for more, wanted in (
        ("", "cubic"),
        ("tcp: {congestion_control: {server: bbr, client: reno}}\n", ends[direction]),
    ):
        both = of(flows, more=more)
        assert [one["congestion_control"] for one, _ in both] == [wanted, "vegas"]


WEB = "{link: wifi, web: {page: 1 MB, pause: 4 s}}"


def test_pages_follow_from_the_seed_and_the_flow() -> None:
    (((first, _), (second, _)), ((again, _),), ((other, _),)) = (
        of(f"{WEB}, {WEB}"),
        of(WEB),
        of(WEB, seed=2),
    )
    assert first["pages"] == again["pages"]
    assert len({tuple(one["pages"]) for one in (first, second, other)}) == 3


def test_pages_and_pauses_have_the_stated_distributions() -> None:
    pages = of(WEB)[0][0]["pages"]
    sizes = sorted(size_bytes for size_bytes, _ in pages)
    # The median of 500 log-normal sizes has a standard error of 6 %, the mean of 500 pauses 4 %.
    assert sizes[len(sizes) // 2] == pytest.approx(1e6, rel=0.15)
    assert sizes[len(sizes) * 9 // 10] == pytest.approx(3.6e6, rel=0.25)
    assert sum(pause_ns for _, pause_ns in pages) / len(pages) == pytest.approx(4e9, rel=0.12)
