import io
import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from linklab import scenario
from linklab.energy.account import EnergyFigures, LinkEnergyFigures
from linklab.report import publication, tables
from linklab.runs import run_figures
from linklab.runs.comparison import Comparison, compare
from linklab.runs.run_figures import LinkFigures, RunFigures
from linklab.runs.shares import ClientFigures, ShareFigures
from linklab.runs.traffic_figures import TrafficFigures


def run(name: str, download_s: float, wifi_s: float | None, lte_s: float | None) -> RunFigures:
    """A run in which the links' shares follow their finishing times."""
    one = scenario.find(name)
    ends = {"wifi": wifi_s, "lte": lte_s}
    total = sum(end for end in ends.values() if end)
    links = {
        link: LinkFigures(
            bytes=round(one.payload.size_bytes * end / total),
            share=end / total,
            finish_s=end,
            rtt_min_s=0.015,
            wasted_bytes=400_000 if link == "lte" else 0,
            requests=10,
        )
        for link, end in ends.items()
        if end
    }
    base = run_figures.peer_figures(one, 1, download_s, {"wifi": 1})
    delta = abs(wifi_s - lte_s) if wifi_s and lte_s else None
    return replace(base, links=links, link_delta_s=delta)


@pytest.fixture
def published() -> Comparison:
    runs = {
        "single-wifi": [run("ls", 278.18, 278.18, None)],
        "naive": [run("ls", 139.2, 139.2, 16.5)],
        "alg3": [run("ls", 29.1, 29.1, 29.0), run("ls", 29.3, 29.2, 29.3)],
        "aria2-2": [run_figures.peer_figures(scenario.find("ls"), 1, 30.0, {"wifi": 5, "lte": 9})],
    }
    one = scenario.find("ls")
    return compare(one, runs, {"alg1": ["H2O ended with 1"] * 2}, publication.figures_for(one))


@pytest.fixture
def own() -> Comparison:
    runs = {"alg3": [run("static-80-50", 6.7, 6.7, 6.6)]}
    return compare(scenario.find("static-80-50"), runs)


def test_a_table_with_published_figures_fits_80_columns(published: Comparison) -> None:
    text = tables.render(published)
    lines = text.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert "\x1b" not in text
    assert "…" not in text
    assert lines[0].startswith("ls  Thesis, Low-Speed Wi-Fi")
    assert lines[1] == "250 MB, oracle 32.75 s, medians of 1 to 2 runs"
    rows = {line.split()[0]: line.split() for line in lines[4:]}
    assert rows["single-wifi"][:4] == ["single-wifi", "278.18", "278.18", "-"]
    assert rows["naive"][-2:] == ["139.26", "0.0"]
    assert rows["alg3"][:4] == ["alg3", "29.20", "29.15", "29.15"]
    assert rows["aria2-2"][2:4] == ["-", "-"]
    assert "alg3 29.10-29.30 (sd 0.14)" in text
    assert "received and not used, MB: naive 0.4, alg3 0.4" in " ".join(text.split())
    assert "alg1 failed (2 runs): H2O ended with 1" in text


def test_wasted_is_the_median_of_runs_and_not_the_sum_of_links() -> None:
    runs = []
    for wifi, lte in ((0, 500_000), (300_000, 100_000), (900_000, 0)):
        one = run("ls", 29.1, 29.1, 29.0)
        wasted = {"wifi": wifi, "lte": lte}
        links = {name: replace(link, wasted_bytes=wasted[name]) for name, link in one.links.items()}
        runs.append(replace(one, links=links))
    text = tables.render(compare(scenario.find("ls"), {"alg3": runs}))
    assert "received and not used, MB: alg3 0.5\n" in text


@pytest.mark.parametrize(
    ("count", "in_table", "below"),
    [(3, ["end s", "MB"], []), (6, ["MB"], ["end s"]), (8, [], ["end s", "MB"])],
)
def test_a_table_of_many_links_fits_too(
    own: Comparison, count: int, in_table: list[str], below: list[str]
) -> None:
    (row,) = own.rows
    names = tuple(f"link{n}" for n in range(count))
    many = replace(
        own, links=names, rows=(replace(row, links=dict.fromkeys(names, row.links["lte"])),)
    )
    text = tables.render(many)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "…" not in text
    assert [what for what in ("end s", "MB") if what in text.splitlines()[3]] == in_table
    assert [what for what in ("end s", "MB") if f"alg3, {what}: link0 " in text] == below
    assert f"link{count - 1}" in text


def test_without_published_figures_there_is_a_bar(own: Comparison) -> None:
    lines = tables.render(own).splitlines()
    assert max(len(line) for line in lines) <= 80
    row = next(line for line in lines if line.startswith("alg3"))
    assert "█" in row
    assert "publ." not in lines[2]


def test_a_wide_console_shows_both(published: Comparison) -> None:
    text = tables.render(published, width=120)
    assert "publ." in text
    assert "█" in text


def test_a_plain_console_gets_ascii(own: Comparison) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    tables.show(own, Console(file=stream, width=80, force_terminal=False))
    stream.flush()
    text = raw.getvalue().decode("ascii")
    assert "diff" in text
    assert "####" in text


def test_a_terminal_gets_colour(published: Comparison) -> None:
    stream = io.StringIO()
    tables.show(published, Console(file=stream, force_terminal=True, color_system="standard"))
    assert "\x1b[" in stream.getvalue()


def test_a_terminal_does_not_obey_a_program_s_last_words(own: Comparison) -> None:
    row = replace(own.rows[0], failures=("the client ended with 1: \x1b]0;owned\x07\nbye",))
    text = tables.render(replace(own, rows=(row,)), width=200)
    assert "ended with 1: \\x1b]0;owned\\x07\\nbye" in text


def test_a_scenario_that_never_ends_is_shown(own: Comparison) -> None:
    never = replace(own, oracle_s=float("inf"))
    assert "oracle never" in tables.render(never)
    assert tables.to_json(never)["oracle_s"] is None


def costing(run: RunFigures, main_j: float, tail_j: float) -> RunFigures:
    """The run with what it cost over both links."""
    link = LinkEnergyFigures(main_j / 2, 1.0, main_j / 2, 0.0, 0.0, 0.0, 0.0, 1, 1)
    joules = main_j + tail_j
    return replace(
        run,
        energy=EnergyFigures(
            "galaxy-s7",
            joules,
            joules / 250e6,
            main_j,
            tail_j,
            2.0,
            3.0,
            4.0,
            0.0,
            0.0,
            0.0,
            {"wifi": link, "lte": link},
        ),
    )


@pytest.fixture
def with_energy() -> Comparison:
    runs = {
        "single-wifi": [run("ls", 278.18, 278.18, None)],
        "alg3": [
            costing(run("ls", 29.1, 29.1, 29.0), 76.0, 2.0),
            costing(run("ls", 29.3, 29.2, 29.3), 78.0, 2.0),
            costing(run("ls", 29.5, 29.2, 29.3), 1100.0, 2.0),
        ],
    }
    return compare(scenario.find("ls"), runs)


def test_joules_have_a_column_where_there_are_any(
    with_energy: Comparison, published: Comparison
) -> None:
    lines = tables.render(with_energy).splitlines()
    assert max(map(len, lines)) <= 80
    header = next(line for line in lines if line.startswith("algorithm"))
    assert header.split()[-1] == "J"
    assert next(line for line in lines if line.startswith("alg3")).count(" 80.0 ") == 1
    start = len(header) - 5
    single = next(line for line in lines if line.startswith("single-wifi"))
    assert single[start : start + 5].strip() == "-"
    assert header.count("end s") == 2, "the links' ends are not crowded out"
    assert "energy by galaxy-s7; of it after the download, J: alg3 2.0" in lines
    assert "ener." not in tables.render(published)


def test_the_phone_s_share_has_a_note_where_there_is_one(with_energy: Comparison) -> None:
    assert "the phone itself" not in tables.render(with_energy)
    with_phone = costing(run("ls", 29.1, 29.1, 29.0), 76.0, 2.0)
    assert with_phone.energy is not None
    paid = replace(with_phone, energy=replace(with_phone.energy, phone_j=7.0, window_s=35.0))
    shown = compare(scenario.find("ls"), {"alg3": [paid]})
    lines = tables.render(shown).splitlines()
    assert "of it the phone itself, for the same time in all rows, J: 7.0" in lines
    assert tables.to_json(shown)["rows"][0]["energy"]["phone_j"] == 7.0  # type: ignore[index]


def test_joules_for_machines(with_energy: Comparison) -> None:
    document = json.loads(json.dumps(tables.to_json(with_energy), allow_nan=False))
    none, some = (row["energy"] for row in document["rows"])
    assert none is None
    assert some["model"] == "galaxy-s7"
    assert (some["joules"], some["main_j"], some["tail_j"]) == (80.0, 78.0, 2.0)
    assert some["joules_per_byte"] == pytest.approx(80 / 250e6)
    assert (some["mean_w"], some["p90_w"], some["peak_w"]) == (2.0, 3.0, 4.0)
    assert some["links_j"] == {"wifi": 39.0, "lte": 39.0}
    assert some["spread"]["joules"]["max"] == 1102.0


def test_what_has_to_be_known_of_clients_stands_below(own: Comparison) -> None:
    assert "LIA" not in tables.render(own)
    noted = replace(own, notes=("mptcp: Linux has no LIA",))
    assert "mptcp: Linux has no LIA" in tables.render(noted)
    assert tables.to_json(noted)["notes"] == ["mptcp: Linux has no LIA"]


def test_a_workload_shows_its_own_figures() -> None:
    one = scenario.find("static-80-50+music")
    known = run_figures.peer_figures(one, 1, 70.0, {"wifi": 5, "lte": 9})
    lateness = {"late": 2.0, "lateness_s": 0.0, "lateness_p90_s": 0.1, "lateness_max_s": 1.25}
    worse = {**lateness, "late": 4.0, "lateness_max_s": 2.25}
    runs = {"mptcp": [replace(known, workload=lateness), replace(known, workload=worse)]}
    comparison = compare(one, runs, {"alg1": ["silence"]})
    lines = tables.render(comparison, width=100).splitlines()
    assert lines[1] == "paced of 3 MB, oracle 0.25 s, medians of 2 runs"
    assert lines[3].split() == ["algorithm", "s", "MB", "MB", "late", "s", "s", "s"]
    assert lines[4].split() == ["mptcp", "70.00", "1.1", "1.9", "3", "0.000", "0.100", "1.750"]
    assert lines[5].split() == ["alg1", *"-------"]
    assert not any("end s" in line for line in lines)
    document = tables.to_json(comparison)
    assert document["workload"] == "paced"
    row = json.loads(json.dumps(document))["rows"][0]
    assert row["workload"]["lateness_max_s"] == 1.75
    assert row["spread"]["lateness_max_s"]["max"] == 2.25


def test_json_keys_are_stable(published: Comparison) -> None:
    document = json.loads(json.dumps(tables.to_json(published), allow_nan=False))
    assert list(document) == [
        *("scenario", "title", "workload", "size_bytes", "oracle_s", "rows", "notes"),
    ]
    row = next(row for row in document["rows"] if row["algorithm"] == "alg3")
    assert list(row) == [
        *("algorithm", "runs", "failures", "download_s", "goodput_bps", "efficiency"),
        *("link_delta_s", "published_s", "published_link_delta_s", "error_ratio"),
        *("energy", "workload", "queues", "traffic", "clients", "shares", "jain"),
        *("links", "spread"),
    ]
    assert row["download_s"] == pytest.approx(29.2)
    assert row["spread"]["download_s"]["max"] == pytest.approx(29.3)
    assert set(row["links"]["wifi"]) == {
        *("bytes", "share", "finish_s", "rtt_min_s", "wasted_bytes"),
        *("requests", "spread"),
    }
    failed = next(row for row in document["rows"] if row["algorithm"] == "alg1")
    assert (failed["download_s"], failed["runs"], len(failed["failures"])) == (None, 0, 2)
    assert failed["published_s"] == 29.63
    assert failed["error_ratio"] is None


# --- Others on a client's links


BULK = TrafficFigures(1, "wifi", "down", "bulk", 6.0, goodput_bps=8e6)
CALL = TrafficFigures(
    flow=2,
    link="lte",
    direction="up",
    kind="call",
    flowed_s=6.0,
    goodput_bps=1e6,
    lost_ratio=0.01,
    delay_p50_s=0.01,
    delay_p95_s=0.02,
    delay_p99_s=0.03,
)


def shared(*call_delays_s: float) -> Comparison:
    """A comparison of one algorithm, with a run for each delay of the call."""
    clients = [
        ClientFigures(1, "alg3", 6.7, 16e6, {"wifi": 9}),
        ClientFigures(2, "curl-wifi", 9.0, 8e6, {"wifi": 9}),
    ]
    rates = {"client 1 alg3": 16e6, "client 2 curl-wifi": 8e6, "flow 1 bulk down wifi": 8e6}
    runs = [
        replace(
            run("static-80-50", 6.7, 6.7, 6.6),
            traffic=[BULK, replace(CALL, delay_p95_s=delay_s)],
            clients=clients,
            shares={"wifi": ShareFigures(rates, 0.889)},
        )
        for delay_s in call_delays_s
    ]
    return compare(scenario.find("static-80-50"), {"alg3": runs})


def test_flows_clients_and_shares_stand_below_the_table() -> None:
    text = tables.render(shared(0.02, 0.04, 0.09))
    assert max(len(line) for line in text.splitlines()) <= 80
    joined = " ".join(text.split())
    assert "alg3, Mbit/s: 1 bulk down wifi 8.00, 2 call up lte 1.00" in joined
    assert "alg3, 95 % of delays, ms: 2 call up lte 40.00" in joined
    assert "alg3, s: client 1 alg3 6.70, client 2 curl-wifi 9.00" in joined
    assert (
        "alg3, shares of wifi: client 1 alg3 50.0 %, client 2 curl-wifi 25.0 %, "
        "flow 1 bulk down wifi 25.0 %; Jain's index 0.889"
    ) in joined


def test_json_has_the_medians_by_title() -> None:
    document: Any = tables.to_json(shared(0.02, 0.04, 0.09))
    (row,) = document["rows"]
    assert row["traffic"]["1 bulk down wifi"] == {"goodput_bps": 8e6}
    assert row["traffic"]["2 call up lte"]["delay_p95_s"] == 0.04
    assert row["clients"]["client 2 curl-wifi"] == {"download_s": 9.0, "goodput_bps": 8e6}
    assert row["shares"]["wifi"]["client 1 alg3"] == 0.5
    assert row["jain"] == {"wifi": 0.889}
