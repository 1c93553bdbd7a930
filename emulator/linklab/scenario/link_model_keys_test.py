"""Tests keys of the link models of today: what is refused, and that the rest is read again."""

import pytest

from linklab import scenario
from linklab.scenario import ScenarioError

AP = "access_points: [{name: a}]"
PAUSE = "{name: x, per_minute: 1, median: 1 s, p90: 2 s%s}"


def with_keys(keys: str) -> str:
    """A scenario of one link, whose kind may have every model."""
    link = f"down: 300 Mbit/s, up: 20 Mbit/s, rtt: 15 ms, {keys}"
    return f"name: a\npayload: {{size: 1 MB}}\nlinks: {{other: {{{link}}}}}\n"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("spread: {down_p10: 400 Mbit/s}", "down_p10: …allowed: at most 300 Mbit/s"),
        ("spread: {up_p90: 5 Mbit/s}", "up_p90: …allowed: at least 20 Mbit/s"),
        ("boost: {burst: 1 MB}", "boosts nothing; needed: `down` or `up`"),
        ("boost: {up: 10 Mbit/s}", "up: …allowed: at least 20 Mbit/s"),
        ("rrc: {inactive: 12 s}", "inactive: 12 s is not before idle; allowed: below 11.2 s"),
        ("pauses: []", "pauses: the list is empty; allowed: one mapping or more"),
        (f"pauses: [{PAUSE % ''}, {PAUSE % ''}]", "name: …allowed: another name"),
        ("pauses: [{name: x, per_minute: 1, median: 2 s, p90: 1 s}]", "p90: …allowed: at least 2"),
        (f"pauses: [{PAUSE % ', longest: 500 ms'}]", "longest: …allowed: at least 2 s"),
        (
            "pauses: [{name: x, per_minute: 40, median: 1 s, p90: 1 s}, "
            "{name: y, per_minute: 30, median: 1 s, p90: 1 s}]",
            "pauses: they take 116.7 % of the time; allowed: less than 100 %",
        ),
        (f"pauses: [{PAUSE % ', left: 5 %, lossy: true'}]", "left: …allowed: without `lossy`"),
        ("slots: {rtt_sd: 7 ms}", "slots.rtt_sd: …allowed: at most 6.45 ms, so that no delay is"),
        ("slots: {length: 2 s, burst: 300 ms}", "slots.burst: …allowed: at most 200 ms, a tenth"),
        ("stations: {count: 1}", "stations: need a channel to share; needed: radio"),
        (f"radio: {{standard: ac, cell: mixed, {AP}}}", "radio.cell: …allowed: pure"),
        (f"radio: {{standard: n, width: 80 MHz, {AP}}}", "radio.width: …allowed: 20, 40 MHz"),
        (f"radio: {{standard: n, streams: 5, {AP}}}", "radio.streams: …allowed: 1 to 4"),
        ("radio: {standard: n, access_points: []}", "radio.access_points: …needed: at least one"),
        (
            f"radio: {{standard: n, {AP}, path: [{{at: 0 s}}, {{at: 2 s}}, {{at: 2 s}}]}}",
            "radio.path[2].at: is not after 2 s, the waypoint before it",
        ),
        (f"radio: {{standard: n, {AP}, loss: 90 %}}", "…allowed: 0 to 0.666667, else there is no"),
        (f"radio: {{standard: n, {AP}, edge_loss: 90 %}}", "…allowed: 0 to 0.666667, else there"),
    ],
)
def test_what_cannot_be_is_refused(keys: str, words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        scenario.parse(with_keys(keys), "x.yaml")
    assert str(refused.value).startswith("x.yaml:3: links.other")
    assert all(part in str(refused.value) for part in words.split("…"))


@pytest.mark.parametrize(
    "keys",
    [
        "spread: {down_p10: 26 Mbit/s, memory: 5 s}",
        "boost: {down: 600 Mbit/s}",
        "rrc: {inactive: 10 s, resume: 200 ms}",
        f"pauses: [{PAUSE % ', lossy: true'}, {{name: y, per_minute: 2, median: 1 s, p90: 1 s}}]",
        "endc: {down: 30 Mbit/s, up: 10 Mbit/s, rtt: 40 ms, nr: 10 s}",
        "slots: {start: random, rate_sd: 10 %}",
        f"radio: {{standard: g, cell: mixed, {AP}}}, stations: {{count: 2, rate: 9 Mbit/s}}",
    ],
)
def test_it_is_written_and_read_again(keys: str) -> None:
    read = scenario.parse(with_keys(keys))
    assert len(read.links["other"].models) == 1
    assert scenario.parse(scenario.to_yaml(read)) == read
