import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import correlation

import msgspec
import pytest
from rich.console import Console

from linklab import scenario
from linklab.core.statistics import LEAST_VALUES, Interval
from linklab.energy.account import EnergyFigures
from linklab.report import publication, reproduction, reproduction_showing, statement
from linklab.report.publication import Publication
from linklab.report.reproduction import CheckedStatement, Verdict
from linklab.report.statement import Statement
from linklab.runs.job_test import JOB
from linklab.runs.loaded_runs import LoadedRun
from linklab.runs.run_figures import LinkFigures, ProcessFigures, RunFigures

TEXT = """\
name: x
title: A paper
source: thesis
unknowns:
  - what: LTE's rate
    fitted_to: [{metrics: [download], cells: {ts: [single-lte]}}]
statements:
  - {metric: download, source: table 1, within: 5 %, values: {ts: {single-lte: 20 s}}}
  - {metric: download, source: table 1, within: 10 %, values: {ts: {alg3: 9.5 s, naive: 40 s}}}
  - {metric: download, source: text, each: [ts], of: alg3, to: [naive, single-lte], is: less}
  - {metric: goodput, source: text, each: [ts], of: alg3, to: [naive, single-lte],
     ratio: 150 % to 250 %}
  - {metric: link-delta, source: table 1, within: 1 s, values: {ts: {alg3: 2 s}}}
  - {metric: link-deviation, link: lte, source: table 1, within: 10 %,
     values: {ts: {alg3: 1 Mbit/s}}}
  - {metric: download, with: goodput, source: text, correlation: -1, within: 0.2,
     cells: {ts: [alg3, naive, single-lte]}}
  - {metric: download, source: text, each: [tm], of: alg3, to: [naive], is: less}
"""


def paper(*statements: str) -> Publication:
    """A publication of these statements, which it calls its source."""
    lines = "".join(f"  - {{source: s, {one}}}\n" for one in statements)
    head = "name: x\ntitle: A paper\nsource: thesis\nstatements:\n"
    return publication.parse(head + lines, "x.yaml")


@pytest.fixture(scope="module")
def stated() -> Publication:
    return publication.parse(TEXT, "x.yaml")


def run(who: str, seed: int, download_s: float, ends_s: Sequence[float] = ()) -> LoadedRun:
    figures = RunFigures(
        download_s=download_s,
        goodput_bps=1e9 / download_s,
        oracle_s=9.0,
        efficiency=9 / download_s,
        link_delta_s=0.0,
        links={
            name: LinkFigures(bytes=1, share=0.5, finish_s=end)
            for name, end in zip(("wifi", "lte"), ends_s, strict=False)
        },
    )
    return LoadedRun(
        Path(f"{who}-{seed}"),
        msgspec.structs.replace(JOB, client=who, seed=seed),
        scenario.find("ts"),
        figures,
        rates_bps={"lte": 80e6 + 1e6 * (-1, 0, 1, -1, 1)[(seed - 1) % 5]},
    )


def runs() -> list[LoadedRun]:
    made = []
    for seed, slow in ((1, 0.0), (2, 1.0), (3, 3.0), (4, 0.0), (5, 3.0)):
        made += [
            # The links' ends have the medians 9 and 11, their differences 2 but for one.
            run("alg3", seed, 10 + slow, [9 + slow * 0, 11 + slow * 2 * (seed == 3)]),
            run("naive", seed, 50 + slow),
            run("single-lte", seed, 20 + slow),
        ]
    return made


def checked(stated: Publication, runs: list[LoadedRun]) -> list[CheckedStatement]:
    return reproduction.check(stated, reproduction.by_cell(runs))


@pytest.fixture(scope="module")
def found(stated: Publication) -> list[CheckedStatement]:
    """The statements checked by `runs`. Intervals take a second."""
    return checked(stated, runs())


def test_each_statement_has_its_verdict(found: list[CheckedStatement]) -> None:
    assert [(one.verdict, one.measured) for one in found] == [
        ("holds", 21.0),
        ("fails", 11.0),
        ("fails", 51.0),
        ("holds", pytest.approx(11 / 21)),
        ("holds", pytest.approx(21 / 11)),
        ("holds", pytest.approx(2.0)),
        ("holds", pytest.approx(1e6)),
        ("holds", pytest.approx(correlation([11, 51, 21], [1 / 11, 1 / 51, 1 / 21]))),
        ("no runs", None),
    ]
    assert [one.runs for one in found] == [5] * 8 + [0]


def test_a_sum_is_of_all_its_parts() -> None:
    """The rates are 100, 20 and 50 Mbit/s."""
    parts = "each: [ts], of: alg3, to_sum: [naive, single-lte]"
    stated = paper(
        f"metric: goodput, {parts}, is: more",
        f"metric: goodput, {parts}, difference: 30 Mbit/s, within: 1 kbit/s",
        f"metric: download, {parts}, ratio: 15 %, within: 1 %",
        "metric: goodput, each: [ts], of: single-lte, to_sum: [naive, alg3], is: more",
    )
    found = checked(
        stated, [run("alg3", 1, 10.0), run("naive", 1, 50.0), run("single-lte", 1, 20.0)]
    )
    assert [one.verdict for one in found] == ["holds", "holds", "holds", "fails"]
    measured = [one.measured for one in found]
    assert measured == pytest.approx([100 / 70, 30e6, 10 / 70, 50 / 120])
    assert reproduction_showing.to_json(stated, found, None)["statements"][0]["sums"]


def costing(run: LoadedRun, radios_j: float, window_s: float) -> LoadedRun:
    """The run by a model in which the phone itself draws 1 W, and radios sleep after `window_s`."""
    assert run.figures is not None
    joules = radios_j + window_s
    energy = EnergyFigures(
        "x", joules, joules / 1e6, joules, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, {}, None, window_s
    )
    return replace(run, figures=replace(run.figures, energy=replace(energy, window_s=window_s)))


def test_compared_clients_pay_the_phone_for_the_same_time() -> None:
    """alg3's radios draw 2 J and sleep after 5 s; the others' draw more, and sleep later."""
    stated = paper(
        "metric: energy, each: [ts], of: alg3, to: [naive], is: less",
        "metric: energy, each: [ts], of: alg3, to: [naive, single-lte], is: less",
        "metric: energy, within: 1 %, values: {ts: {alg3: 7 J}}",
    )
    paid = [
        costing(run("alg3", 1, 4.0), 2.0, 5.0),
        costing(run("naive", 1, 5.0), 20.0, 10.0),
        costing(run("single-lte", 1, 6.0), 8.0, 30.0),
        # Another seed has a time of its own.
        costing(run("alg3", 2, 4.0), 2.0, 5.0),
        costing(run("naive", 2, 5.0), 20.0, 10.0),
        costing(run("single-lte", 2, 6.0), 8.0, 30.0),
        costing(run("single-lte", 3, 6.0), 8.0, 99.0),
    ]
    one, best, alone = checked(stated, paid)
    assert one.measured == pytest.approx((2 + 10) / (20 + 10))
    assert best.measured == pytest.approx((2 + 30) / (8 + 30))
    assert alone.measured == pytest.approx(2 + 5), "nothing is compared"


def test_the_goodput_of_bursts_is_the_payload_by_their_length() -> None:
    pair = "each: [ts], of: alg3, to: [naive]"
    stated = paper(f"metric: burst-goodput, {pair}, ratio: 50 %, within: 1 %")
    both = [costing(run("alg3", 1, 4.0), 2.0, 5.0), costing(run("naive", 1, 5.0), 2.0, 5.0)]
    assert [one.verdict for one in checked(stated, both)] == ["no runs"], "no times of packets"
    known = [
        replace(one, figures=replace(one.figures, energy=replace(one.figures.energy, bursts_s=s)))
        for one, s in zip(both, (2.0, 1.0), strict=True)
        if one.figures is not None and one.figures.energy is not None
    ]
    (found,) = checked(stated, known)
    assert found.verdict == "holds"
    assert found.measured == pytest.approx(0.5)


def test_a_difference_is_of_the_best_of_the_others() -> None:
    others = "each: [ts], of: naive, to: [alg3, single-lte]"
    stated = paper(f"metric: download, {others}, difference: 41 s, within: 2 s")
    (found,) = checked(stated, runs())
    assert (found.verdict, found.measured, found.error) == ("holds", 51 - 11, -1)


def test_a_count_is_of_cases_in_which_one_of_the_clients_is_better() -> None:
    """alg3 takes 11 s, naive 51 s and LTE alone 21 s. In the one case one of two clients is better,
    in the other neither."""
    cases = (
        "{each: [ts], of: [naive, alg3], to: [single-lte]}, {each: [ts], of: [naive], to: [alg3]}"
    )
    (found,) = checked(
        paper(f"metric: download, better_in: 2, within: 0, cases: [{cases}]"), runs()
    )
    assert (found.verdict, found.measured, found.runs) == ("fails", 1.0, 5)
    assert found.interval is not None and found.clear
    assert (found.interval.low, found.interval.high) == (1.0, 1.0)
    assert reproduction_showing.measured_text(found) == "1"
    assert (
        checked(paper(f"metric: download, better_in: 1, within: 0, cases: [{cases}]"), [])[
            0
        ].verdict
        == "no runs"
    )


def test_of_a_range_there_is_no_error() -> None:
    stated = paper("metric: efficiency, values: {ts: {alg3: 80 % to 90 %}}")
    (found,) = checked(stated, runs())
    assert (found.verdict, found.error) == ("holds", None)
    assert found.measured == pytest.approx(9 / 11)
    assert "  efficiency: 1 of 1 values" in shown([found]).splitlines()


def looked_at(load: float) -> dict[str, dict[str, ProcessFigures]]:
    """A client on the real clock."""
    one = ProcessFigures(20, load / 2, load, load, load, 0.1, load * 9, 15e6, 0.01, 3e8)
    return {"client": {"1 Hz": one}}


def test_processor_load_is_of_the_real_clock_alone() -> None:
    stated = paper(
        "metric: cpu-median, each: [ts], of: alg3, to: [naive], ratio: 50 %, within: 10 %",
        "metric: memory, values: {ts: {alg3: 15000 kB}}, within: 1 %",
    )
    assert stated.cells == [], "nothing to be run in virtual time"
    virtual = [run("alg3", 1, 10.0), run("naive", 1, 40.0)]
    found = reproduction.check(stated, reproduction.by_cell(virtual))
    assert [(one.verdict, one.measured) for one in found] == [("not applicable", None)] * 2
    said = list(reproduction_showing.summary(found, None))
    assert [line for line in said if line.startswith("not applicable in virtual time: 2, ")]
    real = [
        replace(
            one,
            job=msgspec.structs.replace(one.job, clock="real"),
            figures=replace(one.figures, processes=looked_at(load)),
        )
        for one, load in zip(virtual, (0.3, 0.6), strict=True)
        if one.figures is not None
    ]
    found = reproduction.check(stated, reproduction.by_cell(real))
    assert [one.verdict for one in found] == ["holds", "holds"]
    assert found[0].measured == pytest.approx(0.5)
    assert found[1].measured == pytest.approx(15_000)
    assert reproduction.check(stated, reproduction.by_cell([*virtual, *real])) == found


def on_the_real_clock(run: LoadedRun) -> LoadedRun:
    return replace(run, job=msgspec.structs.replace(run.job, clock="real"))


def on_the_host(run: LoadedRun) -> LoadedRun:
    return replace(run, job=msgspec.structs.replace(run.job, place="host", clock="real"))


@pytest.mark.parametrize(
    ("kept", "other"),
    [(lambda run: run, on_the_real_clock), (on_the_real_clock, on_the_host)],
    ids=["clocks", "places"],
)
def test_clocks_and_places_never_come_together(
    stated: Publication,
    kept: Callable[[LoadedRun], LoadedRun],
    other: Callable[[LoadedRun], LoadedRun],
) -> None:
    first = list(map(kept, runs()))
    slow = [
        other(run(who, seed, 99.0)) for who in ("alg3", "naive", "single-lte") for seed in (1, 7)
    ]
    assert checked(stated, [*first, *slow]) == checked(stated, first)
    assert checked(stated, slow)[1].measured == 99.0
    only_naive = [one for one in first if one.client_name == "naive"]
    assert checked(stated, [*only_naive, *slow])[3].measured == 1.0, "and not 99 / 51"


def test_intervals_are_over_seeds_and_repeat(
    stated: Publication, found: list[CheckedStatement]
) -> None:
    assert found == checked(stated, runs())
    download, faster = found[1].interval, found[3].interval
    assert download is not None
    assert faster is not None
    assert (download.low, download.high) == (10, 13)
    assert not found[1].clear, "10 s would be within the tolerance"
    # The seeds are drawn together: 10/20, 11/21 and 13/23, never 10/23.
    assert (faster.low, faster.high) == pytest.approx((10 / 20, 13 / 23))
    assert found[3].clear


@pytest.mark.parametrize("count", range(1, LEAST_VALUES))
def test_few_runs_have_no_interval_and_are_never_clear(stated: Publication, count: int) -> None:
    found = checked(stated, [one for one in runs() if one.job.seed <= count])
    assert (found[3].verdict, found[3].runs) == ("holds", count)
    assert found[3].interval is None
    assert not found[3].clear
    assert reproduction_showing.verdict(found[3]) == "holds?"
    assert (found[6].verdict == "no runs") == (count == 1), "one run does not stray"


def test_failed_runs_do_not_count_and_the_same_run_not_twice(stated: Publication) -> None:
    all_runs = runs()
    failed = [replace(one, figures=None) for one in all_runs]
    assert {one.verdict for one in checked(stated, failed)} == {"no runs"}
    with pytest.raises(ValueError, match="the same run twice: alg3-1 and alg3-1"):
        checked(stated, [*all_runs, all_runs[0]])


def shown(found: list[CheckedStatement]) -> str:
    console = Console(file=io.StringIO(), width=80)
    reproduction_showing.show(found, None, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_lab_is_shown_beside_rules_that_measure_nothing(
    stated: Publication, found: list[CheckedStatement]
) -> None:
    """Of 5 outcomes with runs and of one line each, the lab has 4. Without runs by arithmetic that
    rule hits none."""
    skill = reproduction.skill(found, reproduction.by_cell(runs()), {})
    assert skill is not None
    outcomes = [one for one in found if one.statement.kind == "outcome"]
    assert (skill.of, skill.lab) == (7, sum(one.verdict == "holds" for one in outcomes))
    assert skill.arithmetic == 0
    text = "\n".join(reproduction_showing.summary(found, skill))
    assert f"the lab {skill.lab} of 7" in text
    assert "signs always better (1 of 1)" in text
    assert "evidence for the lab" in text
    told = reproduction_showing.to_json(stated, found, skill)["skill"]
    assert (told["lab"], told["skill"]) == (skill.lab, skill.skill)
    assert told["interval"] == [skill.interval.low, skill.interval.high]
    assert reproduction.skill([], {}, {}) is None


def test_a_table_of_80_columns(found: list[CheckedStatement]) -> None:
    text = shown(found)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    (alg3,) = (line for line in lines if line.startswith("ts alg3") and "9.5 s" in line)
    assert " ".join(alg3.split()) == "ts alg3 9.5 s 11.00 s 10.00 to 13.00 s fails?"
    heading = lines.index("ratio of goodput: alg3 to the best of naive, single-lte (text)")
    assert lines[heading + 2].startswith("ts  150 % to 250 % "), "whose it is stands above"
    assert "calibration: 1 of 1 hold; 0 verdicts are clear" in lines
    assert "  download: 0 of 2 values, median error 21.6 %, rms 22.4 %; 2 of 2 comparisons" in lines
    assert "  link-delta: 1 of 1 values, median error 0.00 s" in lines
    assert "without runs or figures: 1" in lines


EXPLAINED = f"""\
name: x
title: A paper
source: thesis
statements:
  - {{metric: download, source: table 1, within: 10 %, why: "{"a phone is slower, " * 6}it says",
     values: {{ts: {{alg3: 9.5 s, naive: 40 s, single-lte: 21 s}}}}}}
  - {{metric: download, source: text, each: [ts], of: alg3, to: [naive], is: more, why: one}}
  - {{metric: download, source: text, each: [ts], of: alg3, to: [single-lte], is: more}}
  - {{metric: download, source: text, each: [ts], of: naive, to: [alg3], is: more, why: holds}}
  - {{metric: goodput, source: text, kind: does not follow, why: sums, each: [ts], of: alg3, to: [naive],
     is: more}}
"""


def test_a_miss_is_explained_once_below_its_table() -> None:
    found = checked(publication.parse(EXPLAINED, "x.yaml"), runs())
    assert [one.verdict for one in found] == ["fails"] * 2 + ["holds"] + ["fails"] * 2 + [
        "holds"
    ] * 2
    first, second, third = map(reproduction_showing.reasons, reproduction_showing.tables(found))
    assert first == [f"why: {'a phone is slower, ' * 6}it says"]
    assert second == ["why (ts: alg3 to naive): one"]
    assert third == ["why: sums"], "though it holds"
    lines = shown(found).splitlines()
    assert max(map(len, lines)) <= 80
    begin = next(number for number, line in enumerate(lines) if line.startswith("why: a phone"))
    assert lines[begin - 1].startswith("ts single-lte")
    assert " ".join(lines[begin : begin + 2]) == first[0]
    (outcome,) = (line for line in lines if line.startswith("outcome: "))
    assert outcome == (
        "outcome: 2 of 6 hold; 5 verdicts are clear; 3 of the 4 misses are explained"
    )
    (sums,) = (line for line in lines if line.startswith("does not follow: "))
    assert "misses" not in sums
    told = reproduction_showing.to_json(publication.parse(EXPLAINED, "x.yaml"), found, None)
    assert told["counts"]["outcome"]["explained"] == 3
    assert told["statements"][3]["why"] == "one"


KINDS = """\
name: x
title: A paper
source: thesis
unknowns:
  - what: LTE's rate
    fitted_to: [{metrics: [download], cells: {ts: [single-lte]}}]
statements:
  - {metric: download, source: table 1, within: 20 %,
     values: {ts: {alg3: 10 s, single-lte: 20 s, naive: 12 s, alg1: 50 s}}}
  - {metric: goodput, source: text, kind: does not follow, why: sums, each: [ts], of: alg3, to: [naive],
     is: more}
"""


def test_a_client_is_compared_with_one_in_another_scenario() -> None:
    """The growth from one scenario to the next."""
    text = TEXT[: TEXT.index("unknowns")] + (
        "statements:\n"
        "  - {metric: download, source: a, each: [ts], beside: tm, of: alg3, to: [alg3], is: less}\n"
        "  - {metric: download, source: a, each: [ts, tm], of: alg3, to: [naive], is: less}\n"
    )
    stated = publication.parse(text, "x.yaml")
    slower = replace(run("alg3", 1, 40.0), scenario=scenario.find("tm"))
    grown, *_ = checked(stated, [run("alg3", 1, 10.0), slower])
    assert (grown.verdict, grown.measured) == ("holds", 0.25)
    assert grown.statement.words == "ts: alg3 to alg3 in tm"
    assert checked(stated, [run("alg3", 1, 10.0)])[0].verdict == "no runs"
    assert stated.statements[1].words == "ts: alg3 to naive"


def test_the_four_kinds_are_counted_apart_and_never_together() -> None:
    """One line a kind, and no line over several of them."""
    stated = publication.parse(KINDS, "x.yaml")
    made = [*runs(), *(run("alg1", seed, 50.0) for seed in range(1, 6))]
    found = checked(stated, made)
    summary = reproduction_showing.summary(found, None)
    assert [line for line in summary if "hold;" in line] == [
        "calibration: 1 of 1 hold; 1 verdicts are clear",
        "outcome: 1 of 1 hold; 1 verdicts are clear",
        "cannot discriminate: 1 of 2 hold; 1 verdicts are clear; the miss is not explained",
        "does not follow: 1 of 1 hold; 1 verdicts are clear",
    ]
    lines = shown(found).splitlines()
    headings = [line for line in lines if line.startswith("download") and "(table 1" in line]
    assert headings == [
        "download (table 1, cannot discriminate)",
        "download: single-lte (table 1, calibration)",
        "download: alg1 (table 1)",
    ], "statements of a kind stand together"
    assert "fitted to these, or can move them: LTE's rate" in lines
    assert "also accepted (ts alg3): naive" in lines
    told = reproduction_showing.to_json(stated, found, None)
    assert list(told["counts"]) == list(statement.KINDS)
    assert [one["kind"] for one in told["statements"]] == [
        *("cannot discriminate", "calibration", "cannot discriminate"),
        *("outcome", "does not follow"),
    ]
    assert told["statements"][0]["also_accepts"] == ["naive"]
    assert told["statements"][1]["fitted_by"] == ["LTE's rate"]


def test_a_long_name_is_broken_before_its_workload() -> None:
    (said,) = paper(
        "metric: playback, workload: greenbag-40s, each: [greenbag-segments-1-1], "
        "of: gb-100kb, to: [gb-p], is: more"
    ).statements
    lines = shown([CheckedStatement(said, "holds", 1.5)]).splitlines()
    begin = lines.index("ratio of time until all is played: gb-100kb to gb-p (s)") + 2
    first, second = (line.split()[0] for line in lines[begin : begin + 2])
    assert (first, second) == ("greenbag-segments-1-1", "+greenbag-40s")


def test_json_is_whole_and_stable(stated: Publication, found: list[CheckedStatement]) -> None:
    written = json.loads(
        json.dumps(reproduction_showing.to_json(stated, found, None), allow_nan=False)
    )
    assert list(written) == ["publication", "counts", "skill", "statements"]
    assert len(written["statements"]) == len(found)
    alg3 = written["statements"][1]
    assert " ".join(alg3) == (
        "line metric link form with of to sums source kind fitted_by constructed "
        "also_accepts why published low high verdict clear measured interval runs error_ratio"
    )
    assert (alg3["of"], alg3["interval"], alg3["error_ratio"]) == (
        ["ts/alg3"],
        [10, 13],
        pytest.approx(1.5 / 9.5),
    )
    assert written["statements"][3]["low"] is None
    assert written["counts"]["outcome"]["metrics"]["download"]["values"]["fails"] == 2


# --- Limits of a verdict, and what is counted of verdicts, by hand


TEN = "metric: download, within: 1 s, values: {ts: {alg3: 10 s}}"


@pytest.mark.parametrize(
    ("download_s", "verdict", "error"),
    [(8.99, "fails", -1.01), (9.0, "holds", -1.0), (11.0, "holds", 1.0), (11.01, "fails", 1.01)],
)
def test_a_value_at_its_limit_holds(download_s: float, verdict: Verdict, error: float) -> None:
    (found,) = checked(paper(TEN), [run("alg3", 1, download_s)])
    assert (found.verdict, found.measured, found.runs) == (verdict, download_s, 1)
    assert found.error == pytest.approx(error)
    assert found.error_ratio == pytest.approx(error / 10)


def ten() -> Statement:
    return paper(TEN).statements[0]


@pytest.mark.parametrize(
    ("verdict", "low", "high", "is_clear"),
    [
        ("holds", 9.0, 11.0, True),
        ("holds", 8.9, 10.0, False),
        ("holds", 10.0, 11.1, False),
        ("fails", 11.1, 12.0, True),
        ("fails", 11.0, 12.0, False),
        ("fails", 8.0, 8.9, True),
        ("fails", 8.0, 9.0, False),
    ],
)
def test_a_verdict_is_clear_if_no_value_of_the_interval_changes_it(
    verdict: Verdict, low: float, high: float, is_clear: bool
) -> None:
    one = CheckedStatement(ten(), verdict, 10.0, Interval(low, high), 5)
    assert one.clear is is_clear
    assert not replace(one, interval=None).clear


def test_counts_of_verdicts() -> None:
    held = CheckedStatement(ten(), "holds", 10.0, Interval(9.5, 10.5), 5)
    missed = CheckedStatement(ten(), "fails", 13.0, Interval(12.0, 14.0), 5)
    explained = replace(missed, statement=replace(ten(), why="a reason"), interval=None)
    unknown = [CheckedStatement(ten(), "no runs")]
    count = reproduction.count([held, held, missed, missed, explained, *unknown])
    assert (count.holds, count.fails, count.all) == (2, 3, 5)
    assert (count.clear, count.explained) == (4, 1)
    assert reproduction.median_error(unknown, relative=False) is None
    assert reproduction.rms_error([held, missed], relative=False) == pytest.approx(4.5**0.5)


def test_cells_with_different_seeds_count_by_the_one_with_fewest() -> None:
    naive = [run("naive", seed, 20.0 + seed) for seed in (1, 2, 3)]
    alg3 = [run("alg3", seed, 11.0) for seed in (3, 4)]
    ratio = paper("metric: download, each: [ts], of: alg3, to: [naive], ratio: 50 %, within: 1 %")
    (found,) = checked(ratio, naive + alg3)
    assert (found.verdict, found.measured, found.runs) == ("holds", 0.5, 2)
    assert checked(ratio, naive)[0].verdict == "no runs"


def test_an_undefined_value_is_no_verdict() -> None:
    same = [run(who, 1, 10.0) for who in ("alg3", "naive", "single-lte")]
    line = "metric: download, with: goodput, correlation: -1, within: 0.2, cells: {ts: [alg3, naive, single-lte]}"
    (found,) = checked(paper(line), same)
    assert (found.verdict, found.measured, found.runs) == ("no runs", None, 1)
