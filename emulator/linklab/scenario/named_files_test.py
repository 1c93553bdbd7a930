from pathlib import Path

from linklab import scenario
from linklab.models.trace import Trace
from linklab.scenario.named_files import with_files


def test_only_the_traces_files_change() -> None:
    tm = scenario.find("tm")
    asked: list[tuple[str, Path]] = []

    def moved(link: str, file: Path) -> Path:
        asked.append((link, file))
        return Path("elsewhere", f"{link}.csv")

    there = with_files(tm, moved)
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
    assert with_files(there, lambda link, _: traced[link]) == tm


def test_only_the_distributions_files_change(tmp_path: Path) -> None:
    (tmp_path / "a.dist").write_text("-8192 8192")
    link = "down: 1 Mbit/s, up: 1 Mbit/s, rtt: 0 s"
    text = f"name: x\npayload: {{size: 1 B}}\nlinks: {{wifi: {{{link}}}}}\n"
    text += f"distributions: {{one: {tmp_path}/a.dist}}\n"
    read = scenario.parse(text)
    there = with_files(read, lambda owner, file: Path("elsewhere", owner))
    assert there.distributions["one"].file == Path("elsewhere/distribution-one")
    assert there.delay_tables == read.delay_tables
    assert with_files(there, lambda *_: tmp_path / "a.dist") == read
