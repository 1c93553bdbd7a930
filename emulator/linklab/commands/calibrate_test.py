"""Tests `linklab calibrate energy`: a power meter's rows become a model."""

import json
from pathlib import Path

import pytest

from linklab.commands.cli import main
from linklab.energy import library

S7 = str(library.MODELS / "galaxy-s7.csv")


def test_the_thesis_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "energy", S7, "--model", "galaxy-s7", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["rms"] < 0.06
    assert said["left_out_rms"] < 0.076
    assert len(said["rows"]) == 29
    row = next(one for one in said["rows"] if one["label"] == "ao alg3")
    assert row["measured_j"] == 55.75
    assert row["error"] == pytest.approx(-0.033, abs=0.001)
    assert row["left_out_error"] == pytest.approx(-0.045, abs=0.001)


def test_people_see_residuals_and_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "energy", S7, "--model", "galaxy-s7"]) == 0
    said = capsys.readouterr().out
    assert ["ts", "naive", "111.63", "111.40", "-0.2", "-0.2"] in map(str.split, said.splitlines())
    assert "rms 5.1 %, leave-one-out 6.6 %, 29 rows" in said
    assert "    active: 463 mW" in said


def test_a_model_of_one_s_own_is_written_and_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "my-phone.yaml"
    words = ["calibrate", "energy", S7, "-o", str(out), "--device", "My phone"]
    assert main(words) == 0
    assert f"written: {out}" in capsys.readouterr().out
    written = library.get(str(out))
    assert (written.name, written.device) == ("my-phone", "My phone")
    assert written.source.startswith("fit to galaxy-s7.csv, 29 rows: rms 5.1 %")
    assert written.base_mw == 0
    assert written.both_mw == -495


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([S7, "--terms", "base,shared"], "cannot tell base, shared apart"),
        ([S7, "--terms", "wimax.active"], "no term is called 'wimax.active'"),
        ([S7, "--model", "galaxy-s9"], "no energy model is called 'galaxy-s9'"),
        (["nowhere.csv"], "nowhere.csv: cannot be read"),
        ([S7, "-o", "/nowhere/My Phone.yaml"], "name: 'My Phone' is no name"),
    ],
)
def test_what_cannot_be_fitted_is_exit_code_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", "energy", *words]) == 2
    assert message in capsys.readouterr().err
