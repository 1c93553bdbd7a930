from linklab import linkmodel, scenario
from linklab.linkmodel import Change, LinkState, seed_for

TEXT = """\
name: events
payload: {size: 1 MB}
links:
  wifi: {down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms, jitter: 2 ms, loss: 1 %}
  lte: {down: 40 Mbit/s, up: 10 Mbit/s, rtt: 40 ms}
events:
  - {at: 2 s, link: wifi, carrier: down}
  - {at: 5 s, link: wifi, carrier: up, down: 30 Mbit/s}
  - {at: 2 s, link: lte, rtt: 60 ms, loss: 0.5 %}
  - {at: 7 s, link: wifi, up: 5 Mbit/s, jitter: 0 s, loss: 0 %}
"""


def test_initial_states() -> None:
    assert linkmodel.initial_states(scenario.parse(TEXT)) == {
        "wifi": LinkState(True, 60_000_000, 20_000_000, 0.005, 0.002, 0.01),
        "lte": LinkState(True, 40_000_000, 10_000_000, 0.02, 0.0, 0.0),
    }


def test_changes_carry_whole_states_in_time_order() -> None:
    assert linkmodel.changes(scenario.parse(TEXT)) == [
        Change(2.0, "wifi", LinkState(False, 60_000_000, 20_000_000, 0.005, 0.002, 0.01)),
        Change(2.0, "lte", LinkState(True, 40_000_000, 10_000_000, 0.03, 0.0, 0.005)),
        Change(5.0, "wifi", LinkState(True, 30_000_000, 20_000_000, 0.005, 0.002, 0.01)),
        Change(7.0, "wifi", LinkState(True, 30_000_000, 5_000_000, 0.005, 0.0, 0.0)),
    ]


def test_seeds_depend_on_the_run_and_every_name() -> None:
    seeds = {
        seed_for(1, "wifi", "loss"),
        seed_for(2, "wifi", "loss"),
        seed_for(1, "lte", "loss"),
        seed_for(1, "wifi", "jitter"),
        seed_for(1, "wifi"),
        seed_for(1),
        seed_for(11, "wifi"),
        seed_for(1, "wifiloss"),
        seed_for(1, "wi", "filoss"),
        seed_for(1, "wifi", "loss", ""),
    }
    assert len(seeds) == 10
    assert all(0 <= seed < 1 << 64 for seed in seeds)


def test_seeds_never_change_between_versions() -> None:
    assert seed_for(1, "wifi", "down") == SEED_1_WIFI_DOWN


SEED_1_WIFI_DOWN = 6640768887920966460
