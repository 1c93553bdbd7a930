from pathlib import Path

from linklab import scenario
from linklab.models.trace import Trace
from linklab.scenario.trace_files import with_trace_files


def test_only_the_traces_files_change() -> None:
    tm = scenario.find("tm")
    asked: list[tuple[str, Path]] = []

    def moved(link: str, file: Path) -> Path:
        asked.append((link, file))
        return Path("elsewhere", f"{link}.csv")

    there = with_trace_files(tm, moved)
    traced = {
        name: trace.file
        for name, one in tm.links.items()
        if (trace := one.model(Trace)) is not None
    }
    assert traced
    assert dict(asked) == traced
    for name in traced:
        trace = there.links[name].model(Trace)
        assert trace is not None
        assert trace.file == Path("elsewhere", f"{name}.csv")
    assert with_trace_files(there, lambda link, _: traced[link]) == tm
