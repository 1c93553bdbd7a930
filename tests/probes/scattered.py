"""Uses 75,000 pages that do not lie side by side: the host gives each page a mapping of its own, and
Debian's hosts allow a process 65,530 (vm.max_map_count). Prints "right" if each page kept what was
written, in a child process too.

Near that limit the program also gives pages back that lie between others, which splits mappings."""

import mmap
import os

PAGE = mmap.PAGESIZE
SCATTERED = 75_000
WHOLE = 20_000
FIRST_HOLE = 55_000


def region(pages: int) -> mmap.mmap:
    return mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


whole, scattered = region(WHOLE), region(2 * SCATTERED)
for page in range(WHOLE):
    whole[page * PAGE] = 1
for number in range(SCATTERED):
    at = 2 * number * PAGE
    scattered[at : at + 4] = number.to_bytes(4, "big")
    hole = number - FIRST_HOLE
    if 0 <= hole < WHOLE // 2:
        whole.madvise(mmap.MADV_DONTNEED, 2 * hole * PAGE, PAGE)

child = os.fork()
for number in range(SCATTERED):
    at = 2 * number * PAGE
    assert int.from_bytes(scattered[at : at + 4], "big") == number, number
for page in range(WHOLE):
    assert whole[page * PAGE] == page % 2, page
if child:
    assert os.wait()[1] == 0
    print("right")
