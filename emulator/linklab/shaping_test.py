from typing import Any

import pytest

from linklab import shaping
from linklab.shaping import MIN_HTB_RATE_BPS, Delay, RateQueue, ShapingError

INDEX = 7
OPEN, SHUT = "TCQ_PLUG_RELEASE_INDEFINITE", "TCQ_PLUG_BUFFER"


class Message(dict[str, Any]):
    def get_attr(self, name: str) -> Any:
        return self.get(name)


class Netlink:
    """Records what the kernel would be told; `seed` is what it says netem's seed is."""

    def __init__(self, seed: int | None = 1) -> None:
        self.calls: list[tuple[str, str, dict[str, Any]]] = []
        self.seed = seed

    def tc(self, command: str, kind: str, index: int, **keywords: Any) -> None:
        assert index == INDEX
        self.calls.append((command, kind, keywords))

    def get_qdiscs(self, index: int) -> list[Message]:
        assert index == INDEX
        counted = Message(
            TCA_STATS_BASIC={"bytes": 3028, "packets": 2},
            TCA_STATS_QUEUE={"drops": 5, "backlog": 1514, "qlen": 1},
        )
        options = Message(TCA_NETEM_PRNG_SEED=self.seed)
        return [
            Message(handle=0x20000),
            Message(handle=0x100000, TCA_STATS2=counted),
            Message(handle=0x10000, TCA_STATS2=counted, TCA_OPTIONS=options),
        ]

    def taken(self) -> list[str]:
        """What was called since the last time: class rates in bytes/s and gate actions."""
        words = []
        for command, kind, keywords in self.calls:
            if kind == "plug":
                words.append(keywords["action"])
            elif command.endswith("class"):
                words.append(f"{command} {keywords['rate']} burst {keywords['burst']}")
            else:
                words.append(f"{command} {kind}")
        self.calls.clear()
        return words


@pytest.fixture
def netlink() -> Netlink:
    return Netlink()


def queue(netlink: Netlink, rate_bps: int) -> RateQueue:
    return RateQueue(netlink, INDEX, rate_bps, 500_000)


def delay(netlink: Netlink, seed: int = 1) -> Delay:
    return Delay(netlink, INDEX, 0.005, 0.001, 0.003, seed)


def test_a_queue_is_built_with_its_limit_before_its_gate_opens(netlink: Netlink) -> None:
    built = queue(netlink, 80_000_000)
    assert netlink.calls[2][2]["limit"] == 500_000
    assert netlink.calls[1][2]["ceil"] == 10_000_000
    assert netlink.taken() == [
        "add htb",
        "add-class 10000000 burst 1600",
        "TCQ_PLUG_LIMIT",
        OPEN,
    ]
    assert built.gate_period_s is None


def test_a_very_slow_queue_starts_closed_at_the_least_rate_of_the_class(netlink: Netlink) -> None:
    built = queue(netlink, 10_000)
    assert netlink.taken() == [
        "add htb",
        f"add-class {MIN_HTB_RATE_BPS // 8} burst 1",
        "TCQ_PLUG_LIMIT",
    ]
    assert built.gate_period_s == pytest.approx(1514 * 8 / 10_000)


def test_the_least_rate_itself_needs_no_gate(netlink: Netlink) -> None:
    built = queue(netlink, MIN_HTB_RATE_BPS)
    assert built.gate_period_s is None
    assert netlink.taken()[-1] == OPEN
    assert queue(netlink, MIN_HTB_RATE_BPS - 1).gate_period_s is not None
    # One frame at the least rate is in debt for no longer than is promised.
    debt_s = 1514 / (MIN_HTB_RATE_BPS // 8)
    assert debt_s == pytest.approx(shaping.MAX_DEBT_S, rel=1e-4)


def test_rates_change_in_the_class_alone(netlink: Netlink) -> None:
    built = queue(netlink, 80_000_000)
    netlink.taken()
    built.set_rate(1_000_000)
    assert netlink.taken() == ["change-class 125000 burst 1600"]
    assert built.rate_bps == 1_000_000
    assert built.changes == 1


def test_the_gate_closes_before_a_slow_rate_and_opens_after_it(netlink: Netlink) -> None:
    built = queue(netlink, 80_000_000)
    netlink.taken()
    built.set_rate(10_000)
    assert netlink.taken() == [SHUT, f"change-class {MIN_HTB_RATE_BPS // 8} burst 1"]
    built.set_rate(20_000)
    assert netlink.taken() == [f"change-class {MIN_HTB_RATE_BPS // 8} burst 1"]
    assert built.gate_period_s == pytest.approx(1514 * 8 / 20_000)
    built.set_rate(80_000_000)
    assert netlink.taken() == ["change-class 10000000 burst 1600", OPEN]
    assert built.changes == 3


def test_a_rate_change_while_the_gate_is_open_closes_it(netlink: Netlink) -> None:
    built = queue(netlink, 10_000)
    built.open_gate()
    netlink.taken()
    built.set_rate(20_000)
    assert netlink.taken()[0] == SHUT


def test_a_gate_is_told_only_what_is_new(netlink: Netlink) -> None:
    built = queue(netlink, 10_000)
    netlink.taken()
    built.close_gate()
    assert netlink.taken() == []
    built.open_gate()
    built.open_gate()
    assert netlink.taken() == [OPEN]
    built.close_gate()
    built.close_gate()
    assert netlink.taken() == [SHUT]


def test_statistics_are_those_of_the_leaf(netlink: Netlink) -> None:
    counted = queue(netlink, 80_000_000).statistics()
    assert counted == shaping.QueueStatistics(
        sent_bytes=3028, sent_packets=2, dropped_packets=5, queue_bytes=1514, queue_packets=1
    )


def test_a_qdisc_that_is_gone_is_said(netlink: Netlink, monkeypatch: pytest.MonkeyPatch) -> None:
    built = queue(netlink, 80_000_000)
    monkeypatch.setattr(netlink, "get_qdiscs", lambda index: [])
    with pytest.raises(ShapingError, match=r"interface 7 has no qdisc 0x100000"):
        built.statistics()
    with pytest.raises(ShapingError, match="interface 7 has no netem"):
        delay(netlink)


def test_delay_is_sent_in_nanoseconds_and_loss_in_percent(netlink: Netlink) -> None:
    built = delay(netlink)
    ((command, kind, sent),) = netlink.calls
    assert (command, kind) == ("add", "netem")
    assert sent["latency_ns"] == 5_000_000
    assert sent["jitter_ns"] == 1_000_000
    assert sent["loss"] == pytest.approx(0.3)
    assert sent["seed"] == 1
    assert sent["limit"] * 1514 > 10_000_000_000 / 8  # Never the bottleneck: over 1 s at 10 Gbit/s
    assert built.statistics().dropped_packets == 5


@pytest.mark.parametrize("kept", [None, 0, 2])
def test_a_kernel_that_ignores_the_seed_is_refused(kept: int | None) -> None:
    with pytest.raises(ShapingError, match=f"netem kept seed {kept} instead of 1.*6.6"):
        delay(Netlink(kept))


def test_no_change_repeats_the_randomness_before_it(netlink: Netlink) -> None:
    def seeds(netlink: Netlink) -> list[int]:
        built = delay(netlink)
        for _ in range(100):
            built.set(0.006, 0.001, 0.003)
        return [keywords["seed"] for _, _, keywords in netlink.calls]

    drawn = seeds(netlink)
    assert netlink.calls[1][0] == "change"
    assert len(set(drawn)) == len(drawn)
    assert all(0 <= seed < 2**64 for seed in drawn)
    assert seeds(Netlink()) == drawn
