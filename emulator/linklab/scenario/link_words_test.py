import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from linklab import scenario
from linklab.core.impairments import Impairments
from linklab.core.link_kinds import KINDS, LTE
from linklab.models import events
from linklab.models.events import Event
from linklab.scenario import ScenarioError, link_words
from linklab.scenario.reading import of_links

RATES = st.integers(8_000, 10**9)
SHARES = st.integers(0, 1000).map(lambda n: n / 1000)
IMPAIRED = st.one_of(
    st.just(UNSET),
    st.builds(
        Impairments,
        loss_ratio=SHARES,
        delay_s=st.integers(1, 1000).map(lambda ms: ms / 1000),
        bleach_ecn=st.one_of(st.just(UNSET), st.booleans()),
    ),
)
LINKS = st.builds(
    Event,
    st.sampled_from(("wifi", "lte", "home")),
    down_rate_bps=RATES,
    up_rate_bps=RATES,
    rtt_s=st.integers(0, 1000).map(lambda ms: ms / 1000),
    loss_ratio=st.one_of(st.none(), SHARES),
    queue_bytes=st.one_of(st.none(), st.integers(1514, 10**8)),
    fade_ratio=st.one_of(st.none(), SHARES),
    carrier=st.sampled_from((None, "down")),
    outage=st.sampled_from((None, True)),
    impair_down=IMPAIRED,
    impair_up=IMPAIRED,
)


def short(link: Event) -> str:
    """Writes a link with the units alone where they tell the key."""
    words = events.in_words(link)
    words = re.sub(r"down ([^,]*bit/s), up ([^,]*), rtt ([^,]*)", r"\1/\2 \3", words)
    return re.sub(r", loss ([^,]* %)", r" \1", words)


@given(LINKS, st.booleans())
def test_a_link_in_one_line_is_saved_and_read_again(link: Event, is_short: bool) -> None:
    line = short(link) if is_short else events.in_words(link)
    if link.link == "home":
        line = f"lte, {line}" if is_short else f"{line}, lte"
    made = of_links({link.link: line})
    (read,) = made.links.values()
    assert scenario.parse(scenario.to_yaml(made)) == made
    assert (read.down_rate_bps, read.up_rate_bps) == (link.down_rate_bps, link.up_rate_bps)
    assert (read.rtt_s, read.loss_ratio) == (link.rtt_s, link.loss_ratio or 0.0)
    assert link.queue_bytes in (None, read.queue_down_bytes)
    assert (read.impair_down, read.impair_up) == (link.impair_down, link.impair_up)
    later = [replace(one, at_s=None) for one in made.events]
    kept = Event(link.link, carrier=link.carrier, outage=link.outage, fade_ratio=link.fade_ratio)
    assert later == ([] if kept == Event(link.link) else [kept])


PARTS = (
    *("20", "mbit", "30ms", "1 %", "/", "kB", ",", " ", "=", "fast-4g", "lte", "jitter"),
    *("x", "%"),
)


@given(st.one_of(st.text(), st.lists(st.sampled_from(PARTS)).map("".join)))
def test_any_other_line_has_one_error_that_says_what_is_allowed(line: str) -> None:
    try:
        made = of_links({"wifi": line})
    except ScenarioError as error:
        assert re.match(r"links\.wifi[.a-z_]*: .*(allowed|needed): .", str(error), re.S)
        assert "\n" not in str(error)
    else:
        assert scenario.parse(scenario.to_yaml(made)) == made


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "links.wifi: '' is empty; allowed: slow-3g, "),
        ("20mbit", "links.wifi: 'rtt' is missing; needed: down, up, rtt;"),
        ("20mbit,20mbit,30ms", "'20mbit' is a second down; allowed"),
        ("fast4g", r"'fast4g' is no part of a link \(did you mean 'fast-4g'\?\); allowed"),
        ("fast-4g starlink", "'starlink' is a second name; allowed"),
        ("20mbit/30ms", "'/30ms' is no rate of an uplink; allowed"),
        ("20mbit,30ms,jitter", "'jitter' has no value; allowed"),
        ("20mbit,30ms,jitter 40ms", "links.wifi.jitter: a jitter of 40 ms does not fit an rtt"),
        ("20mbit,30ms,carrier off", "links.wifi.carrier: unknown value 'off'; allowed: up, down"),
        ("5g 20mbit 30ms", "links.wifi.kind: '5g' for a link called wifi; allowed: wifi, or"),
        ("20mb,30ms", "'20mb' is no part of a link; allowed"),
    ],
)
def test_what_is_wrong_with_a_line(line: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        of_links({"wifi": line})


def test_a_preset_is_a_word_in_a_scenario_file(tmp_path: Path) -> None:
    file = tmp_path / "walk.yaml"
    file.write_text(
        "name: walk\npayload: {size: 1 MB}\nlinks:\n  lte: fast-4g\n  home: dsl, jitter 2 ms\n"
        "  wifi: offline\nevents:\n  - {at: 3 s, link: wifi, carrier: up}\n"
    )
    made = scenario.load(file)
    assert {name: link.kind.name for name, link in made.links.items()} == {
        "wifi": "wifi",
        "lte": "lte",
        "home": "fixed",
    }
    assert (made.links["home"].rtt_s, made.links["home"].jitter_s) == (0.025, 0.002)
    assert [(one.at_s, one.carrier) for one in made.events] == [(0.0, "down"), (3.0, "up")]
    file.write_text("name: walk\npayload: {size: 1 MB}\nlinks:\n  lte: fast-5g\n")
    with pytest.raises(ScenarioError, match=r"walk.yaml:4: links.lte: 'fast-5g' is no part"):
        scenario.load(file)


@pytest.mark.parametrize("name", link_words.presets())
def test_every_preset_is_a_link(name: str) -> None:
    preset = link_words.presets()[name]
    assert preset.title and preset.source
    (link,) = of_links({"one": name}).links.values()
    assert scenario.parse(scenario.to_yaml(of_links({"one": name}))) == of_links({"one": name})
    assert link.down_rate_bps >= link.up_rate_bps
    assert name not in KINDS


def test_figures_of_browsers() -> None:
    """Chromium's devtools: 500 kbit/s and 400 ms, 9 and 1.5 Mbit/s and 60 ms, before its factors."""
    links = of_links({"lte": "slow-3g", "wifi": "fast-4g"}).links
    assert links["lte"].kind == LTE
    found = [(one.down_rate_bps, one.up_rate_bps, one.rtt_s) for one in links.values()]
    assert found == [(9_000_000, 1_500_000, 0.06), (500_000, 500_000, 0.4)]
