"""Tests whether the dashboards' queries answer users' questions, on a real Prometheus."""

import json
import math
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import json_of
from linklab.core.link_state import Direction, LinkState
from linklab.core.records import EventRecord, LinkRecord, QueueRecord, line
from linklab.publish.prometheus import COMPARE_UID, HISTORY_UID, LIVE_UID, PublishedRun, publish
from linklab.runs import beside_baseline
from linklab.runs.beside_baseline import BesideBaseline, Movement
from prometheus import DASHBOARDS, Prometheus, filled_in, prometheus
from run_directories import changed_by_hand, finished_run

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="Prometheus is not installed: apt-get install prometheus",
)


def expressions(dashboard: str, title: str) -> list[str]:
    """The queries of a panel, or of a dashboard's marks."""
    board = DASHBOARDS[dashboard]
    found = [
        [target["expr"] for target in panel["targets"]]
        for panel in board["panels"]
        if panel["title"] == title
    ] or [[one["expr"]] for one in board["annotations"]["list"] if one["name"] == title]
    (made,) = found
    return made


def test_links_name_dashboards_that_there_are() -> None:
    assert {LIVE_UID, COMPARE_UID, HISTORY_UID} == {one["uid"] for one in DASHBOARDS.values()}


# --- Compare algorithms: runs that differ in more than the client.


TIMES_S = {
    ("alg3", 1): 5.0,
    ("alg3", 2): 5.2,
    ("alg3", 3): 6.0,
    ("alg1", 1): 7.0,
    ("single-wifi", 1): 9.0,
    ("mptcp", 1): 6.5,
}


@pytest.fixture(scope="module")
def compared(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Prometheus, dict[Path, PublishedRun]]]:
    """Publishes runs that can be compared, one run each of another scenario, size and clock, and
    one whose links a user changed."""
    work = tmp_path_factory.mktemp("compared")
    runs = [
        finished_run(work / f"{algorithm}-{seed}", algorithm, seed=seed, download_s=time_s)
        for (algorithm, seed), time_s in TIMES_S.items()
    ]
    runs += [
        finished_run(work / "other", "alg3", download_s=1.0, scenario="other"),
        finished_run(work / "large", "alg3", download_s=90.0, size_bytes=100_000_000),
        finished_run(work / "real", "alg3", download_s=5.6, clock="real"),
        finished_run(
            work / "changed",
            "alg3",
            seed=4,
            download_s=60.0,
            events=[{"t_s": 1.0, "link": "wifi", "kind": "live", "detail": "carrier down for 3 s"}],
        ),
    ]
    data = work / "prometheus" / "data"
    data.mkdir(parents=True)
    made = {one.run_dir: one for one in publish(runs, data=data)}
    with prometheus(work / "prometheus") as server:
        yield server, made


def asked_of(
    compared: tuple[Prometheus, dict[Path, PublishedRun]], expression: str, **chosen: str
) -> list[tuple[dict[str, str], float]]:
    server, made = compared
    end_s = max(one.slot.end_s for one in made.values())
    words = {"scenario": "same", "size": "10 MB", "clock": "virtual", **chosen}
    return server.value(filled_in(expression, **words), end_s + 60)


def test_medians_are_of_the_same_scenario_size_and_clock_and_of_nothing_changed_by_hand(
    compared: tuple[Prometheus, dict[Path, PublishedRun]],
) -> None:
    median, order = expressions("compare-algorithms", "Download time")
    found = {one["algorithm"]: value for one, value in asked_of(compared, median)}
    assert found == {"alg3": 5.2, "alg1": 7.0, "single-wifi": 9.0, "mptcp": 6.5}
    places = {one["algorithm"]: value for one, value in asked_of(compared, order)}
    assert sorted(places, key=places.__getitem__) == ["single-wifi", "alg1", "alg3", "mptcp"]
    for chosen, time_s in (({"clock": "real"}, 5.6), ({"size": "100 MB"}, 90.0)):
        assert [value for _, value in asked_of(compared, median, **chosen)] == [time_s]


def test_every_run_has_its_bar_and_the_spread_its_columns(
    compared: tuple[Prometheus, dict[Path, PublishedRun]],
) -> None:
    every, _ = expressions("compare-algorithms", "Download time of every run")
    found = {(one["algorithm"], int(one["seed"])): s for one, s in asked_of(compared, every)}
    assert found == TIMES_S
    runs, median, low, high, least, most, _, left_out, failed, _ = (
        {one["algorithm"]: value for one, value in asked_of(compared, expression)}.get("alg3")
        for expression in expressions("compare-algorithms", "Algorithms")
    )
    assert (runs, left_out, failed) == (3, 1, 0)
    assert (least, low, median, high, most) == pytest.approx((5.0, 5.1, 5.2, 5.6, 6.0))


def test_the_spread_is_in_quarters_around_the_median(
    compared: tuple[Prometheus, dict[Path, PublishedRun]],
) -> None:
    second, fastest, third, slowest, order = (
        {one["algorithm"]: value for one, value in asked_of(compared, expression)}
        for expression in expressions("compare-algorithms", "Spread of download time")
    )
    parts = [one["alg3"] for one in (second, fastest, third, slowest)]
    assert parts == pytest.approx([-0.1 / 5.2, -0.1 / 5.2, 0.4 / 5.2, 0.4 / 5.2])
    assert [one["mptcp"] for one in (second, fastest, third, slowest)] == [0, 0, 0, 0]
    assert sorted(order, key=order.__getitem__) == ["single-wifi", "alg1", "alg3", "mptcp"]


def test_the_runs_say_what_is_wrong_with_them_and_where_they_are(
    compared: tuple[Prometheus, dict[Path, PublishedRun]],
) -> None:
    began, until, *_, flaws = expressions("compare-algorithms", "Runs")
    by_run = {one.slot.run: one for one in compared[1].values()}
    marked = {one["run"]: value for one, value in asked_of(compared, flaws)}
    assert {by_run[run].run_dir.name: value for run, value in marked.items() if value} == {
        "changed": 1
    }
    (panel,) = [one for one in DASHBOARDS["compare-algorithms"]["panels"] if one["title"] == "Runs"]
    overrides = {
        one["matcher"]["options"]: {p["id"]: p["value"] for p in one["properties"]}
        for one in panel["fieldConfig"]["overrides"]
    }
    ((words,),) = [[one["options"]["1"]["text"]] for one in overrides["flaw"]["mappings"]]
    assert words == "by hand"
    live_lab, report = (one["url"] for one in overrides["run"]["links"])
    run = "${__data.fields.run:percentencode}"  # A run with a workload has a + in its name.
    assert live_lab.startswith(f"/d/{LIVE_UID}?var-run={run}&from=")
    assert report == f"${{reports:raw}}/{run}.html"
    for one, value in asked_of(compared, began):
        assert value == 1000 * by_run[one["run"]].slot.start_s
    for one, value in asked_of(compared, until):
        assert value == 1000 * (by_run[one["run"]].slot.end_s + 1)


# --- Regression history: two revisions of a suite.


MOVED = {"alg1": 1.5, "alg2": -2.0, "alg3": 0.4, "naive": None}
"""The changes of the second revision's download times, divided by their bounds."""


@pytest.fixture(scope="module")
def suites(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Prometheus, list[PublishedRun]]]:
    """Publishes four downloads at a revision equal to the baseline, and then at another one."""
    work = tmp_path_factory.mktemp("suites")
    data = work / "prometheus" / "data"
    data.mkdir(parents=True)
    published = []
    for revision, moved in (("r1", dict.fromkeys(MOVED, 0.1)), ("r2", MOVED)):
        runs = []
        for algorithm, bounds in moved.items():
            name = f"{revision}-{algorithm}"
            runs.append(
                finished_run(
                    work / name, algorithm, download_s=11.0, revision=revision, scenario="suite"
                )
            )
            found = (
                Movement("download time", 10.0, 11.0, bounds),
                Movement("efficiency", 0.9, 0.9, 0.0),
            )
            beside_baseline.write(runs[-1], BesideBaseline("default", found))
        published += publish(runs, data=data)
    # A run outside any suite changes nothing.
    publish([finished_run(work / "other", "alg1", download_s=1.0, revision="r3")], data=data)
    with prometheus(work / "prometheus") as server:
        yield server, published


def history(
    suites: tuple[Prometheus, list[PublishedRun]], title: str
) -> list[list[tuple[dict[str, str], float]]]:
    """Returns each query's answers of a panel when everything is published."""
    server, published = suites
    return [
        server.value(filled_in(one, suite="default"), published[-1].slot.end_s + 3600)
        for one in expressions("regression-history", title)
    ]


def test_suites_stand_in_the_order_in_which_they_were_published(
    suites: tuple[Prometheus, list[PublishedRun]],
) -> None:
    starts = [one.slot.start_s for one in suites[1]]
    assert starts == sorted(starts)


def test_the_verdict_says_how_many_are_worse_and_which(
    suites: tuple[Prometheus, list[PublishedRun]],
) -> None:
    for title, count in (("Worse", 2), ("Better", 1), ("Downloads", 4), ("Failed", 0)):
        assert [value for _, value in history(suites, title)[0]] == [count], title
    (which,) = history(suites, "Which are worse")
    assert {one["which"] for one, _ in which} == {
        "suite, 10 MB, alg1, 1",
        "suite, 10 MB, naive, 1",
    }


def test_a_row_for_each_download_says_what_moved_most_by_the_suites_own_bound(
    suites: tuple[Prometheus, list[PublishedRun]],
) -> None:
    moved, changed, time, _, revision = history(suites, "Downloads beside the baseline")
    found = {one["algorithm"]: value for one, value in moved}
    assert found == pytest.approx({"naive": 100, "alg1": 1.5, "alg3": 0.4, "alg2": -2.0})
    assert {one["figure"] for one, _ in moved} == {"download time"}
    assert {one["size"] for one, _ in moved} == {"10 MB"}
    assert {one["algorithm"]: value for one, value in changed}["alg1"] == pytest.approx(0.1)
    assert [value for _, value in time] == [11.0] * 4
    assert {one["revision"] for one, _ in revision} == {"r2"}
    (panel,) = [
        one
        for one in DASHBOARDS["regression-history"]["panels"]
        if one["title"] == "Downloads beside the baseline"
    ]
    assert panel["options"]["sortBy"] == [{"displayName": "by its bound", "desc": True}]


def test_through_time_only_what_left_its_bounds_has_a_row(
    suites: tuple[Prometheus, list[PublishedRun]],
) -> None:
    server, published = suites
    (expression,) = expressions("regression-history", "Downloads that left their bounds")
    shown = server.shown(
        filled_in(expression, suite="default"), published[-1].slot.end_s, published[-1].slot.end_s
    )
    stood = {labels["algorithm"]: list(seconds.values())[-1] for labels, seconds in shown}
    assert stood == pytest.approx({"alg1": 1.5, "alg2": -2.0, "naive": float("inf")})


def test_each_revision_has_one_mark(suites: tuple[Prometheus, list[PublishedRun]]) -> None:
    server, published = suites
    (expression,) = expressions("regression-history", "Revisions")[:1]
    (mark,) = [
        one["expr"]
        for one in DASHBOARDS["regression-history"]["annotations"]["list"]
        if one["name"] == "New revision"
    ]
    assert len(history(suites, "Revisions")[0]) == 2, expression
    for revision, first in (("r1", published[0]), ("r2", published[4])):
        (seconds,) = [
            seconds
            for labels, seconds in server.shown(
                filled_in(mark), published[0].slot.start_s - 600, published[-1].slot.end_s + 600
            )
            if labels["revision"] == revision
        ]
        assert min(seconds) == first.slot.start_s
        assert max(seconds) - min(seconds) < 300
        assert len(seconds) == max(seconds) - min(seconds) + 1


# --- Live lab: Wi-Fi goes for three seconds.


@pytest.fixture(scope="module")
def gone(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Prometheus, dict[str, Any]]]:
    """Publishes wifi-gone by alg3 and by curl, and the same by alg3 as if a user had made the
    outage. Yields the runs by algorithm: directory, slot and figures."""
    work = tmp_path_factory.mktemp("gone")
    done = json_of(work, "compare", "wifi-gone", "-a", "alg3,curl-lte")
    runs = {path.name.split("-")[2]: path for path in Path(done["run_dir"]).iterdir()}
    by_hand = changed_by_hand(runs["alg3"], work / "by-hand")
    data = work / "prometheus" / "data"
    data.mkdir(parents=True)
    published = publish([runs["alg3"], runs["curl"], by_hand], data=data)
    made = {
        name: {
            "slot": one.slot,
            "figures": json.loads((one.run_dir / "summary.json").read_text()),
        }
        for name, one in zip(("alg3", "curl", "by hand"), published, strict=True)
    }
    with prometheus(work / "prometheus") as server:
        yield server, made


def live(
    gone: tuple[Prometheus, dict[str, Any]], run: str, expression: str, **chosen: str
) -> list[tuple[dict[str, str], dict[int, float]]]:
    """Returns what a panel shows of a run, by seconds since its start."""
    server, made = gone
    slot = made[run]["slot"]
    found = server.shown(filled_in(expression, run=slot.run, **chosen), slot.start_s, slot.end_s)
    return [
        (labels, {t_s - slot.start_s: value for t_s, value in values.items()})
        for labels, values in found
    ]


def test_capacity_and_use_agree_at_the_second(gone: tuple[Prometheus, dict[str, Any]]) -> None:
    shown = expressions("live-lab", "$link: capacity and use")
    for link, full_bps in (("wifi", 60e6), ("lte", 40e6)):
        ((_, capacity),), ((_, use),) = (live(gone, "alg3", one, link=link) for one in shown)
        assert capacity.keys() == use.keys()
        for second, bps in use.items():
            assert bps <= capacity[second] * 1.001 + 2 * 8 * 1514, (link, second)
        for second in range(1, 11):
            expected_bps = 0 if link == "wifi" and second in (3, 4, 5) else full_bps
            assert capacity[second] == pytest.approx(expected_bps, abs=0.001 * full_bps), second
        if link == "wifi":
            assert [use[second] for second in (3, 4, 5)] == [0, 0, 0]
            # TCP retries later and later, here 1.3 s after Wi-Fi is back.
            assert use[2] > 0.95 * full_bps and use[8] > 0.95 * full_bps


def test_no_slope_shows_use_above_capacity() -> None:
    """Values are means of the second that ends with them."""
    for title in ("$link: capacity and use", "All links: capacity and use", "Outage"):
        (panel,) = [one for one in DASHBOARDS["live-lab"]["panels"] if one["title"] == title]
        drawn = json.dumps(panel["fieldConfig"])
        assert '"lineInterpolation": "stepBefore"' in drawn, title
        assert "custom.lineInterpolation" not in drawn, title


def test_all_links_together_are_their_sum(gone: tuple[Prometheus, dict[str, Any]]) -> None:
    capacity, _ = expressions("live-lab", "All links: capacity and use")
    ((_, shown),) = live(gone, "alg3", capacity)
    assert shown[2] == pytest.approx(100e6, rel=1e-3)
    assert shown[4] == pytest.approx(40e6, rel=1e-3)


def test_an_outage_is_one_region_and_its_end_one_mark(
    gone: tuple[Prometheus, dict[str, Any]],
) -> None:
    (down,), (back,) = expressions("live-lab", "Down"), expressions("live-lab", "Back")
    ((labels, seconds),) = live(gone, "alg3", down)
    assert (labels["link"], labels["what"]) == ("Wi-Fi", "down")
    assert list(seconds) == [2, 3, 4]
    ((labels, seconds),) = live(gone, "alg3", back)
    assert (labels["link"], list(seconds)) == ("Wi-Fi", [5])


def test_what_somebody_did_says_so_and_stands_until_it_is_taken_back(
    gone: tuple[Prometheus, dict[str, Any]],
) -> None:
    (down,), (other,), (now,) = (
        expressions("live-lab", title) for title in ("Down", "Changed by hand", "By hand")
    )
    ((labels, seconds),) = live(gone, "by hand", down)
    assert (labels["link"], labels["what"]) == ("Wi-Fi", "carrier down for 3 s, by hand")
    assert list(seconds) == [2, 3, 4]
    ((labels, seconds),) = live(gone, "by hand", other)
    assert (labels["link"], labels["what"]) == ("Wi-Fi", "down 10 Mbit/s")
    assert min(seconds) == 1 and len(seconds) > 9
    server, made = gone
    slot = made["by hand"]["slot"]
    rate, down_for = "Wi-Fi down 10 Mbit/s", "Wi-Fi carrier down for 3 s"
    for second, words in ((4, {rate, down_for}), (8, {rate}), (-30, {"nothing"})):
        at_s = slot.start_s + second
        shown = server.value(filled_in(now, run=slot.run), at_s)
        assert {one["which"] for one, _ in shown} == words


def test_a_run_has_one_mark_at_its_start(gone: tuple[Prometheus, dict[str, Any]]) -> None:
    (begins,) = expressions("live-lab", "Runs")
    ((labels, seconds),) = live(gone, "alg3", begins)
    assert (labels["algorithm"], list(seconds)) == ("alg3", [0])


def test_marks_are_above_0_without_which_grafana_shows_none(
    gone: tuple[Prometheus, dict[str, Any]],
) -> None:
    seen = set()
    for name in ("Down", "Back", "Changed by hand", "Runs"):
        (mark,) = expressions("live-lab", name)
        for _, seconds in live(gone, "by hand", mark):
            assert all(value > 0 for value in seconds.values()), name
            seen.add(name)
    assert len(seen) == 4


def test_running_is_what_runs_now(gone: tuple[Prometheus, dict[str, Any]]) -> None:
    server, made = gone
    (running,) = expressions("live-lab", "Running")
    (target,) = [
        target
        for panel in DASHBOARDS["live-lab"]["panels"]
        if panel["title"] == "Running"
        for target in panel["targets"]
    ]
    assert target["instant"] and not target.get("range")
    for name, algorithm in (("alg3", "alg3"), ("curl", "curl-lte")):
        shown = server.value(filled_in(running), made[name]["slot"].start_s + 3)
        assert [one["which"] for one, _ in shown] == [f"{algorithm}, wifi-gone"]
    after = server.value(filled_in(running), made["alg3"]["slot"].end_s + 60)
    assert [one["which"] for one, _ in after] == ["nothing"]


def test_events_have_times_and_names_in_words(gone: tuple[Prometheus, dict[str, Any]]) -> None:
    (events,) = expressions("live-lab", "Events")
    found = [
        (second, labels["link"], labels["what"])
        for labels, seconds in live(gone, "by hand", events)
        for second in seconds
    ]
    assert sorted(found) == [
        (1, "Wi-Fi", "down 10 Mbit/s, by hand"),
        (2, "Wi-Fi", "carrier down for 3 s, by hand"),
        (2, "Wi-Fi", "carrier-down"),
        (5, "Wi-Fi", "carrier-up"),
    ]


# --- Live lab, an upload.


def test_of_an_upload_the_uplink_is_shown(tmp_path: Path) -> None:
    run_dir = finished_run(
        tmp_path / "up", "alg3", download_s=4.0, workload="workload: {upload: {}}\n"
    )
    carried_bytes: dict[Direction, int] = {"down": 60_000, "up": 2_000_000}
    queues = (
        QueueRecord(
            t_s=float(second),
            link="wifi",
            direction=direction,
            sent_bytes=second * each_s,
            queue_bytes=each_s // 10,
            dropped_packets=0,
            lost_packets=0,
        )
        for second in range(1, 5)
        for direction, each_s in carried_bytes.items()
    )
    (run_dir / "queues.jsonl").write_bytes(b"".join(map(line, queues)))
    data = tmp_path / "prometheus" / "data"
    data.mkdir(parents=True)
    (one,) = publish([run_dir], data=data)
    with prometheus(tmp_path / "prometheus") as server:
        for title, expected in (
            ("$link: capacity and use", 8 * 2_000_000),
            ("All links: capacity and use", 8 * 2_000_000),
            ("Queue", 200_000),
        ):
            expression = filled_in(expressions("live-lab", title)[-1], link="wifi")
            shown = server.value(expression, one.slot.start_s + 3)
            assert max(value for _, value in shown) == expected, title


# --- Live lab, with steps longer than a second.


OUTAGES_S = tuple(2.0 + 3 * n for n in range(11))
"""The starts of Wi-Fi's outages of a second each."""

MANY_S = 36
"""The duration of that run."""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, PublishedRun]]:
    """Publishes a run with an outage every three seconds, and a change by hand in between."""
    work = tmp_path_factory.mktemp("many")
    by_hand = (
        EventRecord(4.0, "wifi", "live", "down 10 Mbit/s"),
        EventRecord(6.0, "wifi", "live-end", "down 10 Mbit/s"),
    )
    carrier = [
        (t_s + lasted_s, up) for t_s in OUTAGES_S for lasted_s, up in ((0.0, False), (1.0, True))
    ]
    happened = [
        EventRecord(t_s, "wifi", f"carrier-{'up' if up else 'down'}") for t_s, up in carrier
    ]
    run_dir = finished_run(
        work / "many",
        "alg3",
        download_s=MANY_S,
        events=[msgspec.to_builtins(one) for one in (*by_hand, *happened)],
    )
    state = LinkState(
        up=True,
        down_rate_bps=60_000_000,
        up_rate_bps=20_000_000,
        delay_s=0.005,
        jitter_s=0.0,
        loss_ratio=0.0,
    )
    (run_dir / "links.jsonl").write_bytes(
        b"".join(
            line(LinkRecord.of(replace(state, up=up), t_s=t_s, late_s=0.0, link="wifi"))
            for t_s, up in ((0.0, True), *carrier, (float(MANY_S), True))
        )
    )
    data = work / "prometheus" / "data"
    data.mkdir(parents=True)
    (published,) = publish([run_dir], data=data)
    with prometheus(work / "prometheus") as server:
        yield server, published


@pytest.mark.parametrize("step_s", [1, 2, 5, 10, 60])
def test_nothing_that_happened_is_lost_between_two_steps(
    many: tuple[Prometheus, PublishedRun], step_s: int
) -> None:
    server, one = many

    def shown(title: str) -> list[tuple[dict[str, str], dict[int, float]]]:
        (expression,) = expressions("live-lab", title)
        asked = filled_in(expression, run=one.slot.run, __interval=f"{step_s}s")
        # Steps do not start with the run.
        since_s, until_s = one.slot.start_s - 63, one.slot.end_s + 63
        return [
            (labels, {t_s - one.slot.start_s: value for t_s, value in values.items()})
            for labels, values in server.shown(asked, since_s, until_s, step_s)
        ]

    def step_after(t_s: float) -> int:
        return math.ceil((t_s + 63) / step_s) * step_s - 63

    listed = {labels["what"]: values for labels, values in shown("Events")}
    for kind, lasted_s in (("carrier-down", 0), ("carrier-up", 1)):
        steps = Counter(step_after(t_s + lasted_s) for t_s in OUTAGES_S)
        assert listed.pop(kind) == steps, kind
    assert listed == {"down 10 Mbit/s, by hand": {step_after(4): 1}}
    ((_, down),), ((_, back),) = shown("Down"), shown("Back")
    assert down.keys() >= {step_after(t_s) for t_s in OUTAGES_S}
    assert back.keys() == {step_after(t_s + 1) for t_s in OUTAGES_S}
    ((_, by_hand),) = shown("Changed by hand")
    assert step_after(4) in by_hand
    ((_, begins),) = shown("Runs")
    assert list(begins) == [step_after(0)]


def test_links_are_called_wifi_and_lte_in_that_order(
    gone: tuple[Prometheus, dict[str, Any]],
) -> None:
    for title in ("Queue", "Requests in flight", "Outage", "Round trip time"):
        expression = expressions("live-lab", title)[0]
        names = [labels["link"] for labels, _ in live(gone, "alg3", expression)]
        assert names == ["Wi-Fi", "LTE"], title


def test_another_program_has_goodput_and_progress(
    gone: tuple[Prometheus, dict[str, Any]],
) -> None:
    (progress,) = expressions("live-lab", "Progress")
    ((labels, shown),) = live(gone, "curl", progress)
    assert labels["algorithm"] == "curl-lte"
    assert list(shown.values()) == sorted(shown.values())
    assert shown[10] == pytest.approx(10 / gone[1]["curl"]["figures"]["download_s"], abs=0.03)
    (goodput,) = expressions("live-lab", "Goodput")
    ((_, shown),) = live(gone, "curl", goodput)
    assert shown[10] == pytest.approx(gone[1]["curl"]["figures"]["goodput_bps"], rel=0.02)


def test_a_finished_run_shows_its_figure_and_not_its_last_second(
    gone: tuple[Prometheus, dict[str, Any]],
) -> None:
    (goodput,) = expressions("live-lab", "Goodput")
    for run in ("alg3", "curl"):
        ((_, shown),) = live(gone, run, goodput)
        assert shown[max(shown)] == pytest.approx(gone[1][run]["figures"]["goodput_bps"])
