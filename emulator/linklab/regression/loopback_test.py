import sys
import time
from pathlib import Path

import pytest

from linklab.regression import loopback
from linklab.regression.loopback import LoopbackError, measure

WRITES = "import sys; open(sys.argv[1], 'wb').write(bytes(int(sys.argv[2])))"


def python(code: str, *words: object) -> tuple[object, ...]:
    return (sys.executable, "-c", code, *words)


def test_processor_time_and_memory_of_a_program(tmp_path: Path) -> None:
    out = tmp_path / "out"
    burn = (
        WRITES + "\nimport time\nheld = bytearray(64 << 20)\nwhile time.process_time() < 0.2: pass"
    )
    cost = measure(python(burn, out, 5), 5, out)
    assert cost.cpu_s >= 0.2
    assert cost.wall_s >= cost.cpu_s * 0.9
    assert cost.peak_bytes > 64 << 20
    assert not out.exists()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("no-such-program",), "no-such-program: No such file"),
        (python("import sys; print('lost'); sys.exit(3)"), "ended with 3: lost"),
        (python("pass"), "wrote 0 bytes instead of 5"),
    ],
)
def test_a_program_that_does_not_download_is_named(
    tmp_path: Path, argv: tuple[object, ...], said: str
) -> None:
    with pytest.raises(LoopbackError, match=said):
        measure(argv, 5, tmp_path / "out")


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(LoopbackError, match="still ran after 0 s"):
        measure(("sleep", 60), 5, tmp_path / "out", limit_s=0.1)
    assert time.monotonic() - begun < 30


def test_a_room_and_what_is_in_it_are_gone_afterwards(tmp_path: Path) -> None:
    with loopback.room(1 << 62, tmp_path) as made:
        assert made.parent == tmp_path
        loopback.sparse(made / "file", 1 << 30)
        assert (made / "file").stat().st_size == 1 << 30
    assert not made.exists()
