from pathlib import Path
from typing import cast

import pytest
from faults import ARIA2, LINK_FAULTS, LONGEST_S, PROGRAMS, SUPER_AGGREGATION, SURE, UNSURE, able
from linklab.runs import clients

from bench import faults as section
from bench.common import Bench, Done
from bench.faults import GIVE_UP_S, HUNG, STILL_BYTES, STILL_S, TCP_S, Ending, moved_of, still_s

LATE_S = LONGEST_S + 1


def ending(client: str, took_s: float | None, failure: str | None, still_s: float) -> str:
    return Ending("file", "slow", client, took_s, failure, still_s).kind


def test_who_goes_on_at_10_kbit_s_is_not_still() -> None:
    """A packet of 1514 bytes every 1.2 s."""
    assert still_s([(1.2 * n, 1514 * n) for n in range(1000)]) == 0


def test_a_minute_with_hardly_a_packet_is_still_wherever_it_is() -> None:
    moving = [(0.1 * n, STILL_BYTES * n) for n in range(100)]
    at_s, total = moving[-1]
    pause = [(at_s + n, total + 60 * n) for n in range(102)]
    after = [(at_s + 102 + n, total + STILL_BYTES * 2 * n) for n in range(1, 9)]
    assert abs(still_s([*moving, *pause, *after]) - 101) < 1.5
    assert abs(still_s([*moving, *pause]) - 101) < 1.5
    assert still_s([*moving, *pause[:50], *after]) == 0


def test_two_silences_are_not_one() -> None:
    silence = [(float(n), 0) for n in range(100)]
    later = [(100.0 + n, STILL_BYTES * 2) for n in range(100)]
    assert still_s([*silence, *later]) == 99


def test_what_routers_say_for_a_client_that_is_gone_does_not_move_a_download() -> None:
    """590 bytes every other second, more than `STILL_BYTES` a minute."""
    samples = [
        {"t_s": 2.0 * n, "direction": way, "sent_bytes": 590 * n if way == "up" else 7000}
        for n in range(500)
        for way in ("down", "up")
    ]
    assert still_s(moved_of(samples, "file")) == 998
    assert still_s(moved_of(samples, "upload")) == 0


def test_late_and_still_is_a_hang_of_those_that_have_to_end() -> None:
    assert ending("adaptive", 9.0, None, 0) == "whole"
    assert ending("adaptive", LATE_S, None, 0) == "slow"
    assert ending("adaptive", LATE_S, None, STILL_S + 1) == "hangs"
    assert ending("adaptive", None, "SHA-256 differs", 0) == "wrong"
    assert ending("mptcp", None, "no answer", 0) == "refused"
    assert ending("adaptive", None, "no answer", 0) == "failed"


def test_who_may_fail_hangs_too_if_he_says_so_too_late() -> None:
    late = STILL_S + GIVE_UP_S
    assert ending("alg3", LATE_S, None, late - 1) == "slow"
    assert ending("alg3", None, "nothing arrived", late - 1) == "refused"
    assert ending("alg3", None, "nothing arrived", late + 1) == "hangs"
    assert ending("mptcp", None, "curl", late + 1) == "refused"
    assert ending("mptcp", None, "curl", STILL_S + TCP_S + 1) == "hangs"


def test_a_run_that_linklab_had_to_end_is_a_hang_of_anybody() -> None:
    for who in ("alg3", "adaptive", "mptcp"):
        assert ending(who, None, f"the guest was {HUNG} 120 s", 0) == "hangs"


def test_nobody_who_uses_several_links_is_left_out() -> None:
    """Programs of other people, and ways that change TCP, were."""
    tried = {*SURE, *UNSURE}
    names = clients.names(clients.USUAL_LINKS)
    others = [one for one in names if clients.client_of(one).program or one in SUPER_AGGREGATION]
    one_link = {"curl-wifi", "curl-lte", "curl-pieces-wifi", "curl-pieces-lte"}
    # As mptcp and emptcp-kernel.
    same = {"mptcp-wifi", "mptcp-2016", "mptcp-2016-wifi", "mptcp-2016-lte", "emptcp-kernel-2016"}
    assert set(others) - tried == one_link | same
    changing = [one for one in names if clients.client_of(one).changes_tcp]
    assert sorted(changing) == sorted(SUPER_AGGREGATION)
    assert len(tried) == len(SURE) + len(UNSURE)


def test_who_downloads_files_alone_is_in_no_other_workload() -> None:
    who = (*SUPER_AGGREGATION, *ARIA2)
    assert able(who, "file") == [*who]
    assert all(able(who, program) == [] for program in PROGRAMS if program != "file")


@pytest.mark.parametrize("who", [*SUPER_AGGREGATION, *ARIA2])
def test_others_may_fail_and_not_be_silent(who: str) -> None:
    has_own = who in ("loss-fetching", "super-aggregation", *ARIA2)
    late = STILL_S + (GIVE_UP_S if has_own else TCP_S)
    assert ending(who, 9.0, None, 0) == "whole"
    assert ending(who, LATE_S, None, late - 1) == "slow"
    assert ending(who, None, "the client ended with 28: too slow", late - 1) == "refused"
    assert ending(who, None, "the client ended with 28: too slow", late + 1) == "hangs"


@pytest.mark.parametrize("who", ["mptcp", *SUPER_AGGREGATION, *ARIA2])
def test_a_program_that_is_content_with_another_file_is_wrong(who: str) -> None:
    """A part of one passed for a download that was refused."""
    for words in (
        "9999999 bytes arrived instead of 10000000",
        "the file's SHA-256 is 11 instead of 00",
    ):
        assert ending(who, None, words, 0) == "wrong"


def test_a_lab_that_fails_is_no_program_that_refuses() -> None:
    words = "[Errno 100] Network is down"
    assert Ending("file", "slow", "freeze", None, words, 0).kind == "refused"
    assert Ending("file", "slow", "freeze", None, words, 0, has_outcome=False).kind == "failed"
    late = STILL_S + TCP_S + 1
    assert Ending("file", "slow", "freeze", None, words, late, has_outcome=False).kind == "hangs"


class Compared:
    """A bench whose runs have all come to nothing: those of freeze because the lab failed."""

    def __init__(self, work: Path) -> None:
        self.work, self.jobs = work, None
        self.asked: list[str] = []

    def linklab(self, *words: object) -> Done:
        at = words.index("-a")
        self.asked.append(str(words[at + 1]))
        comparisons = []
        for file in cast(tuple[Path, ...], words[1:at]):
            rows = []
            for who in self.asked[-1].split(","):
                run = self.work / f"{file.stem}-{who}-seed1"
                run.mkdir()
                if who != "freeze":
                    (run / "outcome.json").touch()
                rows.append({"algorithm": who, "download_s": None, "failures": ["no"]})
            comparisons.append({"rows": rows})
        return Done({"run_dir": str(self.work), "comparisons": comparisons}, 0.0)


def test_whether_the_lab_failed_is_in_the_run_directory(tmp_path: Path) -> None:
    bench = Compared(tmp_path)
    found = section._endings(cast(Bench, bench), "file", ["aria2-2", "freeze"])
    assert bench.asked == ["aria2-2,freeze"]
    assert {one.fault for one in found} == {*LINK_FAULTS}
    assert {(one.client, one.kind) for one in found} == {
        ("aria2-2", "refused"),
        ("freeze", "failed"),
    }


def test_a_workload_that_nobody_asked_for_can_do_is_not_run(tmp_path: Path) -> None:
    """linklab refuses a comparison of nobody."""
    bench = Compared(tmp_path)
    assert section._endings(cast(Bench, bench), "player", ["aria2-2", "freeze"]) == []
    assert bench.asked == []
