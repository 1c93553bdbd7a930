from faults import LONGEST_S

from bench.faults import STILL_BYTES, Ending, is_still

LATE_S = LONGEST_S + 1


def ending(contestant: str, took_s: float | None, failure: str | None, still: bool) -> str:
    return Ending("file", "slow", contestant, took_s, failure, still).kind


def test_who_goes_on_at_10_kbit_s_is_not_still() -> None:
    """A packet of 1514 bytes every 1.2 s."""
    assert not is_still([(1.2 * n, 1514 * n) for n in range(1000)])


def test_a_minute_with_hardly_a_packet_is_still_wherever_it_is() -> None:
    moving = [(0.1 * n, STILL_BYTES * n) for n in range(100)]
    at_s, total = moving[-1]
    pause = [(at_s + n, total + 60 * n) for n in range(62)]
    after = [(at_s + 62 + n, total + STILL_BYTES * 2 * n) for n in range(1, 9)]
    assert is_still([*moving, *pause, *after])
    assert is_still([*moving, *pause])
    assert not is_still([*moving, *pause[:50], *after])


def test_late_and_still_is_a_hang_of_those_that_have_to_end() -> None:
    assert ending("alg3-rescue", 9.0, None, False) == "whole"
    assert ending("alg3-rescue", LATE_S, None, False) == "slow"
    assert ending("alg3-rescue", LATE_S, None, True) == "hangs"
    assert ending("mptcp", LATE_S, None, True) == "whole"
    assert ending("alg3-rescue", None, "SHA-256 differs", False) == "wrong"
    assert ending("mptcp", None, "no answer", False) == "refused"
    assert ending("alg3-rescue", None, "no answer", False) == "failed"
