"""Tests comparisons of finished runs."""

from dataclasses import replace

import pytest

from linklab import scenario
from linklab.api.series import comparison
from linklab.core.link_kinds import LTE, WIFI
from linklab.runs import run_figures
from linklab.runs.figures import JOULES, PHONE
from linklab.runs.one_window_test import TAIL_S, run
from linklab.runs.runner import RunRequest

ONE = scenario.find("static-80-50")


def test_all_clients_of_a_seed_pay_the_phone_for_the_same_time() -> None:
    wifi, lte = run(2.0, WIFI), run(3.0, LTE)
    alone = run_figures.peer_figures(ONE, 2, 2.0, {"wifi": 1})
    seen = comparison(
        ONE,
        ["curl-wifi", "curl-lte"],
        [
            (RunRequest(ONE, "curl-wifi", 1), wifi),
            (RunRequest(ONE, "curl-lte", 1), lte),
            (RunRequest(ONE, "curl-wifi", 2), replace(alone, energy=wifi.energy)),
            (RunRequest(ONE, "curl-lte", 2), "no figures"),
        ],
    )
    first, second = (row.energy for row in seen.rows)
    assert first is not None
    assert second is not None
    assert (first.of(PHONE).max, second.of(PHONE).max) == pytest.approx((0.226 * (3 + TAIL_S),) * 2)
    assert first.of(PHONE).min == pytest.approx(0.226 * 2), "nobody else ran with seed 2"
    assert lte.energy is not None
    assert second.of(JOULES).median == lte.energy.joules
    assert seen.rows[1].failures == ("no figures",)
