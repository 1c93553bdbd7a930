"""Tests prometheus.py: slots and the ledger. What Prometheus makes of them:
tests/dashboards_test.py."""

import json
import os
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.records import line
from linklab.core.records_test import sampled
from linklab.publish.prometheus import (
    LEAST_AGE_S,
    LEDGER,
    REST_S,
    RETENTION_S,
    ROOM_S,
    PublishedRun,
    PublishError,
    free_slots,
    in_words,
    overviews,
    publish,
)
from linklab.runs import beside_baseline, job
from linklab.runs.beside_baseline import BesideBaseline, Movement
from linklab.runs.job_test import JOB

NOW_S = 1_800_000_000.0
SCENARIO = """name: small
payload: {size: 1 MB}
links:
  wifi: {down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}
  lte: {down: 40 Mbit/s, up: 10 Mbit/s, rtt: 40 ms}
"""
MANIFEST = msgspec.structs.replace(JOB, seed=1, started_at="2026-11-21T06:19:34+00:00")
CLIENT = {
    "algorithm": "alg3",
    "outcome": "complete",
    "size_bytes": 1_000_000,
    "download_ns": 2 * 10**9,
    "links": {"wifi": {"bytes": 600_000, "finish_ns": 10**9}, "lte": {"bytes": 400_000}},
}


def run_dir(path: Path, **changed: object) -> Path:
    """A run of 2.3 s that came to its figures."""
    path.mkdir(parents=True)
    (path / "scenario.yaml").write_text(SCENARIO)
    job.write(msgspec.structs.replace(MANIFEST, **changed), path)
    (path / "client.json").write_text(json.dumps(CLIENT))
    (path / "outcome.json").write_text(
        json.dumps({"exit_code": 0, "elapsed_ns": 1, "received_bytes": {}, "output_bytes": 1})
    )
    (path / "queues.jsonl").write_bytes(line(sampled(2.3, "wifi", 7)))
    return path


def publish_text(tmp_path: Path, *run_dirs: Path) -> tuple[list[PublishedRun], list[str]]:
    output = tmp_path / "runs.om"
    output.unlink(missing_ok=True)
    made = publish(run_dirs, output=output, now_s=NOW_S)
    return made, output.read_text().splitlines() if output.exists() else []


lengths = st.lists(st.integers(1, 2000), max_size=8)


@given(batches=st.lists(lengths, max_size=4), hours=st.integers(0, 200))
def test_slots_ascend_in_the_order_of_publication_are_old_enough_and_apart(
    batches: list[list[int]], hours: int
) -> None:
    taken: list[tuple[int, int]] = []
    for number, lengths_s in enumerate(batches):
        now_s = NOW_S + number * hours * 3600
        starts = free_slots(lengths_s, taken, now_s, RETENTION_S)
        new = [(start, start + length) for start, length in zip(starts, lengths_s, strict=True)]
        for start_s, end_s in new:
            assert end_s <= now_s - LEAST_AGE_S
            assert start_s > now_s - RETENTION_S
        taken += new
    for (_, end_s), (start_s, _) in pairwise(taken):
        assert start_s - end_s >= REST_S


def test_suites_one_after_the_other_have_room_in_the_days_that_dashboards_show() -> None:
    """A hundred runs of a minute, three times in an hour, and one a day for weeks."""
    taken: list[tuple[int, int]] = []
    for number in range(30):
        now_s = NOW_S + (number * 1200 if number < 3 else number * 86400)
        starts = free_slots([60] * 100, taken, now_s, RETENTION_S)
        assert min(starts) >= now_s - ROOM_S
        taken += [(start, start + 60) for start in starts]
    assert taken == sorted(taken)


def test_many_runs_at_once_begin_earlier() -> None:
    starts = free_slots([60] * 2000, [], NOW_S, RETENTION_S)
    assert NOW_S - RETENTION_S < starts[0] < NOW_S - ROOM_S


def test_a_slot_that_prometheus_would_soon_forget_is_none() -> None:
    with pytest.raises(PublishError, match="no room for 1 runs"):
        free_slots([86400 * 14], [], NOW_S, RETENTION_S)


def test_a_run_is_text_with_a_sample_a_second(tmp_path: Path) -> None:
    (made,), text = publish_text(tmp_path, run_dir(tmp_path / "runs" / "a"))
    assert made.slot.run == "20261121T061934-a"
    assert made.slot.end_s - made.slot.start_s == 3
    assert text[-1] == "# EOF"
    sent = [
        line.rsplit(" ", 2)[1:]
        for line in text
        if line.startswith("linklab_link_sent_bytes_total")
        and 'link="wifi"' in line
        and 'direction="down"' in line
    ]
    start_s = made.slot.start_s
    assert sent == [["0.0", f"{start_s + n}"] for n in range(3)] + [["7.0", f"{start_s + 3}"]]
    assert any(
        line.startswith("linklab_run_download_seconds{") and line.endswith(f" 2.0 {start_s + 3}")
        for line in text
    )


def test_names_need_not_be_utf_8(tmp_path: Path) -> None:
    _, lines = publish_text(tmp_path, run_dir(tmp_path / os.fsdecode(b"run\xff")))
    assert any('run="20261121T061934-run\\\\udcff"' in line for line in lines)


def test_publishing_again_changes_nothing_also_when_the_directory_has_moved(tmp_path: Path) -> None:
    first = run_dir(tmp_path / "runs" / "a")
    (made,), before = publish_text(tmp_path, first)
    moved = first.rename(tmp_path / "moved")
    (again,), text = publish_text(tmp_path, moved)
    assert again.before and not made.before
    assert again.slot == made.slot
    assert text == before
    assert len((tmp_path / LEDGER).read_text().splitlines()) == 1


def test_what_is_no_target_is_refused_and_left_alone(tmp_path: Path) -> None:
    directory = run_dir(tmp_path / "runs" / "a")
    parent = tmp_path / "prometheus"
    (parent / "metrics2").mkdir(parents=True)
    with pytest.raises(PublishError, match="is a directory; allowed: a file's name"):
        publish([directory], output=parent, now_s=NOW_S)
    with pytest.raises(PublishError, match="wal, chunks_head are missing; allowed: .*metrics2"):
        publish([directory], data=parent, now_s=NOW_S)
    assert [path.name for path in parent.iterdir()] == ["metrics2"]


def test_runs_that_are_called_the_same_stay_apart(tmp_path: Path) -> None:
    one = run_dir(tmp_path / "x" / "a")
    other = run_dir(tmp_path / "y" / "a", seed=2)
    made, _ = publish_text(tmp_path, one, other)
    assert [each.slot.run for each in made] == ["20261121T061934-a", "20261121T061934-a-2"]
    assert made[1].slot.start_s - made[0].slot.end_s >= REST_S


def test_a_slot_that_prometheus_has_forgotten_is_given_anew(tmp_path: Path) -> None:
    directory = run_dir(tmp_path / "runs" / "a")
    (made,), _ = publish_text(tmp_path, directory)
    later = publish([directory], output=tmp_path / "runs.om", now_s=NOW_S + 2 * RETENTION_S)
    assert not later[0].before
    assert later[0].slot.run == made.slot.run
    assert later[0].slot.start_s > made.slot.start_s


def test_a_failed_run_is_published_as_failed(tmp_path: Path) -> None:
    directory = run_dir(tmp_path / "a")
    (directory / "client.json").write_text(json.dumps({**CLIENT, "outcome": "failed"}))
    _, text = publish_text(tmp_path, directory)
    (failed,) = [line for line in text if line.startswith("linklab_run_failed{")]
    assert failed.split()[-2] == "1.0"


def test_links_lead_to_a_run_to_runs_that_can_be_compared_and_to_their_suite(
    tmp_path: Path,
) -> None:
    of_a_suite = run_dir(tmp_path / "c", clock="real")
    moved = (Movement("download time", 1.0, 1.0, 0.0),)
    beside_baseline.write(of_a_suite, BesideBaseline("mine", moved))
    made, _ = publish_text(
        tmp_path, run_dir(tmp_path / "a"), run_dir(tmp_path / "b", seed=2), of_a_suite
    )
    first, second, third = (one.slot for one in made)
    assert in_words(made[0], "http://g:1/") == (
        "20261121T061934-a: published, http://g:1/d/linklab-live?var-run=20261121T061934-a"
        f"&from={first.start_s}000&to={first.end_s + 1}000"
    )
    assert overviews(made, "http://g:1") == {
        "small, 1 MB, virtual clock": "http://g:1/d/linklab-compare?var-scenario=small"
        f"&var-size=1+MB&var-clock=virtual&from={first.start_s}000&to={second.end_s + 1}000",
        "suite mine": "http://g:1/d/linklab-regression?var-suite=mine"
        f"&from={third.start_s}000&to={third.end_s + 1}000",
    }


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("run.json", "is not a run directory"),
        ("scenario.yaml", "scenario.yaml: cannot be read"),
        ("outcome.json", "has not finished"),
    ],
)
def test_what_is_no_finished_run_is_refused_and_gets_no_slot(
    tmp_path: Path, missing: str, said: str
) -> None:
    directory = run_dir(tmp_path / "a")
    (directory / missing).unlink()
    with pytest.raises(PublishError, match=said):
        publish([directory], output=tmp_path / "runs.om", now_s=NOW_S)
    assert not (tmp_path / LEDGER).exists()


@pytest.mark.parametrize("name", ["../../escaped", "a/b", "a\0b", "a\n", ""])
def test_a_ledger_in_which_a_run_has_the_name_of_no_file_is_refused(
    tmp_path: Path, name: str
) -> None:
    directory = run_dir(tmp_path / "runs" / "a")
    publish_text(tmp_path, directory)
    ledger = tmp_path / LEDGER
    slot = json.loads(ledger.read_text())
    ledger.write_text(json.dumps({**slot, "run": name}) + "\n")
    with pytest.raises(PublishError, match=r"linklab-published\.jsonl: .* at `\$\.run`"):
        publish_text(tmp_path, directory)


def test_a_run_whose_name_a_ledger_may_not_have_gets_no_slot(tmp_path: Path) -> None:
    directory = run_dir(tmp_path / "runs" / "a\n")
    with pytest.raises(PublishError, match="a control character is in its name"):
        publish_text(tmp_path, directory)
    assert not (tmp_path / LEDGER).exists()


def test_a_run_that_is_too_long_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    directory = run_dir(tmp_path / "a")
    queues = directory / "queues.jsonl"
    queues.write_text(queues.read_text().replace("2.3", "604800"))
    with pytest.raises(PublishError, match=r"/a: 604800 s of \d+ series are too much; allowed: 20"):
        publish([directory], output=tmp_path / "runs.om", now_s=NOW_S, retention_s=86400 * 90)


# --- Root in other people's directories.

NOBODY = 65534


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of nobody's that nobody can reach; for root only."""
    if os.geteuid() != 0:
        pytest.skip("only root can act as others")
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        made = Path(name, "metrics2")
        (made / "wal").mkdir(parents=True)
        os.chown(made, NOBODY, NOBODY)
        yield made


def roots_file(theirs: Path) -> Path:
    """What root must neither change nor give away."""
    path = theirs.parent / "shadow"
    path.write_text('{"run":"x","digest":"y","start_s":1,"end_s":2}\n')
    return path


def state(path: Path) -> tuple[str, int]:
    return path.read_text(), path.stat().st_uid


@pytest.fixture
def promtool(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for promtool: makes a block of what it is called with, and says who it is."""
    programs = theirs.parent / "bin"
    programs.mkdir()
    program = programs / "promtool"
    program.write_text(
        '#!/bin/sh\nmkdir -p "$6/01ARZ3NDEKTSV4RRFFQ69G5FAV" || exit 1\n'
        'grep -E "^(Uid|Gid|Groups|CapEff)" /proc/self/status '
        '>"$6/01ARZ3NDEKTSV4RRFFQ69G5FAV/status"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    return program


@pytest.mark.usefixtures("promtool")
def test_root_publishes_as_the_owner_of_the_directory(theirs: Path, tmp_path: Path) -> None:
    publish([run_dir(tmp_path / "a")], data=theirs, now_s=NOW_S)
    (block,) = theirs.glob("01*")
    status = (block / "status").read_text().split("\n")
    assert status[0].split() == ["Uid:"] + [str(NOBODY)] * 4
    assert status[1].split() == ["Gid:"] + [str(NOBODY)] * 4
    assert status[2].split() in (["Groups:"], ["Groups:", str(NOBODY)])
    assert status[3].split() == ["CapEff:", "0" * 16]
    assert {path.name for path in theirs.iterdir()} == {"wal", LEDGER, block.name}
    made = [theirs / LEDGER, block, block / "status"]
    assert [path.stat().st_uid for path in made] == [NOBODY] * 3
    assert (os.geteuid(), os.getegid()) == (0, 0)
    publish([run_dir(tmp_path / "b", seed=2)], output=theirs / "runs.om", now_s=NOW_S)
    assert (theirs / "runs.om").stat().st_uid == NOBODY
    assert len((theirs / LEDGER).read_text().splitlines()) == 2


@pytest.mark.usefixtures("promtool")
@pytest.mark.parametrize("hard", [False, True])
def test_root_follows_no_link_in_the_place_of_the_ledger(
    theirs: Path, tmp_path: Path, hard: bool
) -> None:
    secret = roots_file(theirs)
    before = state(secret)
    if hard:
        (theirs / LEDGER).hardlink_to(secret)
    else:
        (theirs / LEDGER).symlink_to(secret)
    with pytest.raises((PublishError, PermissionError), match=LEDGER):
        publish([run_dir(tmp_path / "a")], data=theirs, now_s=NOW_S)
    assert state(secret) == before


def test_root_follows_no_link_in_the_place_of_the_output(theirs: Path, tmp_path: Path) -> None:
    secret = roots_file(theirs)
    before = state(secret)
    (theirs / "runs.om").symlink_to(secret)
    with pytest.raises(PublishError, match="runs.om is no plain file"):
        publish([run_dir(tmp_path / "a")], output=theirs / "runs.om", now_s=NOW_S)
    (theirs / ".runs.om.new").symlink_to(secret)
    (theirs / "runs.om").unlink()
    publish([run_dir(tmp_path / "a2")], output=theirs / "runs.om", now_s=NOW_S)
    assert state(secret) == before


def test_root_gives_nothing_away_that_a_block_links_to(
    theirs: Path, tmp_path: Path, promtool: Path
) -> None:
    secret = roots_file(theirs)
    before = state(secret)
    with promtool.open("a") as file:
        file.write(f'ln -s {secret} "$6/01ARZ3NDEKTSV4RRFFQ69G5FAV/index"\n')
    publish([run_dir(tmp_path / "a")], data=theirs, now_s=NOW_S)
    assert state(secret) == before


@pytest.mark.usefixtures("promtool")
def test_root_goes_no_way_that_others_could_change(theirs: Path, tmp_path: Path) -> None:
    roots = theirs / "looks-like-metrics2"
    (roots / "wal").mkdir(parents=True)
    other = theirs.parent / "link"
    other.symlink_to(theirs)
    os.chown(other, 12345, 12345, follow_symlinks=False)
    for way, whose in ((roots, "nobody"), (other, "user 12345")):
        with pytest.raises(PublishError, match=f"belongs to {whose}, who could have .* lead else"):
            publish([run_dir(tmp_path / whose)], data=way, now_s=NOW_S)
    shared = theirs.parent / "shared"
    (shared / "metrics2" / "wal").mkdir(parents=True)
    shared.chmod(0o777)
    with pytest.raises(PublishError, match="shared can be written by others than root"):
        publish([run_dir(tmp_path / "c")], data=shared / "metrics2", now_s=NOW_S)
    assert not list(theirs.parent.rglob(LEDGER))


def test_a_ledger_that_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / LEDGER)
    with pytest.raises(PublishError, match="is no ledger of linklab's"):
        publish([run_dir(tmp_path / "a")], output=tmp_path / "runs.om", now_s=NOW_S)
