from linklab.runs.figures import RUN_FIGURES, Column, RunFigure, figures_in
from linklab.runs.run_figures import LinkFigures, RunFigures


def test_each_figure_is_read_from_a_run() -> None:
    run = RunFigures(
        download_s=2.0,
        goodput_bps=4e6,
        oracle_s=1.5,
        efficiency=0.75,
        link_delta_s=0.25,
        links={"wifi": LinkFigures(bytes=1_000_000, share=1.0, wasted_bytes=12)},
        stalled_s=0.5,
    )
    assert {one.key: one.of(run) for one in RUN_FIGURES} == {
        "download_s": 2.0,
        "goodput_bps": 4e6,
        "oracle_s": 1.5,
        "efficiency": 0.75,
        "link_delta_s": 0.25,
        "wasted_bytes": 12,
        "stalled_s": 0.5,
    }


def test_columns_stand_in_the_order_of_their_place() -> None:
    def view(one: RunFigure) -> Column | None:
        places = {"download_s": 1, "efficiency": 0, "stalled_s": 0}
        return Column(one.key, 1, place=places[one.key]) if one.key in places else None

    assert [one.key for one, _ in figures_in(view)] == ["efficiency", "stalled_s", "download_s"]


def test_keys_and_names_are_not_used_twice() -> None:
    for names in (
        [one.key for one in RUN_FIGURES],
        [one.gauge.name for one in RUN_FIGURES if one.gauge],
        [one.bounds.key for one in RUN_FIGURES if one.bounds],
    ):
        assert len(names) == len(set(names))
