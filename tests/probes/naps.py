"""Works for 2 ms and sleeps for 8 ms, a hundred times, so that it wakes with the timer. Prints the
seconds that it worked by the clock, and the processor time by the kernel."""

import time

WORK_S = 0.002
worked_s, before_s = 0.0, time.process_time()
for _ in range(100):
    time.sleep(0.008)
    begin_s = now_s = time.monotonic()
    while now_s - begin_s < WORK_S:
        now_s = time.monotonic()
    worked_s += now_s - begin_s
print(worked_s, time.process_time() - before_s)
