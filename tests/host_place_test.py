"""Tests the lab on the host, without a guest. The host here is a guest, whose kernel has netem."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY, Linklab, ScenarioFile, lines

LISTENS = "until (: < /dev/tcp/127.0.0.1/8000) 2> /dev/null; do sleep 0.1; done;"
"""Waits in a script until a server listens on port 8000."""


def nested(script: str, scenario: Path) -> list[str]:
    """Returns a client command that runs a shell script with `$linklab` and `$scenario`."""
    prelude = (
        f"export PYTHONPATH=$PYTHONPATH:'{Path(__file__).parents[1]}/emulator'"
        " LINKLAB_CACHE=/tmp/cache; cd /tmp;"
        f" printf '#!/bin/sh\\nexec \"%s\" -m linklab \"$@\"\\n' '{sys.executable}' > linklab-here;"
        f" chmod +x linklab-here; linklab=/tmp/linklab-here; scenario={scenario};"
    )
    return ["bash", "-c", prelude + script]


def test_the_host_place_runs_the_same_lab(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario("hosted", size="5 MB")
    script = "$linklab run $scenario --place host --out /run/linklab/run/inner"
    done = linklab("exec", file, "--json", "--", *nested(script, file))
    run_dir = done.run_dir
    said = (run_dir / "client.err").read_text()
    assert done.code == 0, said
    assert "place: host, clock: real (as asked)" in said
    (inner,) = (run_dir / "inner").iterdir()
    assert lines(inner / "client.jsonl")[-1]["outcome"] == "complete"
    assert {line["link"] for line in lines(inner / "links.jsonl")} == {"wifi", "lte"}
    assert {line["process"] for line in lines(inner / "processes.jsonl")} == {"client", "server"}


def test_a_shell_on_the_host_is_a_terminal_too(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario("ashore", size="1 MB")
    script = (
        "stty rows 30 columns 100; "
        "$linklab shell $scenario --place host --out /tmp/inner --"
        " sh -c 'tty; stty size; ls /sys/class/net; exit 5'"
    )
    typescript = "script --quiet --return --command"
    (word,) = nested(script, file)[2:]
    done = linklab(
        "exec",
        file,
        "--json",
        "--",
        "bash",
        "-c",
        f"{typescript} {shlex.quote(word)} /dev/null",
    )
    run_dir = done.run_dir
    said = (run_dir / "client.out").read_text()
    assert json.loads((run_dir / "outcome.json").read_text())["exit_code"] == 5, said
    assert "/dev/pts/" in said
    assert "30 100" in said
    assert {"wlan0", "rmnet0"} <= set(said.split())


def test_two_labs_on_one_host_do_not_meet(linklab: Linklab, scenario: ScenarioFile) -> None:
    """Both transfer at full speed at the same time over links of the same names."""
    file = scenario("two", size="5 MB")
    script = (
        "for n in 1 2; do $linklab run $scenario -a single-wifi --place host"
        " --out /run/linklab/run/inner-$n & done; wait"
    )
    done = linklab("exec", file, "--json", "--", *nested(script, file))
    run_dir = done.run_dir
    assert done.code == 0, (run_dir / "client.err").read_text()
    for number in (1, 2):
        (inner,) = (run_dir / f"inner-{number}").iterdir()
        end = lines(inner / "client.jsonl")[-1]
        assert end["outcome"] == "complete"
        assert end["download_ns"] < 1.1e9 * 5e6 * 8 / 80e6 + 0.2e9


def test_a_killed_lab_on_the_host_leaves_nothing(linklab: Linklab, scenario: ScenarioFile) -> None:
    file = scenario("killed", size="100 MB")
    script = (
        # A zombie process holds no namespaces.
        "namespaces() { readlink /proc/[0-9]*/ns/net | sort -u | wc -l; };"
        # In its own directory, because /tmp also has the host's files.
        " scratch() { ls -d $TMPDIR/linklab-run-* | wc -l; };"
        " export TMPDIR=/tmp/scratch; mkdir -p $TMPDIR/linklab-run-$$-runs;"
        " ip -o link | wc -l; namespaces;"
        " $linklab run $scenario --place host --out /tmp/inner & sleep 3;"
        " pkill -KILL -f linklab.executio[n]; kill -KILL $!; sleep 1;"
        " ip -o link | wc -l; namespaces; pidof h2o multilink | wc -w;"
        " scratch; $linklab clean > /dev/null; scratch"
    )
    done = linklab("exec", file, "--json", "--", *nested(script, file))
    run_dir = done.run_dir
    before, after = [], []
    numbers = [int(word) for word in (run_dir / "client.out").read_text().split()]
    before, after = numbers[:2], numbers[2:4]
    assert before == after, (run_dir / "client.err").read_text()
    assert numbers[4] == 1, "the outer lab's server runs on, the inner one's does not"
    assert numbers[5:] == [2, 1], "clean removes the killed lab's scratch, not a running one's"


ON_HOST: dict[str, Any] = yaml.safe_load(
    (REPOSITORY / "emulator" / "compose.host.yaml").read_text()
)["services"]["emulator"]


def test_the_rights_of_the_host_s_compose_file_are_enough(
    linklab: Linklab, scenario: ScenarioFile
) -> None:
    """As the engine starts it: these rights alone, /proc/sys and the root read-only."""
    file = scenario("contained", size="5 MB")
    assert ON_HOST["user"] == "0"
    rights = ",".join(f"+{name.lower()}" for name in ON_HOST["cap_add"])
    entry = shlex.join(word.replace("$$", "$") for word in ON_HOST["entrypoint"])
    script = (
        "mkdir -p /run/bin /run/mine && chown 10001 /run/mine && mount -t tmpfs none /run/mine"
        " && chmod 755 /run/mine && chown 10001 /run/mine && export PATH=/run/bin:$PATH"
        ' && printf \'#!/bin/sh\\nexec %s "$@"\\n\' "$linklab" > /run/bin/linklab'
        " && chmod +x /run/bin/linklab"
        " && mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys"
        f" && setpriv --no-new-privs --inh-caps -all --bounding-set -all,{rights}"
        f" {entry} run $scenario -a alg3 --place host --out /run/mine/inner"
    )
    done = linklab("exec", file, "--json", "--", "unshare", "--mount", *nested(script, file))
    run_dir = done.run_dir
    said = (run_dir / "client.err").read_text() + (run_dir / "client.out").read_text()
    assert done.code == 0, said
    assert "place: host, clock: real (as asked)" in said


def test_a_program_on_the_host_is_found_by_the_same_rule_as_in_the_guest(
    linklab: Linklab, scenario: ScenarioFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = scenario("found", size="1 MB")
    tool = tmp_path / "mytool"
    tool.write_text('#!/bin/sh\necho "$0 $VIRTUAL_ENV $PATH"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("VIRTUAL_ENV", "/my/venv")
    inside = linklab("exec", file, "--", "mytool").out
    assert inside.startswith(f"{tool} /my/venv {tmp_path}:")
    script = "$linklab exec $scenario --place host --out /tmp/inner -- mytool"
    assert linklab("exec", file, "--", *nested(script, file)).out == inside
