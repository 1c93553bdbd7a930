import select
import time

from linklab.core.timer import Timer


def test_it_is_readable_from_its_time_on_and_not_before() -> None:
    timer = Timer()
    try:
        timer.set(time.monotonic_ns() + 3_600_000_000_000)
        assert select.select([timer], [], [], 0)[0] == []
        due_ns = time.monotonic_ns() + 20_000_000
        timer.set(due_ns)
        assert select.select([timer], [], [], 60)[0] == [timer]
        assert time.monotonic_ns() >= due_ns
    finally:
        timer.close()


def test_a_time_in_the_past_makes_it_readable() -> None:
    # The kernel may let it expire on another processor, after set has returned.
    timer = Timer()
    try:
        timer.set(time.monotonic_ns() - 1)
        assert select.select([timer], [], [], 60)[0] == [timer]
    finally:
        timer.close()
