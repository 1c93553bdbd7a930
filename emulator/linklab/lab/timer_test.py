import select
import time

from linklab.lab.timer import Timer


def test_it_is_readable_from_its_time_on_and_not_before() -> None:
    timer = Timer()
    try:
        due_ns = time.monotonic_ns() + 20_000_000
        timer.set(due_ns)
        assert select.select([timer], [], [], 0)[0] == []
        select.select([timer], [], [])
        assert time.monotonic_ns() >= due_ns
        timer.set(time.monotonic_ns() + 10_000_000_000)
        assert select.select([timer], [], [], 0)[0] == []
        timer.set(time.monotonic_ns() - 1)
        assert select.select([timer], [], [], 0)[0] == [timer]
    finally:
        timer.close()
