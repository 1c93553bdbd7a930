from linklab import scenario
from linklab.links.held import held_bytes

TEXT = """\
name: held
payload: {size: 1 MB}
links:
  wifi: {down: 80 Mbit/s, up: 40 Mbit/s, rtt: 20 ms, queue_down: 3 MB, queue_up: 2 MB}
  lte: {down: 8 Mbit/s, up: 8 Mbit/s, rtt: 100 ms, jitter: 10 ms, queue: 1 MB}
"""


def test_queues_and_delay_lines_of_both_directions_count() -> None:
    wifi, lte = 3_000_000 + 2_000_000 + 150_000, 2 * 1_000_000 + 2 * 60_000
    assert held_bytes(scenario.parse(TEXT)) == wifi + lte


def test_what_an_event_brings_counts() -> None:
    events = (
        "events:\n  - {at: 1 s, link: lte, down: 800 Mbit/s}\n  - {at: 2 s, link: lte, rtt: 1 s}\n"
    )
    more = held_bytes(scenario.parse(TEXT + events)) - held_bytes(scenario.parse(TEXT))
    resized = "events:\n  - {at: 1 s, link: lte, queue: 9 MB}\n"
    queues = held_bytes(scenario.parse(TEXT + resized)) - held_bytes(scenario.parse(TEXT))
    assert queues == 2 * 8_000_000
    assert more == 101_000_000 * 0.51 - 2 * 60_000


def test_the_farthest_client_counts() -> None:
    far = "clients: [tested, {added_rtt: 1 s}, {added_rtt: 20 ms}]\n"
    more = held_bytes(scenario.parse(TEXT + far)) - held_bytes(scenario.parse(TEXT))
    assert more == (120_000_000 + 16_000_000) / 8 * 0.5
