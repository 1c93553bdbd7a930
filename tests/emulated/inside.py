#!/usr/bin/python3
"""The first program of the emulated machine: runs the commands that the test sends, one at a time.

A command is a line of JSON on the virtio console: words, and seconds of patience. The answer is a
line with the exit code, the output and the error output.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

MOUNTS = (
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("tmpfs", "/run", ""),
    ("tmpfs", "/tmp", "size=80%"),
    ("cgroup2", "/sys/fs/cgroup", ""),
)
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/sbin:/usr/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "LINKLAB_CACHE": "/var/cache/linklab",
}


def call(*words: str) -> None:
    subprocess.run(words, env=ENVIRONMENT, check=True)


def run(words: list[str], patience_s: float) -> dict[str, object]:
    try:
        done = subprocess.run(
            words,
            env=ENVIRONMENT,
            cwd="/tmp",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience_s,
        )
    except subprocess.TimeoutExpired as late:
        return {"code": 124, "out": text(late.stdout), "err": text(late.stderr)}
    return {"code": done.returncode, "out": text(done.stdout), "err": text(done.stderr)}


def text(said: bytes | None) -> str:
    return (said or b"").decode(errors="replace")


def main() -> None:
    os.environ.update(ENVIRONMENT)
    # Only a file system above the kernel's first one can be left by pivot_root(2), as bwrap(1) does.
    call("mount", "-t", "tmpfs", "-o", "size=80%", "tmpfs", "/new")
    call("cp", "-ax", "/bin", "/etc", "/lib", "/lib64", "/root", "/sbin", "/usr", "/var", "/new")
    os.chdir("/new")
    call("mount", "--move", ".", "/")
    os.chroot(".")
    for kind, place, options in MOUNTS:
        Path(place).mkdir(parents=True, exist_ok=True)
        call("mount", "-t", kind, "-o", options or "rw", kind, place)
    call("depmod")
    call("modprobe", "-a", "virtio_pci", "virtio_console", "virtio_rng")
    call("ip", "link", "set", "lo", "up")
    (port,) = Path("/dev").glob("vport*")
    with port.open("r+b", buffering=0) as console:
        console.write(b'"ready"\n')
        waiting = b""
        while True:
            waiting += console.read(65536)
            *lines, waiting = waiting.split(b"\n")
            for line in lines:
                words, patience_s = json.loads(line)
                answer = memoryview(json.dumps(run(words, patience_s)).encode() + b"\n")
                while answer:
                    answer = answer[console.write(answer) :]


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:
        print(f"inside.py: {error!r}", file=sys.stderr, flush=True)
        os.system("poweroff -f")
        raise
