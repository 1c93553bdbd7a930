from pathlib import Path

import pytest

from linklab.core import records
from linklab.core.link_state import Direction, LinkState
from linklab.core.records import FILES, ClientRecord, LinkRecord, QueueRecord, RecordError
from linklab.core.records_test import sampled
from linklab.runs import time_series


def write(run_dir: Path, made: list[QueueRecord] | list[LinkRecord]) -> None:
    (run_dir / FILES[type(made[0])]).write_bytes(b"".join(map(records.line, made)))


def counter(t_s: float, sent: int, direction: Direction = "down") -> QueueRecord:
    return sampled(t_s, "lte", sent, direction)


def test_rates_are_means_of_steps(tmp_path: Path) -> None:
    sent = [counter(0.5, 1000), counter(0.5, 9, "up"), counter(1.0, 3000), counter(1.5, 3000)]
    write(tmp_path, sent)
    assert time_series.rates_bps(tmp_path, 2.0, 0.5, "down") == {
        "lte": [(0, 16e3), (0.5, 32e3), (1, 0)]
    }
    assert time_series.rates_bps(tmp_path, 2.0, 1.0, "down") == {"lte": [(0, 24e3)]}
    assert time_series.rates_bps(tmp_path, 0.4, 0.5, "down") == {"lte": [(0, 16e3)]}
    assert time_series.rates_bps(tmp_path, 2.0, 0.5, "up") == {"lte": [(0, 144)]}


def test_steps_are_as_many_as_can_be_told_apart() -> None:
    assert time_series.step_s(10) == 0.5
    assert time_series.step_s(300) == 300 / time_series.MOST_STEPS


def test_capacity_is_the_mean_of_what_held(tmp_path: Path) -> None:
    def state(t_s: float, rate_bps: int) -> LinkRecord:
        one = LinkState(t_s < 2, rate_bps, 1, 0.01, 0.0, 0.0)
        return LinkRecord.of(one, t_s=t_s, late_s=0.0, link="lte")

    write(tmp_path, [state(0.0, 10_000), state(1.5, 30_000), state(3.0, 30_000)])
    assert time_series.capacities_bps(tmp_path, 3.5, 1.0, "down") == {
        "lte": [(0, 10_000), (1, 20_000), (2, 30_000), (3, 0)]
    }
    assert time_series.capacities_bps(tmp_path, 3.5, 1.0, "up") == {
        "lte": [(0, 1), (1, 1), (2, 1), (3, 0)]
    }


EVENTS = """\
{"t_ns":0,"event":"start"}
{"t_ns":1000000000,"event":"request","link":"wifi","id":1,"offset":0,"length":500}
{"t_ns":1000000000,"event":"request","link":"lte","id":2,"offset":500,"length":500}
{"t_ns":1100000000,"event":"sample","link":"lte"}
{"t_ns":2000000000,"event":"request","link":"wifi","id":3,"offset":700,"length":300,"from":"lte"}
{"t_ns":2000000000,"event":"end","link":"wifi","id":1,"bytes":500,"outcome":"complete"}
{"t_ns":3000000000,"event":"end","link":"lte","id":2,"bytes":200,"outcome":"complete",\
"wasted_bytes":50}
"""


def test_requests_say_what_became_of_them(tmp_path: Path) -> None:
    assert time_series.requests(tmp_path, 0.0, 9.0, 0) == []
    (tmp_path / FILES[ClientRecord]).write_text(EVENTS)
    first, second, third = time_series.requests(tmp_path, 0.5, 9.0, 0)
    assert (first.outcome, first.start_s, first.end_s) == ("complete", 1.5, 2.5)
    assert (second.outcome, second.got_bytes, second.wasted_bytes) == ("taken over", 200, 50)
    assert (third.outcome, third.end_s, third.taken_from) == ("unfinished", 9.0, "lte")
    with (tmp_path / FILES[ClientRecord]).open("a") as file:
        file.write("{]\n")
    with pytest.raises(RecordError, match=r"client\.jsonl:8: "):
        time_series.requests(tmp_path, 0.5, 9.0, 0)
