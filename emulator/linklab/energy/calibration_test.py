"""Tests the fit: it finds known models again, and fits the thesis' rows as they ship."""

from dataclasses import replace
from pathlib import Path

import pytest

from linklab.energy import calibration, library
from linklab.energy.calibration import CalibrationError, LinkUse, MeasuredEnergy
from linklab.energy.model import EnergyModel, LinkEnergy, TailState


def rows_of(name: str) -> list[MeasuredEnergy]:
    return calibration.parse((library.MODELS / f"{name}.csv").read_text(encoding="utf-8"))


S7_TERMS = ("both", "wifi.active", "wifi.down", "lte.active", "lte.down", "wifi.tail", "lte.tail")


def test_the_model_of_the_s7_is_what_its_rows_give() -> None:
    """29 rows; an earlier fit without the idle power had an rms of 5.9 and 7.6 % left out."""
    rows, shipped = rows_of("galaxy-s7"), library.get("galaxy-s7")
    assert len(rows) == 29
    assert (*calibration.usual_terms(rows), "wifi.tail", "lte.tail") == S7_TERMS
    unfitted = replace(
        shipped,
        both_mw=1.0,
        links={
            kind: replace(
                one,
                active_mw=1.0,
                down_mj_per_mbit=1.0,
                tail=tuple(replace(state, power_mw=1.0) for state in one.tail),
            )
            for kind, one in shipped.links.items()
        },
    )
    found = calibration.fit(rows, unfitted, S7_TERMS)
    assert calibration.rounded(found.model) == replace(shipped, fitted_to=())
    assert found.rms == pytest.approx(0.051, abs=0.0005)
    assert found.left_out_rms == pytest.approx(0.066, abs=0.0005)


def test_the_model_of_the_s6_takes_the_s7_s_but_for_two_terms() -> None:
    rows, shipped = rows_of("galaxy-s6"), library.get("galaxy-s6")
    found = calibration.fit(rows, library.get("galaxy-s7"), ("both", "lte.active"))
    made = calibration.rounded(found.model)
    said = {key: getattr(shipped, key) for key in ("name", "device", "source", "fitted_to")}
    assert made.fitted_to == (), "not the rows of the model to start from"
    assert replace(made, **said) == shipped
    assert found.rms == pytest.approx(0.031, abs=0.0005)
    assert found.left_out_rms == pytest.approx(0.053, abs=0.0005)


TRUTH = EnergyModel(
    "truth",
    "x",
    "y",
    {
        "wifi": LinkEnergy(
            active_mw=300, down_mj_per_mbit=9, up_mj_per_mbit=30, tail=(TailState(100, 1.0),)
        ),
        "lte": LinkEnergy(active_mw=900, down_mj_per_mbit=14, tail=(TailState(400, 10.0),)),
    },
    base_mw=600,
    both_mw=-50,
)


def made(n: int) -> MeasuredEnergy:
    wifi = LinkUse(5.0 + n, 100.0 + 7 * n * n % 90, 1.0 + n % 3)
    lte = LinkUse(3.0 + 2 * (n % 4), 40.0 * (1 + n % 5))
    links = {"wifi": wifi, "lte": lte} if n % 3 else {"lte": lte}
    row = MeasuredEnergy(f"{n}", max(use.active_s for use in links.values()), 1.0, None, links)
    tail_mj = sum(calibration._tail_mj(row, kind, TRUTH.links[kind]) for kind in links)
    return replace(row, energy_j=calibration.energy_mj(TRUTH, row) / 1e3, tail_j=tail_mj / 1e3)


def test_the_energy_of_a_row_by_hand() -> None:
    """Of three links the shorter two count as further ones, for as long as each is active."""
    model = replace(TRUTH, links={**TRUTH.links, "5g": LinkEnergy(active_mw=70)}, shared_mw=20)
    links = {"wifi": LinkUse(5.0, 10.0, 2.0), "lte": LinkUse(8.0, 3.0), "5g": LinkUse(6.0, 1.0)}
    row = MeasuredEnergy("x", 9.0, 1.0, None, links)
    own_mj = 5 * 300 + 10 * 9 + 2 * 30 + 8 * 900 + 3 * 14 + 6 * 70
    assert calibration.energy_mj(model, row) == 9 * 600 + 8 * 20 + (5 + 6) * -50 + own_mj
    assert calibration.energy_mj(model, replace(row, links={})) == 9 * 600


def test_a_known_model_is_found_again() -> None:
    rows = [made(n) for n in range(14)]
    start = replace(
        TRUTH,
        both_mw=0.0,
        links={
            k: replace(
                v,
                active_mw=0.0,
                down_mj_per_mbit=0.0,
                up_mj_per_mbit=0.0,
                tail=tuple(replace(s, power_mw=7.0) for s in v.tail),
            )
            for k, v in TRUTH.links.items()
        },
    )
    terms = (*calibration.usual_terms(rows), "wifi.tail", "lte.tail")
    found = calibration.fit(rows, start, terms)
    assert calibration.rounded(found.model) == TRUTH
    assert found.rms == pytest.approx(0, abs=1e-9)
    assert found.left_out_rms == pytest.approx(0, abs=1e-6)


STEPS = LinkEnergy(active_mw=900, tail=(TailState(600, 1.0), TailState(300, 2.0)))


@pytest.mark.parametrize(
    ("active_s", "tail_mj", "phone_mj"),
    [(10.0, 600 + 600, 3 * 200), (9.5, 300 + 600, 2.5 * 200), (8.5, 450, 1.5 * 200), (6.0, 0, 0)],
)
def test_the_tail_of_a_row_by_hand(active_s: float, tail_mj: float, phone_mj: float) -> None:
    """What is over when the download ends counts no more. The phone goes on until the tail ends."""
    model = replace(TRUTH, links={"lte": STEPS}, phone_mw=200.0)
    row = MeasuredEnergy("x", 10.0, 1.0, None, {"lte": LinkUse(active_s)})
    assert calibration._tail_mj(row, "lte", STEPS) == tail_mj
    assert calibration._tail_mj(row, "wifi", STEPS) == 0
    assert calibration._phone_mj(row, model) == phone_mj
    longer = {"lte": LinkUse(active_s), "wifi": LinkUse(10.0), "5g": LinkUse(10.0)}
    both = replace(TRUTH, links={"lte": STEPS, "wifi": TRUTH.links["wifi"]}, phone_mw=200.0)
    assert calibration._phone_mj(replace(row, links=longer), both) == max(phone_mj, 200)


def test_a_tail_is_what_the_phone_and_other_tails_leave() -> None:
    model = replace(TRUTH, links={"wifi": TRUTH.links["wifi"], "lte": STEPS}, phone_mw=200.0)
    rows = []
    for active_s, tail_j in ((10.0, 1.2 + 0.1 + 3 * 0.2), (8.5, 0.45 + 0.1 + 1.5 * 0.2)):
        links = {"wifi": LinkUse(10.0), "lte": LinkUse(active_s)}
        rows.append(MeasuredEnergy("x", 10.0, 1.0, tail_j, links))
    start = replace(model, links={**model.links, "lte": replace(STEPS, tail=_scaled(2.0))})
    found = calibration.fit(rows, start, ("lte.tail",)).model
    assert [one.power_mw for one in found.links["lte"].tail] == pytest.approx([600, 300])
    assert found.links["wifi"] == model.links["wifi"]
    with pytest.raises(CalibrationError, match="1 rows with tail_j for 1 tails"):
        calibration.fit([rows[0], replace(rows[1], tail_j=None)], start, ("lte.tail",))


def _scaled(by: float) -> tuple[TailState, ...]:
    return tuple(replace(one, power_mw=one.power_mw * by) for one in STEPS.tail)


def test_errors_are_relative_to_what_was_measured() -> None:
    """One term over three downloads of 1 s: the least squares of m/e - 1 for e = 1, 2 and 4 J."""
    rows = [MeasuredEnergy(f"{e}", 1.0, e, None, {"wifi": LinkUse(1.0)}) for e in (1.0, 2.0, 4.0)]
    bare = replace(TRUTH, base_mw=0.0, links={"wifi": LinkEnergy()})
    found = calibration.fit(rows, bare, ("wifi.active",))
    power_w = (1 + 1 / 2 + 1 / 4) / (1 + 1 / 4 + 1 / 16)
    assert found.model.links["wifi"].active_mw == pytest.approx(power_w * 1e3)
    errors = [power_w / e - 1 for e in (1, 2, 4)]
    assert [one.error for one in found.residuals] == pytest.approx(errors)
    assert found.rms == pytest.approx((sum(one * one for one in errors) / 3) ** 0.5)
    without_first_w = (1 / 2 + 1 / 4) / (1 / 4 + 1 / 16)
    assert found.residuals[0].left_out_error == pytest.approx(without_first_w - 1)


def test_a_model_for_a_file_is_rounded() -> None:
    link = LinkEnergy(300.6, 9.126, 30.004, idle_mw=1.5, tail=(TailState(99.6, 1.25),))
    one = replace(
        TRUTH,
        base_mw=600.4,
        phone_mw=1.6,
        shared_mw=2.4,
        both_mw=-49.6,
        links={"wifi": link},
    )
    shown = LinkEnergy(301.0, 9.13, 30.0, idle_mw=1.5, tail=(TailState(100.0, 1.25),))
    rounded = calibration.rounded(one)
    assert rounded == replace(
        one, base_mw=600, phone_mw=2, shared_mw=2, both_mw=-50, links={"wifi": shown}
    )


def test_rows_are_read_from_csv() -> None:
    text = (
        "row, download_s,energy_j,tail_j,lte_s,lte_mbit,lte_up_mbit,wifi_s\n"
        "first,2,5,0.5,1.5,20,3,0\n"
        "\n  \n,,,,,,,\n"
        " ,4,9,,,,,4\n"
    )
    first, second = calibration.parse(text)
    assert first == MeasuredEnergy("first", 2.0, 5.0, 0.5, {"lte": LinkUse(1.5, 20.0, 3.0)})
    assert second == MeasuredEnergy("6", 4.0, 9.0, None, {"wifi": LinkUse(4.0)})
    assert calibration.usual_terms([first]) == ("lte.active", "lte.down", "lte.up")
    assert calibration.usual_terms([second]) == ("wifi.active",)
    together = replace(second, links={"wifi": LinkUse(4.0), "lte": LinkUse(0.5)})
    assert calibration.usual_terms([together]) == ("both", "wifi.active", "lte.active")
    with pytest.raises(CalibrationError, match=r"<text>:1: .* given twice"):
        calibration.parse("download_s,energy_j,energy_j\n")


def test_powers_stay_above_zero_but_for_what_links_share() -> None:
    rows = [replace(made(n), energy_j=0.1 * made(n).download_s) for n in range(14)]
    found = calibration.fit(rows, TRUTH, calibration.usual_terms(rows))
    powers = [(one.active_mw, one.down_mj_per_mbit) for one in found.model.links.values()]
    assert min(min(pair) for pair in powers) == 0
    assert found.model.both_mw < 0


def test_what_cannot_be_told_apart_is_refused() -> None:
    rows = [made(n) for n in range(14)]
    with pytest.raises(CalibrationError, match="cannot tell base, shared apart"):
        calibration.fit(rows, TRUTH, ("base", "shared"))
    with pytest.raises(CalibrationError, match="no row has anything of lte.up"):
        calibration.fit(rows, TRUTH, ("lte.up",))
    with pytest.raises(CalibrationError, match="2 rows for 2 terms"):
        calibration.fit(rows[:2], TRUTH, ("base", "wifi.active"))
    with pytest.raises(CalibrationError, match="no term is called 'wifi'"):
        calibration.fit(rows, TRUTH, ("wifi",))
    with pytest.raises(CalibrationError, match="has no tail of wifi"):
        bare = replace(TRUTH, links={**TRUTH.links, "wifi": LinkEnergy()})
        calibration.fit(rows, bare, ("wifi.tail",))


HEADER = "row,download_s,energy_j,wifi_s,wifi_mbit\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "rows.csv:1: a column is missing or given twice; needed: download_s, energy_j"),
        ("row,download_s,energy_j,wimax_s\n", "rows.csv:1: unknown column 'wimax_s'"),
        (HEADER + "a,1,2,1\n", "rows.csv:2: 4 values for 5 columns"),
        (HEADER + "a,1,2,1,1\nb,1,x,1,1\n", "rows.csv:3: energy_j: 'x' is not a number"),
        (HEADER + "a,1,inf,1,1\n", "rows.csv:2: energy_j: 'inf' is not a number"),
        (HEADER + "a,1,-2,1,1\n", "rows.csv:2: energy_j: '-2' is not a number of at least 0"),
        (HEADER + "a,,2,1,1\n", "rows.csv:2: download_s: is ''; needed: more than 0"),
        (HEADER + "a,1,2,3,1\n", "rows.csv:2: wifi_s: 3 s of a download of 1 s"),
    ],
)
def test_bad_rows_are_said_with_their_line(text: str, message: str) -> None:
    with pytest.raises(CalibrationError) as error:
        calibration.parse(text, "rows.csv")
    assert str(error.value).startswith(message)


def test_the_rows_that_ship_are_the_thesis_tables() -> None:
    folder = Path(__file__).parents[1] / "core" / "testdata"
    times = _table(folder / "thesis-5.12.csv")
    energies = _table(folder / "thesis-7.10.csv")
    rows = {row.label: row for name in ("galaxy-s7", "galaxy-s6") for row in rows_of(name)}
    assert len(rows) == len(times) == len(energies) == 35
    for label, time in times.items():
        row, energy = rows[label], energies[label]
        assert row.download_s == float(time["download_s"])
        assert (row.energy_j, row.tail_j) == (
            float(energy["main_integral_j"]),
            float(energy["tail_integral_j"]),
        )
        for kind in row.links:
            mbit = float(time[f"{kind}_mbps"]) * float(time[f"{kind}_s"])
            assert row.links[kind].down_mbit == pytest.approx(mbit, abs=0.06)


def _table(path: Path) -> dict[str, dict[str, str]]:
    lines = [line.split(",") for line in path.read_text().splitlines()]
    found = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    return {f"{one['scenario']} {one['approach']}": one for one in found}


def test_a_scenario_is_left_out_as_a_whole() -> None:
    rows, start = rows_of("galaxy-s7"), library.get("galaxy-s7")
    errors = calibration.left_out_errors(rows, start)
    others = [row for row in rows if not row.label.startswith("ls ")]
    without = calibration.fit(others, start, calibration.usual_terms(others)).model
    at = next(n for n, row in enumerate(rows) if row.label == "ls naive")
    assert errors[at] == pytest.approx(
        calibration.energy_mj(without, rows[at]) / rows[at].energy_j / 1e3 - 1
    )
    with pytest.raises(CalibrationError, match="all rows are of ls; needed: two scenarios"):
        calibration.left_out_errors([row for row in rows if row.label.startswith("ls ")], start)
