from faults import LONGEST_S

from bench.faults import GIVE_UP_S, HUNG, STILL_BYTES, STILL_S, TCP_S, Ending, moved_of, still_s

LATE_S = LONGEST_S + 1


def ending(contestant: str, took_s: float | None, failure: str | None, still_s: float) -> str:
    return Ending("file", "slow", contestant, took_s, failure, still_s).kind


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
    assert ending("alg3-rescue", 9.0, None, 0) == "whole"
    assert ending("alg3-rescue", LATE_S, None, 0) == "slow"
    assert ending("alg3-rescue", LATE_S, None, STILL_S + 1) == "hangs"
    assert ending("alg3-rescue", None, "SHA-256 differs", 0) == "wrong"
    assert ending("mptcp", None, "no answer", 0) == "refused"
    assert ending("alg3-rescue", None, "no answer", 0) == "failed"


def test_who_may_fail_hangs_too_if_he_says_so_too_late() -> None:
    late = STILL_S + GIVE_UP_S
    assert ending("alg3", LATE_S, None, late - 1) == "slow"
    assert ending("alg3", None, "nothing arrived", late - 1) == "refused"
    assert ending("alg3", None, "nothing arrived", late + 1) == "hangs"
    assert ending("mptcp", None, "curl", late + 1) == "refused"
    assert ending("mptcp", None, "curl", STILL_S + TCP_S + 1) == "hangs"


def test_a_run_that_linklab_had_to_end_is_a_hang_of_anybody() -> None:
    for who in ("alg3", "alg3-rescue", "mptcp"):
        assert ending(who, None, f"the guest was {HUNG} 120 s", 0) == "hangs"
