"""Tests energy models as files: read, written, refused with file, line and key."""

from dataclasses import replace
from pathlib import Path

import pytest

from linklab.core.link_kinds import LTE, WIFI
from linklab.energy import library, model
from linklab.schema.document import ScenarioError

WHOLE = """\
name: mine
device: A phone
source: My own meter
base: 700 mW
both: -20 mW
processor: 900 mW
links:
  wifi: {active: 400 mW, down: 12 mJ/Mbit}
  lte:
    active: 500 mW
    promotion: {power: 1210.7 mW, time: 260 ms}
    tail:
      - {power: 1 mW, time: 1 s, state: drx}
      - {power: 2 mW, time: 2 s}
"""


@pytest.mark.parametrize("name", library.names())
def test_those_that_ship_are_whole_and_written_as_they_are_read(name: str) -> None:
    one = library.get(name)
    assert {WIFI.name, LTE.name} <= set(one.links)
    assert library.parse(model.to_yaml(one)) == replace(one, fitted_to=())


def test_what_a_model_was_fitted_to_changes_no_run() -> None:
    """It is not in the run directory, nor in a fingerprint."""
    fitted = (
        "fitted_to: [{publication: thesis, metrics: [energy, power-mean], link: lte, "
        "cells: {ts: [alg1, alg3]}}]\n"
    )
    with_it, without = library.parse(WHOLE + fitted), library.parse(WHOLE)
    (figures,) = with_it.fitted_to
    assert (figures.publication, figures.metrics) == ("thesis", ("energy", "power-mean"))
    assert model.to_yaml(with_it) == model.to_yaml(without)
    assert figures.covers("energy", "lte", "ts", "alg3")
    for other in (
        ("power-p90", "lte", "ts", "alg3"),
        ("energy", "wifi", "ts", "alg3"),
        ("energy", "lte", "tm", "alg3"),
        ("energy", "lte", "ts", "alg2"),
    ):
        assert not figures.covers(*other)


def test_all_terms_are_read() -> None:
    one = library.parse(WHOLE)
    assert (one.base_mw, one.shared_mw, one.both_mw, one.processor_mw) == (700, 0, -20, 900)
    lte = one.link(LTE)
    assert lte.promotion == model.Promotion(1210.7, 0.26)
    assert lte.tail == (model.TailState(1, 1, "drx"), model.TailState(2, 2))
    assert lte.tail_s == 3
    assert library.parse(model.to_yaml(one)) == one


def test_what_a_model_does_not_say_is_nothing() -> None:
    one = library.parse("{name: mine, device: A phone, source: My meter, links: {wifi: {}}}")
    assert (one.base_mw, one.phone_mw, one.shared_mw, one.both_mw, one.processor_mw) == (0,) * 5
    wifi = one.link(WIFI)
    assert (wifi.active_mw, wifi.down_mj_per_mbit, wifi.up_mj_per_mbit, wifi.idle_mw) == (0,) * 4
    assert (wifi.promotion, wifi.tail, wifi.tail_s) == (None, (), 0)


def test_a_second_link_may_cost_nothing() -> None:
    assert library.parse(WHOLE.replace("-20 mW", "-400 mW")).both_mw == -400


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("700 mW", "700", "m.yaml:4: base: '700' is no measure in mW"),
        ("700 mW", "-1 mW", "m.yaml:4: base: '-1 mW' is out of range"),
        ("12 mJ/Mbit", "12 mW", "m.yaml:8: links.wifi.down: '12 mW' is no measure in mJ/Mbit"),
        ("active: 500", "activ: 500", "m.yaml:10: links.lte: unknown key 'activ' (did you mean"),
        ("  wifi:", "  wimax:", "m.yaml:8: links: unknown key 'wimax'"),
        ("time: 2 s", "time: 2", "m.yaml:14: links.lte.tail[1].time: '2' has no unit"),
        ("-20 mW", "-401 mW", "m.yaml:5: both: a further link would draw less than nothing"),
        ("source: My own meter\n", "", "m.yaml:1: 'source' is missing"),
        ("device: A phone\n", "", "m.yaml:1: 'device' is missing"),
        ("name: mine\n", "", "m.yaml:1: 'name' is missing"),
        (WHOLE[WHOLE.index("links:") :], "", "m.yaml:1: 'links' is missing"),
        ("power: 1210.7 mW, ", "", "m.yaml:11: links.lte.promotion: 'power' is missing"),
        (", time: 260 ms", "", "m.yaml:11: links.lte.promotion: 'time' is missing"),
        ("power: 2 mW, ", "", "m.yaml:14: links.lte.tail[1]: 'power' is missing"),
        (", time: 2 s", "", "m.yaml:14: links.lte.tail[1]: 'time' is missing"),
        (
            "links:\n",
            "fitted_to: [{metrics: [energy], cells: {ts: [alg1]}}]\nlinks:\n",
            "m.yaml:7: fitted_to[0]: 'publication' is missing",
        ),
        ("name: mine", "name: yours", "m.yaml:1: name: 'yours' differs from the file's name"),
    ],
)
def test_errors_have_file_line_and_key(old: str, new: str, message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        library.parse(WHOLE.replace(old, new), "m.yaml", stem="mine")
    assert str(error.value).startswith(message)


def test_a_model_is_found_by_name_or_path(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(WHOLE)
    assert library.get("mine.yaml", tmp_path).device == "A phone"
    with pytest.raises(ScenarioError, match=r"called 'galaxy-s8' \(did you mean 'galaxy-s[67]'"):
        library.get("galaxy-s8")
    with pytest.raises(ScenarioError, match=r"there is no such energy model"):
        library.get("yours.yaml", tmp_path)
