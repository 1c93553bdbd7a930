"""*Live lab*: the emulated links and a client, watched."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.builders import bargauge, common, dashboard, table
from grafana_foundation_sdk.models import common as commons
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DynamicConfigValue,
    ValueMap,
    ValueMappingResult,
    VariableRefresh,
    VariableSort,
)
from linklab.core.limits import MAX_LATE_S
from linklab.metrics import about, client, download, lab, links, marks, results
from linklab.models.events import BY_HAND, BY_HAND_END

from boards.frame import annotation, framed, variable, variables, with_rows
from boards.looks import (
    GREEN,
    GREY,
    RED,
    VIOLET,
    YELLOW,
    asking,
    by_names,
    columns,
    dashed,
    described,
    figure,
    fixed_colour,
    limited,
    lines,
    one_colour,
    unit_of,
    width_of,
)
from boards.query import (
    LINK_AND_TITLE,
    OF_EACH_KIND,
    STEP,
    WHICH,
    been,
    begun,
    buckets,
    by,
    by_link,
    firing,
    in_words,
    links_named,
    now,
    of_payload,
    over_time,
    query,
    rate,
    series,
    stepped,
    stopped,
)

OFTEN = "rrc|carriers|associated|rate|rate-end|delay|delay-end|loss|loss-end"
"""Kinds of events that would cover everything in a busy scenario."""

SHOWN_OTHERWISE = f"carrier-.*|outage|outage-end|{BY_HAND}|{BY_HAND_END}"
"""Kinds that have marks with more to say."""

BY_LINK = "{{link}}"

RUNS = "run, scenario, algorithm"


def _running() -> Any:
    running = by("max", "scenario, algorithm", series(lab.LATENESS))
    panel = figure(
        "Running",
        units.NoUnit,
        "Algorithm and scenario of the download that is going on.",
        now(in_words(running, ", ", "algorithm", "scenario", otherwise="nothing"), WHICH),
    )
    return by_names(panel, GREY, 18)


def _download() -> Any:
    panel = described(
        bargauge.Panel(), "Download", "Part of the file that has arrived.", units.PercentUnit
    )
    asking(panel, query(f"max({series(download.PROGRESS)})", "done")).min(0).max(1)
    panel.orientation(commons.VizOrientation.HORIZONTAL).color_scheme(one_colour(GREEN))
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    return panel.display_mode(commons.BarGaugeDisplayMode.BASIC)


def _goodput() -> Any:
    going_on, ended = series(lab.LATENESS), series(results.GOODPUT)
    newest = f"topk(1, {series(about.ENDED)})"
    panel = figure(
        "Goodput",
        units.BitsPerSecondSI,
        "Payload over all links in the last second; of a run that is over, over all of it.",
        query(
            f"8 * (max({ended} and on (run) {going_on}) or sum({series(download.GOODPUT)}) "
            f"or max({ended} and on (run) {newest}))"
        ),
    )
    return panel.color_scheme(one_colour(GREEN))


def _carrier() -> Any:
    panel = figure(
        "Carrier",
        units.NoUnit,
        "Whether the client sees the link. An outage that it is not told of shows below.",
        *(now(by_link("min", series(links.UP, of)), BY_LINK) for of in OF_EACH_KIND),
    )
    up = ValueMappingResult(text="up", color=GREEN)
    down = ValueMappingResult(text="down", color=RED)
    panel.mappings([ValueMap({"1": up, "0": down})])
    return panel.text_mode(commons.BigValueTextMode.VALUE_AND_NAME)


def _by_hand() -> Any:
    changed = by_link("max", f"{series(marks.CHANGED)} == 1", "what")
    panel = figure(
        "By hand",
        units.NoUnit,
        "What `linklab link` has changed and what has not been taken back.",
        now(in_words(changed, " ", "link", "what", otherwise="nothing"), WHICH),
    )
    return by_names(panel, VIOLET)


def _alerts() -> Any:
    fired = by_link("max", firing(), "alertname")
    panel = figure(
        "Alerts",
        units.NoUnit,
        "What Prometheus' rules say now: a link that is down, an emulator that this machine cannot "
        "keep up with, a run that failed.",
        now(in_words(fired, " ", "alertname", "link", otherwise="none"), WHICH),
    )
    return by_names(panel, RED)


def _limits(panel: Any) -> Any:
    """A panel in which capacity is a grey dashed limit, above what is filled."""
    panel.override_by_regexp("/capacity$/", [*dashed(), fixed_colour(GREY)]).fill_opacity(25)
    return _of_the_second_before(panel)


def _of_the_second_before(panel: Any) -> Any:
    """A panel whose values hold from the one before on: slopes would show what never was, such as
    use while there is no capacity."""
    return panel.line_interpolation(commons.LineInterpolation.STEP_BEFORE)


def _capacity_and_use() -> Any:
    """A panel for each link."""
    capacity, use = (
        "8 * " + by_link("max", of_payload(series, one, link="$link"))
        for one in (links.CAPACITY, links.USE)
    )
    panel = lines(
        "$link: capacity and use",
        units.BitsPerSecondSI,
        "What the downlink, or in an upload the uplink, could carry in the last second (dashed), and "
        "what left its queue in the same second, headers included. A gap between them is capacity that "
        "the client left unused.",
        query(capacity, "{{link}} capacity"),
        query(use, "{{link}} use"),
    )
    return _limits(panel.repeat("link").repeat_direction("h").max_per_row(4))


def _total() -> Any:
    capacity, use = (of_payload(series, one) for one in (links.CAPACITY, links.USE))
    panel = lines(
        "All links: capacity and use",
        units.BitsPerSecondSI,
        "What all downlinks, or in an upload all uplinks, together could carry in the last second "
        "(dashed) and carried.",
        query(f"8 * sum({capacity})", "capacity"),
        query(f"8 * sum({use})", "use"),
    )
    return _limits(panel.color_scheme(one_colour(GREEN)))


def _round_trip_time() -> Any:
    return lines(
        "Round trip time",
        units.Seconds,
        "As the client's TCP sees it, queues included (dashed: the emulated delay alone).",
        query(by_link("max", series(client.RTT)), BY_LINK),
        query("2 * " + by_link("max", series(links.DELAY)), "{{link}} emulated"),
    ).override_by_regexp("/emulated$/", dashed())


def _queue() -> Any:
    return lines(
        "Queue",
        units.BytesSI,
        "Bytes that wait for the downlink, or in an upload for the uplink.",
        query(by_link("max", of_payload(series, links.QUEUE)), BY_LINK),
    )


def _requests_in_flight() -> Any:
    panel = lines(
        "Requests in flight",
        units.Short,
        "Range requests sent and not ended.",
        query(by_link("max", series(client.IN_FLIGHT)), BY_LINK),
    )
    return panel.decimals(0).line_interpolation(commons.LineInterpolation.STEP_AFTER)


def _packets_not_delivered() -> Any:
    dropped, lost = (of_payload(rate, metric) for metric in (links.DROPPED, links.LOST))
    return lines(
        "Packets not delivered",
        units.PacketsPerSecond,
        "Packets of the downlink, or in an upload of the uplink, that found the queue full, or "
        "(dashed) were lost on the way.",
        query(by_link("sum", dropped), "{{link}} queue full"),
        query(by_link("sum", lost), "{{link}} lost"),
    ).override_by_regexp("/lost$/", dashed())


def _outage() -> Any:
    panel = lines(
        "Outage",
        units.PercentUnit,
        "Part of the last second in which nothing could pass: a handover of 50 ms is 5 %.",
        query(by_link("max", series(links.OUT)), BY_LINK),
    ).max(1)
    return _of_the_second_before(panel)


def _events() -> Any:
    left_out = f'kind!~"{OFTEN}|{BY_HAND}|{BY_HAND_END}"'
    happened = by_link("sum", stepped(lab.EVENTS, left_out), "kind")
    changed = by_link("max", begun(series(marks.CHANGED)), "what")
    panel = described(
        table.Panel(),
        "Events",
        "What happened to the links in the time shown, newest first. The number counts events since the "
        "graph's point before. Over some minutes, points are one second apart. Radio states, rates and "
        "delays that models change all the time are left out.",
        units.NoUnit,
    )
    what = f'label_replace({happened}, "what", "$1", "kind", "(.*)")'
    by_whom = f'label_replace({changed}, "what", "$1, by hand", "what", "(.*)")'
    asking(panel, over_time(f"{what} or {by_whom}"))
    times = dict.fromkeys(("Value", "Value #A"), "times")
    named = {"Time": "time", "link": "link", "what": "what", **times}
    left = dict.fromkeys(("index", "kind"), None)
    panel.override_by_name("time", [*unit_of("time:HH:mm:ss"), width_of(90)])
    for column in ("link", "times"):
        panel.override_by_name(column, [width_of(70)])
    panel.with_transformation(columns({**named, **left})).no_value("none yet")
    return panel.sort_by([common.TableSortByFieldState().display_name("time").desc(True)])


def _carriers_and_handovers() -> Any:
    panel = lines(
        "Carriers and handovers",
        units.Short,
        "Aggregated carriers of LTE, and (dashed) access points left so far.",
        query(by_link("max", series(links.CARRIERS)), "{{link}} carriers"),
        query(by_link("max", series(links.HANDOVERS)), "{{link}} handovers"),
    )
    panel.override_by_regexp("/handovers$/", dashed()).decimals(0)
    return panel.line_interpolation(commons.LineInterpolation.STEP_AFTER)


def _request_size() -> Any:
    sizes = by("sum", "le, link", f"rate({buckets(client.REQUEST_SIZE)}[30s])")
    return lines(
        "Request size",
        units.BytesSI,
        "Median of the range requests of the last 30 s, within a factor of four.",
        query(by_link("max", f"histogram_quantile(0.5, {sizes})"), BY_LINK),
    )


def _wasted() -> Any:
    panel = lines(
        "Wasted",
        units.BytesSI,
        "Bytes that came to no use, and (dashed) times that a link lost its work to others.",
        query(by_link("max", series(client.WASTED)), "{{link}} wasted"),
        query(by_link("max", series(client.FAILOVERS)), "{{link}} failovers"),
    )
    counted = DynamicConfigValue(id_val="unit", value=units.Short)
    return panel.override_by_regexp("/failovers$/", [*dashed(), counted])


def _progress() -> Any:
    return lines(
        "Progress",
        units.PercentUnit,
        "Part of the file that has arrived.",
        query(by("max", "algorithm", series(download.PROGRESS)), "{{algorithm}}"),
    ).max(1)


def _lateness() -> Any:
    panel = lines(
        "Emulator late by",
        units.Seconds,
        "The worst of 5 s. Above the red line a figure suffers: the links are not what the scenario "
        "says.",
        query(f"max({series(lab.LATENESS)})", "late by"),
    )
    return limited(panel, MAX_LATE_S)


def _busy() -> Any:
    panel = lines(
        "Core busy",
        units.PercentUnit,
        "Share of the emulator's core that is taken. Above the red line for seconds on end, "
        "links carry less than they could. In virtual time this does not matter and is 0.",
        query(f"max({series(lab.BUSY)})", "busy"),
    )
    return limited(panel.max(1), lab.BUSY_RATIO)


def _marks() -> list[Any]:
    """What stands in every graph; an outage is one region from its beginning to its end."""
    out, changed = series(marks.OUT), series(marks.CHANGED, 'what!~"(carrier|outage).*"')
    running = series(lab.LATENESS)
    appeared = f"present_over_time({running}[{STEP}]) unless {running} offset {STEP}"
    other = f'kind!~"{OFTEN}|{SHOWN_OTHERWISE}"'
    often = f'kind=~"{OFTEN}"'
    return [
        annotation("Down", by_link("max", been(out), "what"), "{{link}} {{what}}", RED),
        annotation("Back", by_link("max", stopped(out)), "{{link}} back", GREEN),
        annotation(
            "Changed by hand",
            by_link("max", been(changed), "what"),
            "{{link}} {{what}}, by hand",
            VIOLET,
        ),
        annotation("Runs", by("max", RUNS, appeared), "{{algorithm}} begins", GREY),
        annotation(
            "Handovers and others",
            by_link("sum", stepped(lab.EVENTS, other), "kind"),
            "{{link}} {{kind}}",
            YELLOW,
        ),
        annotation(
            "Radio and rates",
            by_link("sum", stepped(lab.EVENTS, often), "kind"),
            "{{link}} {{kind}}",
            GREY,
            shown=False,
        ),
    ]


def _variables() -> list[Any]:
    """Asked for once a page: where Grafana asks for any again with each refresh,
    it also makes each repeated panel anew, which never comes to be drawn (grafana#57159)."""
    link = variable(
        "link",
        "Link",
        links_named(links.UP),
        description="By its name in the scenario.",
        pattern=LINK_AND_TITLE,
        sort=VariableSort.ALPHABETICAL_DESC,
    )
    return [
        one.refresh(VariableRefresh.ON_DASHBOARD_LOAD) for one in (*variables(lab.LATENESS), link)
    ]


def live_lab() -> Dashboard:
    """The dashboard; each panel with its width, in rows of a height."""
    rows = (
        (
            3,
            (
                (5, _running()),
                (3, _download()),
                (3, _goodput()),
                (5, _carrier()),
                (4, _by_hand()),
                (4, _alerts()),
            ),
        ),
        (6, ((24, _capacity_and_use()),)),
        (6, ((8, _total()), (8, _round_trip_time()), (8, _queue()))),
        (8, ((8, _events()), (8, _requests_in_flight()), (8, _progress()))),
        (6, ((8, _packets_not_delivered()), (8, _outage()), (8, _carriers_and_handovers()))),
        (6, ((6, _request_size()), (6, _wasted()), (6, _lateness()), (6, _busy()))),
    )
    made = framed(
        "Live lab",
        "linklab-live",
        "Emulated links and a client that downloads or uploads over them. What can be chosen above is "
        "what there was when the page was loaded.",
        _variables(),
    )
    # A refresh cancels what is still asked: on a busy machine panels would never come to be drawn.
    made.time("now-2m", "now").refresh("5s").timepicker(
        dashboard.TimePicker().refresh_intervals(["2s", "5s", "30s"])
    )
    for one in _marks():
        made.annotation(one)
    return with_rows(made, rows)
