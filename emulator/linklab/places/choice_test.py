import os
import platform
import stat
from pathlib import Path

import pytest

from linklab.places import choice
from linklab.places.choice import Environment, PlaceError
from linklab.places.guest import system_calls

NO_GUEST, NO_HOST = "no source package", "not root"


def choose(
    monkeypatch: pytest.MonkeyPatch, asked: str, clock: str, *, guest: bool, host: bool
) -> Environment:
    monkeypatch.setattr(choice, "guest_obstacle", lambda *_: None if guest else NO_GUEST)
    monkeypatch.setattr(choice, "host_obstacle", lambda: None if host else NO_HOST)
    return choice.choose(asked, clock)


EXACT = Environment("guest", "virtual", "figures repeat exactly")
REAL = Environment("guest", "real", "the real clock was asked for")
NO_CHOICE = Environment("host", "real", f"no guest: {NO_GUEST}")
AS_ASKED = Environment("host", "real", "as asked")


@pytest.mark.parametrize(
    ("asked", "clock", "guest", "host", "expected"),
    [
        ("auto", "auto", True, True, EXACT),
        ("auto", "auto", True, False, EXACT),
        ("auto", "virtual", True, True, EXACT),
        ("auto", "real", True, True, REAL),
        ("auto", "auto", False, True, NO_CHOICE),
        ("auto", "real", False, True, NO_CHOICE),
        ("host", "auto", True, True, AS_ASKED),
        ("host", "real", False, True, AS_ASKED),
        ("guest", "real", True, False, REAL),
    ],
)
def test_what_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
    asked: str,
    clock: str,
    guest: bool,
    host: bool,
    expected: Environment,
) -> None:
    assert choose(monkeypatch, asked, clock, guest=guest, host=host) == expected


@pytest.mark.parametrize(
    ("asked", "clock", "guest", "host", "words"),
    [
        ("guest", "auto", False, True, f"^the guest place cannot be used: {NO_GUEST}$"),
        ("host", "auto", True, False, f"^the host place .*: {NO_HOST}; use --place guest$"),
        ("host", "auto", False, False, f"^neither place .*guest: {NO_GUEST}; host: {NO_HOST}$"),
        ("auto", "auto", False, False, f"^neither place .*guest: {NO_GUEST}; host: {NO_HOST}$"),
        ("host", "virtual", True, True, "only in the guest: use --place guest$"),
        ("host", "virtual", False, True, f"only in the guest, but: {NO_GUEST}$"),
        ("auto", "virtual", False, True, f"only in the guest, but: {NO_GUEST}$"),
    ],
)
def test_what_cannot_be_had_is_refused_with_a_remedy_that_works(
    monkeypatch: pytest.MonkeyPatch, asked: str, clock: str, guest: bool, host: bool, words: str
) -> None:
    with pytest.raises(PlaceError, match=words):
        choose(monkeypatch, asked, clock, guest=guest, host=host)


def test_a_guest_needs_its_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    needed = "User Mode Linux needs x86-64, this machine is aarch64"
    assert choice.native_obstacle() == needed
    monkeypatch.setattr(choice, "emulation_obstacle", lambda: "no QEMU")
    assert choice.guest_obstacle() == f"{needed}, and for an emulated processor: no QEMU"
    monkeypatch.setattr(choice, "emulation_obstacle", lambda: None)
    assert choice.guest_obstacle() is None
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert choice.guest_obstacle() is None


def host_obstacle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str | None) -> object:
    """What is said where root's `unshare` is a shell script, or missing."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    if script is not None:
        program = tmp_path / "unshare"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return choice.host_obstacle.__wrapped__()


def test_the_host_place_is_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert host_obstacle(monkeypatch, tmp_path, None) == "unshare (util-linux) is missing"
    said = "echo warning >&2; echo no netem >&2; exit 1"
    assert host_obstacle(monkeypatch, tmp_path, said) == "no netem"
    silent = host_obstacle(monkeypatch, tmp_path, "exit 1")
    assert silent == "no network namespace can be made"
    tried = '[ "$1" = --version ] || [ "$1" = --net ] && [ "$4" = linklab.lab.shaping.probe ] && [ -n "$PYTHONPATH" ]'
    missing = "nsenter (missing), mnexec (missing), h2o (missing)"
    assert host_obstacle(monkeypatch, tmp_path, tried) == missing
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert str(choice.host_obstacle.__wrapped__()).startswith("not root")


EMULATED = Environment(
    "guest",
    "virtual",
    "emulated processor: same figures, about 15 times slower",
    is_emulated=True,
)


@pytest.mark.parametrize(
    ("machine", "wanted", "expected"),
    [
        ("x86_64", "", None),
        ("x86_64", "auto", None),
        ("x86_64", "native", None),
        ("x86_64", "emulated", EMULATED),
        ("aarch64", "", EMULATED),
        ("aarch64", "emulated", EMULATED),
    ],
)
def test_the_processor_is_emulated_where_it_has_to_be(
    monkeypatch: pytest.MonkeyPatch, machine: str, wanted: str, expected: Environment | None
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(choice, "emulation_obstacle", lambda: None)
    monkeypatch.setenv(choice.PROCESSOR, wanted)
    assert choice.choose("auto", "auto") == (expected or EXACT)
    if wanted:  # A caller's word counts, whatever the environment says.
        monkeypatch.setenv(choice.PROCESSOR, "native" if expected else "emulated")
        assert choice.choose("auto", "auto", wanted) == (expected or EXACT)


def test_what_an_emulated_processor_cannot_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "emulation_obstacle", lambda: None)
    monkeypatch.setattr(choice, "host_obstacle", lambda: NO_HOST)
    monkeypatch.setenv(choice.PROCESSOR, "emulated")
    with pytest.raises(PlaceError, match="an emulated processor is too slow for the real clock$"):
        choice.choose("guest", "real")
    monkeypatch.setattr(choice, "emulation_obstacle", lambda: "qemu-system-x86_64 is missing")
    with pytest.raises(PlaceError, match="^the guest place .*: qemu-system-x86_64 is missing$"):
        choice.choose("guest", "auto")
    monkeypatch.setenv(choice.PROCESSOR, "arm64")
    with pytest.raises(PlaceError, match="^LINKLAB_PROCESSOR=arm64; allowed: auto, native,"):
        choice.choose("guest", "auto")
    monkeypatch.setenv(choice.PROCESSOR, "native")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(PlaceError, match="this machine is aarch64$"):
        choice.choose("guest", "auto")


def test_a_machine_that_catches_no_system_calls_emulates_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(choice, "emulation_obstacle", lambda: None)
    monkeypatch.setattr(choice, "host_obstacle", lambda: NO_HOST)
    monkeypatch.setattr(system_calls, "allows_filters", lambda: False)
    monkeypatch.setattr(system_calls, "allows_ptrace", lambda: True)
    assert not choice.choose("auto", "auto").is_emulated
    monkeypatch.setattr(system_calls, "allows_ptrace", lambda: False)
    assert choice.choose("auto", "auto") == EMULATED
    refused = "User Mode Linux needs seccomp filters or ptrace, this machine refuses both"
    with pytest.raises(PlaceError, match=f"{refused}, and an emulated processor is too slow"):
        choice.choose("guest", "real")
    monkeypatch.setenv(choice.PROCESSOR, "native")
    with pytest.raises(PlaceError, match=f"^the guest place cannot be used: {refused}$"):
        choice.choose("guest", "auto")
