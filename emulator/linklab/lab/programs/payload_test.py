import errno
import hashlib
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import pytest

from linklab import scenario
from linklab.lab.programs import payload as payloads
from linklab.lab.programs.payload import PayloadError
from linklab.scenario import Payload

# head -c 1000000 /dev/zero | openssl enc -aes-128-ctr -K $key -iv 00… | sha256sum
ONE_MB = Payload(
    size_bytes=1_000_000,
    seed=1,
    sha256="f1d31f67bb0c954f3570ef1b8c58bb03565e8c63b4e85054c2077d453d7d73da",
)


def leftovers(cache: Path) -> set[str]:
    return {file.name for file in cache.rglob("*") if file.is_file()} - {
        f".payload-{ONE_MB.size_bytes}-1.bin.lock"
    }


def test_known_vector(tmp_path: Path) -> None:
    path = payloads.ensure(ONE_MB, tmp_path)
    content = path.read_bytes()
    assert len(content) == ONE_MB.size_bytes
    assert hashlib.sha256(content).hexdigest() == ONE_MB.sha256
    assert payloads.sha256_of(path) == ONE_MB.sha256
    assert leftovers(tmp_path) == {path.name, f"{path.name}.sha256"}


def test_sizes_across_chunks_are_prefixes_of_one_stream() -> None:
    long = b"".join(payloads.chunks(Payload((1 << 20) + 17, 5)))
    short = b"".join(payloads.chunks(Payload(1 << 20, 5)))
    assert len(long) == (1 << 20) + 17
    assert long.startswith(short)
    assert b"".join(payloads.chunks(Payload(10, 6))) != long[:10]


def test_time_and_rights_are_fixed(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        path = payloads.ensure(ONE_MB, tmp_path)
    finally:
        os.umask(old)
    status = path.stat()
    assert status.st_mtime_ns == 946_684_800 * 10**9
    assert stat.S_IMODE(status.st_mode) == 0o644
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755


def test_a_whole_file_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = payloads.ensure(ONE_MB, tmp_path)
    inode = path.stat().st_ino
    monkeypatch.setattr(payloads, "_make", pytest.fail)
    assert payloads.ensure(ONE_MB, tmp_path) == path
    assert payloads.ensure(Payload(ONE_MB.size_bytes, 1), tmp_path).stat().st_ino == inode


@pytest.mark.parametrize("damage", ["truncated", "altered", "no hash", "empty hash", "gone"])
def test_a_damaged_file_is_replaced(tmp_path: Path, damage: str) -> None:
    path = payloads.ensure(ONE_MB, tmp_path)
    sidecar = path.with_name(path.name + ".sha256")
    match damage:
        case "truncated":
            os.truncate(path, 1000)
            os.utime(path, (payloads.MTIME_S, payloads.MTIME_S))
        case "altered":
            with path.open("r+b") as file:
                file.write(b"altered")
        case "no hash":
            sidecar.unlink()
        case "empty hash":
            sidecar.write_text("")
        case _:
            path.unlink()
    again = payloads.ensure(ONE_MB, tmp_path)
    assert hashlib.sha256(again.read_bytes()).hexdigest() == ONE_MB.sha256
    assert leftovers(tmp_path) == {path.name, sidecar.name}


def test_a_wrong_hash_in_the_scenario_is_said(tmp_path: Path) -> None:
    with pytest.raises(PayloadError, match=r"1 MB from seed 1: its SHA-256 is f1d3.*says 0000"):
        payloads.ensure(Payload(1_000_000, 1, "0" * 64), tmp_path)
    assert leftovers(tmp_path) == set()


def test_a_full_disk_is_said_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: IO[bytes], _: Payload) -> str:
        file.write(b"some")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(payloads, "_write", full)
    with pytest.raises(PayloadError, match=r"no room for the payload of 1 MB.*MB free"):
        payloads.ensure(ONE_MB, tmp_path)
    assert leftovers(tmp_path) == set()


def test_no_place_to_write_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(PayloadError, match="cannot be written to"):
        payloads.ensure(ONE_MB, tmp_path / "file")


def test_labs_at_once_make_one_file(tmp_path: Path) -> None:
    """Threads stand for processes: flock(2) keeps apart whoever opened the lock file anew."""
    together = threading.Barrier(4)

    def inode(_: int) -> int:
        together.wait()
        return payloads.ensure(ONE_MB, tmp_path).stat().st_ino

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(inode, range(4)))) == 1


def test_shipped_scenarios_of_the_same_payload_agree() -> None:
    hashes: dict[tuple[int, int], set[str]] = {}
    for shipped in scenario.list_all():
        one = shipped.payload
        if one.sha256 is not None:
            hashes.setdefault((one.size_bytes, one.seed), set()).add(one.sha256)
    assert hashes[250_000_000, 1] == {
        "aac7790512c4e8cffc9768d1ad35907c03d812303c479eab9f31570f2506b32b"
    }
    assert all(len(same) == 1 for same in hashes.values())
