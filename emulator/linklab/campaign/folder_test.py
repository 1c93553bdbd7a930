from dataclasses import asdict, replace
from pathlib import Path

import msgspec
import pytest

from linklab.campaign import folder, wire_format
from linklab.campaign.folder import FolderError
from linklab.campaign.wire_format import Parcel
from linklab.runs import summary
from linklab.runs.run_figures import RunFigures
from linklab.runs.runner import RunRequest
from linklab.scenario import Payload, Scenario

MACHINE = {"multilink": "1"}
FIGURES = RunFigures(1.0, 8e6, 0.5, 0.5, None, {}, 0.0)


@pytest.fixture
def asked(small: Scenario) -> dict[str, Parcel]:
    """Two runs that are wanted."""
    requests = [RunRequest(small, "alg3", seed) for seed in (1, 2)]
    return {one.label: wire_format.wrap(one, None, MACHINE) for one in requests}


def bring(out: Path, label: str, tmp_path: Path) -> Path:
    """Keeps a whole run directory as if it came back."""
    made = tmp_path / "made"
    made.mkdir(exist_ok=True)
    (made / "summary.json").write_bytes(msgspec.json.encode(asdict(FIGURES)))
    return folder.keep(out, label, wire_format.pack(made))


def test_what_is_whole_is_known_the_next_time(tmp_path: Path, asked: dict[str, Parcel]) -> None:
    out = tmp_path / "out"
    with folder.opened(out, "sweep", MACHINE, asked) as whole:
        assert whole == {}
        bring(out, "small-alg3-seed1", tmp_path)
    (out / "small-alg3-seed2").mkdir()
    (out / "small-alg3-seed2" / "summary.json").write_text("{")
    (out / f"{wire_format.PART_PREFIX}x" / "small-alg3-seed2").mkdir(parents=True)
    with folder.opened(out, "sweep", MACHINE, asked) as whole:
        assert whole == {"small-alg3-seed1": FIGURES}
        run_dir = bring(out, "small-alg3-seed2", tmp_path)
        assert summary.read(run_dir) == FIGURES
    names = {path.name for path in out.iterdir()}
    assert names == {"campaign.json", "small-alg3-seed1", "small-alg3-seed2"}


def test_another_way_to_wait_is_no_other_run(tmp_path: Path, asked: dict[str, Parcel]) -> None:
    out = tmp_path / "out"
    with folder.opened(out, "sweep", MACHINE, asked):
        bring(out, "small-alg3-seed1", tmp_path)
    longer = {
        label: msgspec.structs.replace(one, timeout_s=9.0, machine={"multilink": "1", "more": "2"})
        for label, one in asked.items()
    }
    with folder.opened(out, "sweep", MACHINE, longer) as whole:
        assert list(whole) == ["small-alg3-seed1"]


def test_figures_of_other_programs_or_scenarios_are_not_mixed(
    tmp_path: Path, asked: dict[str, Parcel], small: Scenario
) -> None:
    out = tmp_path / "out"
    with folder.opened(out, "sweep", MACHINE, asked):
        bring(out, "small-alg3-seed1", tmp_path)
    with (
        pytest.raises(FolderError, match="multilink is 2 instead of 1; give another --out"),
        folder.opened(out, "sweep", {"multilink": "2"}, asked),
    ):
        pass
    larger = RunRequest(replace(small, payload=Payload(2_000_000, 1)), "alg3", 1)
    changed = {larger.label: wire_format.wrap(larger, None, MACHINE)}
    with (
        pytest.raises(FolderError, match="small-alg3-seed1: was another scenario or command"),
        folder.opened(out, "sweep", MACHINE, changed),
    ):
        pass
    (out / folder.NOTE).unlink()
    with (
        pytest.raises(FolderError, match="are not of a campaign"),
        folder.opened(out, "sweep", MACHINE, asked),
    ):
        pass


def test_one_campaign_at_a_time(tmp_path: Path, asked: dict[str, Parcel]) -> None:
    out = tmp_path / "out"
    with (
        folder.opened(out, "sweep", MACHINE, asked),
        pytest.raises(FolderError, match="another campaign is at work"),
        folder.opened(out, "sweep", MACHINE, asked),
    ):
        pass
    with folder.opened(out, "sweep", MACHINE, asked):
        pass
