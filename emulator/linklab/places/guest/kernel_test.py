import contextlib
import os
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from linklab.core import locks
from linklab.display.parts import Progress
from linklab.places.guest import image, image_root, kernel, locked
from linklab.places.guest.kernel import KernelError


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A configuration and a patch in place of the shipped ones."""
    made = tmp_path / "kernel.config", tmp_path / "kernel.patch"
    for path in made:
        path.write_text(f"content of {path.name}")
    for name in ("config", "patch"):
        monkeypatch.setattr(kernel.KernelRecipe, name, tmp_path / f"kernel.{name}")
    return made


@pytest.fixture
def source(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An x86-64 machine with an image whose programs are this machine's."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(image, "ensure", lambda name, progress: tmp_path / name)
    here = "import os, sys; os.chdir(sys.argv[1]); os.execvp(sys.argv[2], sys.argv[2:])"

    @contextlib.contextmanager
    def inside(root: Path, *, work: Path) -> Iterator[image_root.Command]:
        assert root == tmp_path / "kernel"
        yield lambda argv: [sys.executable, "-c", here, str(work), *argv]

    monkeypatch.setattr(image_root, "inside", inside)
    return tmp_path


def built(cache: Path, name: str, age_s: int = 0) -> Path:
    path = cache / "kernel" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("kernel")
    os.utime(path, (1e9 - age_s, 1e9 - age_s))
    return path


def program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_key_changes_with_everything_that_makes_the_kernel(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, patch = files
    keys = [kernel.key()]
    config.write_text("another")
    keys.append(kernel.key())
    patch.write_text("another")
    keys.append(kernel.key())
    # What one part loses and the next gains is a change too.
    config.write_text("anothera")
    patch.write_text("nother")
    keys.append(kernel.key())
    sources = config.with_name("kernel_sources")
    monkeypatch.setattr(kernel.KernelRecipe, "sources", sources)
    keys.append(kernel.key())
    (sources / "net").mkdir(parents=True)
    (sources / "net/one.c").write_text("")
    keys.append(kernel.key())
    (sources / "net/one.c").write_text("another")
    keys.append(kernel.key())
    (sources / "net/one.c").rename(sources / "net/two.c")
    keys.append(kernel.key())
    monkeypatch.setattr(image, "path", lambda name: Path(f"/{name}-of-another-lock"))
    keys.append(kernel.key())
    assert len(set(keys)) == len(keys)
    assert kernel.key() == keys[-1]
    assert all(len(key) == 16 for key in keys)


def test_the_kernel_in_the_cache_is_the_one_with_the_key(cache: Path, source: Path) -> None:
    assert kernel.cached() is None
    built(cache, "linux-0123456789abcdef")
    assert kernel.cached() is None
    right = built(cache, f"linux-{kernel.key()}", age_s=1000)
    assert kernel.cached() == right
    assert kernel.ensure() == right


def test_other_processors_take_the_kernel_from_a_release(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(image_root, "_RUN_X86_64", ())
    with pytest.raises(KernelError, match="this machine is aarch64: take .*LINKLAB_RELEASE"):
        kernel.ensure()


def knows_only(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the lock name a kernel, on a machine that cannot build one."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    right = replace(locked.lock(), built={made.name: kernel.described(made)})
    monkeypatch.setattr(kernel, "lock", lambda: right)

    def fail(*_: object) -> Path:
        raise KernelError("cannot be built here")

    monkeypatch.setattr(kernel, "_build", fail)


@pytest.fixture(params=["release", "wheel"])
def offered(
    request: pytest.FixtureRequest, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A release or a wheel with a kernel that the lock names, on a machine that cannot build it."""
    directory = tmp_path / str(request.param)
    directory.mkdir()
    made = directory / kernel.name()
    made.write_text("the kernel")
    if request.param == "release":
        monkeypatch.setenv("LINKLAB_RELEASE", str(directory))
    else:
        monkeypatch.setattr(kernel, "IN_WHEEL", directory)
    knows_only(made, monkeypatch)
    return made


of_release = pytest.mark.parametrize("offered", ["release"], indirect=True)


def test_a_kernel_comes_from_a_release_or_the_wheel(offered: Path) -> None:
    path = kernel.ensure()
    assert path.read_text() == "the kernel"
    assert os.access(path, os.X_OK)
    assert kernel.cached() == path


def test_another_kernel_is_not_used(
    offered: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even where the release itself says that it is right."""
    offered.write_text("#!/bin/sh")
    sums = f"{kernel.described(offered).sha256}  {offered.name}\n"
    offered.with_name("SHA256SUMS").write_text(sums)
    with pytest.raises(KernelError, match="cannot be built here"):
        kernel.ensure()
    assert "does not have the SHA-256 that image.lock says" in capsys.readouterr().err
    assert {path.name for path in (cache / "kernel").iterdir()} == {"lock"}


@of_release
def test_no_more_of_a_release_is_fetched_than_the_kernel_has(
    offered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offered.write_text("0" * 100_000)
    with pytest.raises(KernelError, match="cannot be built here"):
        kernel.ensure()
    assert "has more than 10 bytes" in capsys.readouterr().err


def test_a_kernel_that_the_lock_does_not_know_is_not_used(
    offered: Path, files: tuple[Path, Path], cache: Path
) -> None:
    """`files` are not those that it was made of."""
    with pytest.raises(KernelError, match="cannot be built here"):
        kernel.ensure()
    assert {path.name for path in (cache / "kernel").iterdir()} == {"lock"}


@of_release
def test_a_release_without_the_kernel_is_one_line_where_none_can_be_built(
    offered: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offered.unlink()
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(image_root, "_RUN_X86_64", ())
    with pytest.raises(KernelError) as raised:
        kernel.ensure()
    words = (
        rf"the guest kernel cannot be made: file:.*{offered.name}: .*; making the guest runs x86-64"
    )
    assert re.match(words, str(raised.value))
    assert capsys.readouterr().err == ""


def test_waiting_for_another_linklab_is_said(
    cache: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    (cache / "kernel").mkdir(parents=True)
    done = built(cache, "linux-not-yet")

    def waits(what: str, _: float) -> None:
        said.append(what)
        done.rename(done.with_name(kernel.name()))
        other.close()

    with (cache / "kernel" / "lock").open("wb") as other:
        locks.take(other)
        assert kernel.ensure(waits) == cache / "kernel" / kernel.name()
    assert said == ["waiting for another linklab"]


def test_a_build_that_fails_shows_its_log_and_leaves_no_work(
    cache: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "archive").write_text("no archive")
    monkeypatch.setattr(kernel, "SOURCE_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.setattr(kernel, "_ENVIRONMENT", dict(os.environ))
    with pytest.raises(KernelError) as error:
        kernel.ensure()
    said = str(error.value)
    assert said.startswith("building the guest kernel failed, log in ")
    assert str(cache / "kernel" / "build.log") in said
    assert "archive" in said
    assert {path.name for path in (cache / "kernel").iterdir()} == {"build.log", "lock"}


def test_without_the_image_there_is_no_kernel(
    cache: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_image(name: str, progress: Progress) -> Path:
        raise image_root.ImageError("no network")

    monkeypatch.setattr(image, "ensure", no_image)
    with pytest.raises(KernelError, match="the guest kernel cannot be made: no network"):
        kernel.ensure()
    assert {path.name for path in (cache / "kernel").iterdir()} == {"lock"}


def test_a_build_step_by_step(
    cache: Path,
    source: Path,
    files: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With programs that note how they are called instead of the real ones."""
    tools = tmp_path / "tools"
    tools.mkdir()
    path_with_tools = {**kernel._ENVIRONMENT, "PATH": f"{tools}:/usr/bin:/bin"}
    monkeypatch.setattr(kernel, "_ENVIRONMENT", path_with_tools)
    monkeypatch.setenv("ARCH", "arm64")
    files[0].write_text("CONFIG_NET=y\n# CONFIG_PCI is not set\nCONFIG_BLOCK=n\n")
    calls = tmp_path / "calls"
    note = f'echo "$(basename "$0") $*" >> "{calls}"'
    program(tools, "xz", note)
    program(tools, "tar", f"cat > /dev/null; {note}; mkdir -p {kernel.SOURCE_PACKAGE}")
    program(tools, "patch", note)
    program(
        tools,
        "make",
        f"{note}; [ -z \"$ARCH\" ] || exit 1; cd $2; [ -f net/mptcp/coupled.c ] || exit 1; printf 'CONFIG_NET=y\\n' > .config;"
        " echo '  CC one'; echo '  CC two'; echo binary > linux",
    )
    program(tools, "strip", f'{note}; cp "$3" "$2"')
    said: list[tuple[str, float]] = []
    path = kernel.ensure(lambda what, fraction: said.append((what, fraction)))
    assert path.read_text() == "binary\n"
    assert os.access(path, os.X_OK)
    assert kernel.cached() == path
    steps = [line.split() for line in calls.read_text().splitlines()]
    assert [step[0] for step in steps] == ["xz", "tar", "patch", "make", "make", "strip"]
    assert {f"{kernel.SOURCE_PACKAGE}/{one}" for one in kernel.GUEST.needed} <= set(steps[1])
    assert f"KCONFIG_ALLCONFIG=../{files[0].name}" in steps[3]
    assert steps[3][-1] == "allnoconfig"
    assert {"ARCH=um", "linux"} <= set(steps[4])
    assert said[0] == ("unpacking the source", 0.25)
    assert [what for what, _ in said[-2:]] == [
        f"compiling, 2 of {kernel.GUEST.objects} objects",
        "removing the source",
    ]
    assert [of for _, of in said] == sorted(of for _, of in said)
    assert said[-1][1] < 1


def test_an_answer_that_the_source_does_not_take_is_named(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    files[0].write_text("CONFIG_NET=y\nCONFIG_NET_SCH_NETEM=y\nCONFIG_BLOCK=n\n")
    config = tmp_path / ".config"
    config.write_text("CONFIG_NET=y\n# CONFIG_NET_SCH_NETEM is not set\n")
    with pytest.raises(KernelError, match="did not take CONFIG_NET_SCH_NETEM=y of kernel.config"):
        kernel._check_configuration(config, files[0])
    config.write_text("CONFIG_NET=y\nCONFIG_NET_SCH_NETEM=y\n")
    kernel._check_configuration(config, files[0])
    config.write_text("CONFIG_NET=y\nCONFIG_NET_SCH_NETEM=y\nCONFIG_BLOCK=y\n")
    with pytest.raises(KernelError, match="CONFIG_BLOCK=n"):
        kernel._check_configuration(config, files[0])
