from pathlib import Path

import pytest

from linklab.core.link_kinds import KINDS, LTE, WIFI
from linklab.field import making, recording
from linklab.field import simulated_for_test as simulated
from linklab.field.making import Made, MakingError
from linklab.field.simulated_for_test import SimulatedLink
from linklab.models.between_runs import BetweenRunsSettings
from linklab.models.trace import Trace
from linklab.traces.statistics_test import of_downlink

MBIT = 1e6
LTE_LINK = SimulatedLink("lte", "rmnet0", rate_bps=lambda _: 50 * MBIT, rtt_s=0.05)


def made(*directories: Path) -> Made:
    recordings = [recording.read(one) for one in directories]
    return making.scenario("drive", recordings, KINDS)


def test_links_play_what_was_seen_of_them(tmp_path: Path) -> None:
    found = made(
        simulated.run_dir(tmp_path / "1", [LTE_LINK, SimulatedLink()], size_bytes=80_000_000)
    )
    assert list(found.traces) == ["drive-wifi.csv", "drive-lte.csv"]
    scenario = found.scenario
    assert (scenario.name, scenario.payload.size_bytes) == ("drive", 80_000_000)
    wifi, lte = scenario.links["wifi"], scenario.links["lte"]
    assert (wifi.kind, wifi.device, wifi.rtt_s) == (WIFI, "wlan0", 0.02)
    assert (lte.kind, lte.device, lte.rtt_s) == (LTE, "rmnet0", 0.05)
    for link, rate_bps in ((wifi, 20 * MBIT), (lte, 50 * MBIT)):
        assert link.down_rate_bps == pytest.approx(rate_bps, rel=0.002)
        trace = link.model(Trace)
        assert trace is not None
        assert (trace.rate, trace.settings.end) == ("recorded", "hold")
        assert of_downlink(trace.samples).mean_bps == pytest.approx(rate_bps, rel=0.002)
    assert scenario.events == ()
    assert [note.split(":")[0] for note in found.notes] == [
        "No queue of lte was seen to overflow",
        "No queue of wifi was seen to overflow",
        "A download does not show what went up",
    ]


def test_the_algorithms_settings_are_those_of_the_download(tmp_path: Path) -> None:
    directory = simulated.run_dir(
        tmp_path, [SimulatedLink()], padding=0.3, window_ns=2 * 10**9, bandwidth_bps={"wifi": 44e6}
    )
    scenario = made(directory).scenario
    assert (scenario.client.padding, scenario.client.window_s) == (0.3, 2.0)
    assert scenario.links["wifi"].bandwidth_bps == 44_000_000


def test_breaks_are_events_where_packets_were_lost_and_zeros_where_they_waited(
    tmp_path: Path,
) -> None:
    def rate(t_s: float) -> float:
        return 0.0 if 2 <= t_s < 3 or 5 <= t_s < 7 else 20 * MBIT

    def queued(t_s: float) -> float:
        return 0.4 if 3 <= t_s < 3.2 else 0.05

    found = made(simulated.run_dir(tmp_path, [SimulatedLink(rate_bps=rate, queued_s=queued)]))
    (event,) = found.scenario.events
    assert (event.link, event.outage) == ("wifi", True)
    assert event.at_s == pytest.approx(4.94, abs=0.01)
    assert event.duration_s == pytest.approx(2.06 / 2, abs=0.01)
    (samples,) = found.traces.values()
    dark_s = sum(one.length_ns for one in samples if not one.down_bps) / 1e9
    assert dark_s == pytest.approx(1.0 + 2.06 / 2, abs=0.02)
    assert any(
        "wifi broke off: 2.00 to 3.00 s (packets waited), 4.94 to 7.00 s (packets were lost)."
        in note
        for note in found.notes
    )


def test_a_link_that_is_away_at_the_end_is_back_then(tmp_path: Path) -> None:
    """Nothing waits for it: packets are lost to the end, and senders try again when they would have."""

    def rate(t_s: float) -> float:
        return 0.0 if t_s >= 7 else 20 * MBIT

    taken = {"t_ns": 8_000_000_000, "event": "request", "id": 999, "link": "lte", "from": "wifi"}
    gone = SimulatedLink(rate_bps=rate, more=(taken,))
    found = made(simulated.run_dir(tmp_path, [gone, LTE_LINK]))
    (event,) = found.scenario.events
    assert event.outage
    assert (event.at_s or 0) + (event.duration_s or 0) == pytest.approx(10.0, abs=0.001)
    assert all(one.down_bps for one in found.traces["drive-wifi.csv"])
    assert any(
        note.startswith("wifi was not back when the recording ended: it is taken to be back then.")
        for note in found.notes
    )


def test_several_recordings_are_traces_and_a_spread(tmp_path: Path) -> None:
    rates = (30, 20, 10)
    directories = [
        simulated.run_dir(tmp_path / str(n), [SimulatedLink(rate_bps=lambda _, n=n: n * MBIT)])  # type: ignore[misc]
        for n in rates
    ]
    found = made(*directories)
    assert list(found.traces) == ["drive-wifi.csv", "drive-wifi-2.csv", "drive-wifi-3.csv"]
    means = [round(of_downlink(one).mean_bps / MBIT) for one in found.traces.values()]
    assert means == [20, 30, 10]
    spread = found.scenario.links["wifi"].model(BetweenRunsSettings)
    assert spread is not None
    assert spread.relative_sd == 0.36
    assert any(
        note == "wifi had means of 30.00, 20.00, 10.00 Mbit/s in 3 recordings: that with 20.00 is "
        "played, and runs differ by 36 % (the most that the lab plays)."
        for note in found.notes
    )


def test_links_that_were_recorded_apart_come_together(tmp_path: Path) -> None:
    found = made(
        simulated.run_dir(tmp_path / "1", [SimulatedLink()]),
        simulated.run_dir(tmp_path / "2", [LTE_LINK]),
    )
    assert list(found.scenario.links) == ["wifi", "lte"]
    assert not any("Only one link" in note for note in found.notes)
    alone = made(tmp_path / "1")
    assert any(note.startswith("Only one link was recorded: the effect") for note in alone.notes)


def test_links_that_were_recorded_together_are_played_together(tmp_path: Path) -> None:
    """As `multilink probe` leaves them: each alone, and all."""
    slow = SimulatedLink(rate_bps=lambda _: 15 * MBIT)
    found = made(
        simulated.run_dir(tmp_path / "wifi", [SimulatedLink()]),
        simulated.run_dir(tmp_path / "lte", [LTE_LINK]),
        simulated.run_dir(tmp_path / "all", [slow, LTE_LINK], size_bytes=70_000_000),
    )
    assert found.scenario.payload.size_bytes == 70_000_000
    assert round(of_downlink(found.traces["drive-wifi.csv"]).mean_bps / MBIT) == 15
    assert round(of_downlink(found.traces["drive-wifi-2.csv"]).mean_bps / MBIT) == 20
    assert found.scenario.links["lte"].model(BetweenRunsSettings) is None


def test_a_link_that_was_never_used_is_refused_unless_another_recording_has_it(
    tmp_path: Path,
) -> None:
    unused = SimulatedLink("lte", "rmnet0", asked=())
    half = simulated.run_dir(tmp_path / "half", [SimulatedLink(), unused])
    with pytest.raises(MakingError) as caught:
        made(half)
    assert str(caught.value) == (
        f"{half}: link lte: it carried nothing, so what it could carry is not known; "
        "needed: a recording that uses it too, as `multilink probe` makes one"
    )
    assert list(made(half, simulated.run_dir(tmp_path / "lte", [LTE_LINK])).scenario.links) == [
        "wifi",
        "lte",
    ]
