from pathlib import Path

import pytest

from linklab.field import prediction, recording
from linklab.field import simulated_for_test as simulated
from linklab.field.prediction import Prediction
from linklab.field.recording import Recording
from linklab.field.simulated_for_test import SimulatedLink

MBIT = 1e6


def recorded(directory: Path, end_s: float = 10.0, **link: object) -> Recording:
    return recording.read(simulated.run_dir(directory, [SimulatedLink(**link)], end_s))  # type: ignore[arg-type]


def beside(measured: Recording, *predicted: Recording) -> Prediction:
    return prediction.beside(measured, predicted)


def test_a_download_is_as_predicted_where_it_is_the_same(tmp_path: Path) -> None:
    one = recorded(tmp_path)
    same = beside(one, one)
    assert (same.contestant, same.error_ratio) == ("alg3", 0.0)
    (wifi,) = same.links
    assert wifi.measured == wifi.predicted
    assert (wifi.off_ratio, len(wifi.steps)) == (0.0, 10)
    assert wifi.measured.rtt_s == pytest.approx(0.07)
    assert wifi.measured.base_rtt_s == pytest.approx(0.02)
    for step in wifi.steps[1:-1]:
        assert step.measured_bps == pytest.approx(20 * MBIT, rel=0.01)


def test_rates_are_compared_step_by_step(tmp_path: Path) -> None:
    """The same bytes at other times are not the same."""

    def early(t_s: float) -> float:
        return (30 if t_s < 5 else 10) * MBIT

    found = beside(
        recorded(tmp_path / "1", rate_bps=early),
        recorded(tmp_path / "2", rate_bps=lambda t_s: 40 * MBIT - early(t_s)),
    )
    (wifi,) = found.links
    assert wifi.off_ratio == pytest.approx(1.0, rel=0.03)
    assert wifi.steps[2].measured_bps == pytest.approx(30 * MBIT, rel=0.01)
    assert wifi.steps[2].predicted_bps == pytest.approx(10 * MBIT, rel=0.01)


def test_of_several_runs_it_is_the_median(tmp_path: Path) -> None:
    runs = [recorded(tmp_path / str(s), s) for s in (9.0, 10.5, 14.0)]
    found = beside(recorded(tmp_path / "measured"), *runs)
    assert found.predicted_s == 10.5
    assert found.error_ratio == pytest.approx(0.05)
    assert found.links[0].steps[-1].end_s == 10.5


def test_a_long_download_has_longer_steps(tmp_path: Path) -> None:
    one = recorded(tmp_path, 90.0, asked=((0.1, 80.0),))
    (wifi,) = beside(one, one).links
    assert len(wifi.steps) == prediction.MOST_STEPS
    assert wifi.steps[-1].end_s == 90.0
    assert wifi.measured.finish_s == pytest.approx(80.0, abs=0.11)
