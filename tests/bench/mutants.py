"""Changes the code at random places, and counts the changes that the unit tests beside it do not notice.

Four of five places are in the folders that decide figures. A change flips a comparison, adds one to a
constant, swaps an operator, negates a condition or deletes a statement, in a copy of the checkout.
usage: PYTHONPATH=tests .venv/bin/python -m bench.mutants go|python COUNT [SEED]
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.mutation_sites import sites

ROOT = Path(__file__).resolve().parents[2]
LAB, CLIENT = "emulator/linklab", "client/internal"
PLACES = {
    "python": (".py", LAB, "models/ links/ energy/ runs/ traces/ queues/ report/statement"),
    "go": (".go", CLIENT, "schedule/ download/ transfer/ throughput/ ranges/"),
}
"""Of each language: suffix, folder, and what in it decides figures."""

_LIMITS = ("timeout", "-k", "5", "600", "nice", "prlimit", "--cpu=240")
"""Limits in seconds for all of a test, and for each process in processor time."""


@dataclass(frozen=True)
class Mutant:
    """The bytes of a file from `first` to `end` become `text`."""

    path: Path
    first: int
    end: int
    text: str
    kind: str

    def __str__(self) -> str:
        content = self.path.read_bytes()
        line = content.count(b"\n", 0, self.first) + 1
        column = self.first - content.rfind(b"\n", 0, self.first)
        was = " ".join(content[self.first : self.end].decode().split())
        place = f"{self.path.relative_to(ROOT)}:{line}:{column}"
        return f"{place} {self.kind}: {was} → {self.text}"[:160]


def mutants(language: str, paths: list[Path]) -> Iterator[Mutant]:
    """Yields the mutants of files."""
    if language == "python":
        yield from (Mutant(path, *site) for path in paths for site in sites(path))
        return
    words = f"{ROOT}/emulator/setup/client go run mutation_sites.go --".split()
    said = subprocess.check_output([*words, *paths], cwd=Path(__file__).parent, text=True)
    for line in said.splitlines():
        path, first, end, text, kind = line.split("\t")
        yield Mutant(Path(path), int(first), int(end), text, kind)


def drawn(language: str, count: int, seed: int) -> list[Mutant]:
    """Draws mutants, four of five from the code that decides figures."""
    suffix, folder, words = PLACES[language]
    starts = tuple(str(ROOT / folder / word) for word in words.split())
    chance = random.Random(seed)
    found: list[Mutant] = []
    for decides, wanted in ((True, count * 4 // 5), (False, count - count * 4 // 5)):
        paths = [
            one
            for one in sorted((ROOT / folder).rglob(f"*{suffix}"))
            if not one.name.endswith((f"_test{suffix}", "conftest.py"))
            and str(one).startswith(starts) == decides
        ]
        found += chance.sample(list(mutants(language, paths)), wanted)
    return found


def noticed(tree: Path, path: Path, mutated: bytes) -> str:
    """Tells what the tests beside a file say when it is `mutated`: the quickest to find something, then all."""
    own, content, is_go = (
        path.with_name(f"{path.stem}_test.py"),
        path.read_bytes(),
        path.suffix == ".go",
    )
    python = [sys.executable, "-B", "-m", "pytest", "-n0", "-x"]
    commands = [[*python, str(one)] for one in (own, path.parent) if one.exists()]
    if is_go:
        tests = [f"{tree}/emulator/setup/client", "go", "test", "-failfast", "."]
        commands = [[*tests, "-run", "Chance|Random"], tests]

    def run(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [*_LIMITS, *words],
            cwd=path.parent if is_go else tree,
            env=os.environ | {"PYTHONPATH": f"{tree}/emulator"},
            capture_output=True,
            check=False,
        )
        return done.returncode, done.stdout.decode(errors="replace")

    for words in commands:
        path.write_bytes(mutated)
        code, said = run(*words)
        path.write_bytes(content)
        if "[build failed]" in said or "SyntaxError" in said:
            return "did not compile"
        if code in (124, 137):
            return "timed out"
        if code:
            failed = "|".join(re.findall(r"^--- FAIL: (\w+)", said, re.MULTILINE))
            again = ["-run", f"^({failed})$"] if is_go else ["--lf"]
            return "fails unchanged" if run(*words, *again)[0] else "killed"
    return "lived"


def main(language: str, count: str, seed: str = "1") -> None:
    """Prints each mutant with its verdict, and the counts."""
    verdicts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as tree:
        subprocess.run(f"git ls-files -z | xargs -0 cp --parents -t {tree}", shell=True, cwd=ROOT)
        (Path(tree) / "build").symlink_to(ROOT / "build")
        for one in drawn(language, int(count), int(seed)):
            content = one.path.read_bytes()
            mutated = content[: one.first] + one.text.encode() + content[one.end :]
            found = noticed(Path(tree), tree / one.path.relative_to(ROOT), mutated)
            verdicts[found] += 1
            print(f"{found:<15} {one}", flush=True)
    print(f"{language}, seed {seed}: {dict(verdicts)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
