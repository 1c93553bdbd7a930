"""Tests that a release works without a checkout, and has the same bytes every time."""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import Distribution, PathDistribution, distribution, version
from pathlib import Path
from shlex import quote, split

import pytest
from conftest import REPOSITORY, Linklab, ScenarioFile, nightly, ran
from linklab.places.guest import image, kernel
from linklab.places.guest.locked import lock
from packaging.requirements import Requirement
from pytest_plugin_test import CLIENT, project_in, run_pytest

Installed = Callable[..., subprocess.CompletedProcess[str]]
EPOCH = "1700000000"
BUILT = b"built\n"


def build_wheel(directory: Path, checkout: Path = REPOSITORY, **env: str) -> Path:
    """Builds a checkout's wheel for this machine in `directory`. `env` may name another platform."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", directory],
        cwd=checkout / "emulator",
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, **env},
        check=True,
        capture_output=True,
    )
    (wheel,) = directory.glob("*.whl")
    return wheel


def build_client(output: Path, version: str) -> None:
    """Builds the client as a release of `version`."""
    subprocess.run(
        [REPOSITORY / "emulator" / "setup" / "client", output],
        env={**os.environ, "LINKLAB_VERSION": version},
        check=True,
        capture_output=True,
    )


def installed_wheel(wheel: Path, venv: Path, *options: str) -> Path:
    """Makes a virtual environment with the wheel. Returns its packages' directory."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", *options, venv], check=True)
    subprocess.run(
        [
            sys.executable,
            *split("-m pip --python"),
            venv / "bin" / "python",
            *split("install --quiet --no-index --no-deps --disable-pip-version-check"),
            wheel,
        ],
        check=True,
    )
    return next((venv / "lib").glob("python3*/site-packages"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the wheel of this checkout."""
    return build_wheel(tmp_path_factory.mktemp("release") / "wheel")


@pytest.fixture(scope="module")
def environment(wheel: Path) -> Path:
    """Makes a virtual environment with the wheel, and nothing of the checkout. Dependencies come from the tests' environment, offline."""
    venv = wheel.parents[1] / "venv"
    add_dependencies(installed_wheel(wheel, venv, "--system-site-packages"))
    return venv


def add_dependencies(site: Path) -> None:
    """Lets an environment find the packages of the tests' environment."""
    dependencies = next((Path(sys.prefix) / "lib").glob("python3*/site-packages"))
    # A directory named in a .pth file is on sys.path, but its own .pth files have no effect.
    (site / "dependencies.pth").write_text(f"{dependencies}\n")


@pytest.fixture(scope="module")
def lean(wheel: Path) -> Path:
    """Makes an environment with pytest and only what the wheel needs without extras, from files of
    the tests' environment."""
    venv = wheel.parents[1] / "lean"
    site = installed_wheel(wheel, venv)
    (metadata,) = site.glob("linklab-*.dist-info")
    needed = {"pytest"}
    waiting: list[Distribution] = [PathDistribution(metadata), distribution("pytest")]
    while waiting:
        for line in waiting.pop().requires or ():
            one = Requirement(line)
            wanted = one.marker is None or one.marker.evaluate({"extra": ""})
            if wanted and one.name not in needed:
                needed.add(one.name)
                waiting.append(distribution(one.name))
    for name in needed:
        for file in distribution(name).files or ():
            if ".." not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                (site / file).symlink_to(file.locate())
    return venv


@pytest.fixture
def installed(environment: Path, tmp_path: Path) -> Installed:
    """Calls the installed `linklab` in an empty directory."""
    return caller(environment, tmp_path)


def caller(environment: Path, directory: Path) -> Installed:
    """Calls the `linklab` of an environment in a directory."""

    def call(*words: object) -> subprocess.CompletedProcess[str]:
        clean = {
            k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LINKLAB_MULTILINK")
        }
        return ran([environment / "bin" / "linklab", *map(str, words)], cwd=directory, env=clean)

    return call


def test_the_wheel_finds_its_data(environment: Path, installed: Installed, tmp_path: Path) -> None:
    version = installed("--version")
    assert (version.returncode, version.stderr) == (0, "")
    (wheel,) = (environment.parent / "wheel").glob("*.whl")
    assert version.stdout == f"linklab {wheel.name.split('-')[1]}\n"
    scenarios = installed("scenarios", "--json")
    assert scenarios.returncode == 0, scenarios.stderr
    names = {path.stem for path in (REPOSITORY / "profiles" / "scenarios").rglob("*.yaml")}
    assert {one["name"] for one in json.loads(scenarios.stdout)} == names
    for words in (("plot", "tm", "-o", "tm.png"), ("doctor",)):
        done = installed(*words)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "tm.png").stat().st_size > 10_000
    (tmp_path / "mine.yaml").write_text("name: mine\npayload: {size: 1}\n")
    wrong = installed("validate", "mine.yaml")
    assert wrong.returncode == 2
    assert "mine.yaml:1: 'links' is missing" in wrong.stdout


def test_the_wheel_runs_what_the_checkout_runs(
    installed: Installed, linklab: Linklab, scenario: ScenarioFile, environment: Path
) -> None:
    file = scenario("short")
    done = installed("run", file, "-a", "alg3", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["figures"] == linklab("run", file, "-a", "alg3", "--json").json["figures"]
    manifest = json.loads(Path(report["run_dir"], "run.json").read_text())
    assert manifest["multilink"] == str(environment / "bin" / "multilink")
    assert str(REPOSITORY) not in json.dumps(manifest)
    page = installed("report", report["run_dir"], "-o", file.with_name("report.html"))
    assert page.returncode == 0, page.stderr
    assert "1 run." in file.with_name("report.html").read_text()


def test_a_change_that_slows_downloads_fails_a_test_of_a_user_s_repository(
    environment: Path, tmp_path: Path
) -> None:
    """The wheel brings the plugin. Its own baselines say that the client got slower."""
    project = project_in(tmp_path)
    start: list[object] = [environment / "bin" / "python", "-m", "pytest"]
    made = run_pytest(project, start, "--linklab-update")
    assert made.returncode == 0, made.stdout
    assert made.stdout.count("baseline written: ") == 2
    assert f"baseline written: {project}/__linklab__/test_downloads.test_ad" in made.stdout
    assert sorted(one.name for one in (project / "__linklab__").iterdir()) == [
        "test_downloads.test_adaptive.yaml",
        "test_downloads.test_my_client_is_no_slower.yaml",
    ]
    same = run_pytest(project, start)
    assert same.returncode == 0, same.stdout
    assert re.search(r"3 runs: \d\.\d s of the lab's time in \d+\.\d s of real time", same.stdout)
    (project / "my_client.py").write_text(CLIENT.replace("wlan0", "rmnet0"))
    worse = run_pytest(project, start, "--linklab-report", "failed.html")
    assert worse.returncode == 1
    assert "1 failed, 3 passed" in worse.stdout
    said = worse.stdout
    assert re.search(
        r"small curl seed 1 is worse than its baseline: download time 0\.\d+ s -> 0\.\d+ s \(\+",
        said,
    ), said
    assert "capacity and use, downlink, Mbit/s" in said or "capacity, downlink, Mbit/s" in said
    assert re.search(r"small curl seed 1: 0\.\d+ s, .* \(real \d+\.\d s\); .*LTE 1\.\d MB", said)
    assert "report of failed tests: failed.html" in said
    assert "small-curl-seed1" in (project / "failed.html").read_text()


A_TEST = """
import pytest

@pytest.mark.linklab("short.yaml")
@pytest.mark.parametrize("limit_s", [30, 0.001])
def test_a_download(linklab, limit_s):
    assert linklab.run("alg3").download_s < limit_s
"""


@nightly
def test_the_wheel_alone_makes_labs_without_network_compiler_and_extras(
    lean: Path, tmp_path: Path, linklab: Linklab, scenario: ScenarioFile
) -> None:
    """It brings client, image and kernel to a machine that has none."""
    programs, cache = tmp_path / "programs", tmp_path / "cache"
    programs.mkdir()
    for name in ("cc", "gcc", "make", "go", "ld", "as", "multilink"):
        (programs / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/used; exit 1\n")
        (programs / name).chmod(0o755)

    def call(program: str, *words: object) -> subprocess.CompletedProcess[str]:
        return ran(
            [str(lean / "bin" / program), *map(str, words)],
            cwd=tmp_path,
            env={
                "PATH": f"{programs}:/usr/sbin:/usr/bin:/bin",
                "HOME": str(tmp_path),
                "LINKLAB_CACHE": str(cache),
                **dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9"),
            },
        )

    file = scenario("short")
    doctor = call("linklab", "doctor")
    assert "the first run unpacks it from the wheel" in " ".join(doctor.stdout.split())
    assert doctor.returncode == 0, doctor.stdout
    compared = call("linklab", "compare", file, "-a", "alg3", "--json")
    assert compared.returncode == 0, compared.stderr
    assert (cache / "kernel" / kernel.name()).read_bytes() == kernel.ensure().read_bytes()
    assert image.tree_hash(cache / "image" / image.path("guest").name) == lock().trees["guest"]
    (comparison,) = json.loads(compared.stdout)["comparisons"]
    figures = linklab("run", file, "-a", "alg3", "--json").json["figures"]
    assert comparison["rows"][0]["download_s"] == figures["download_s"]
    done = call("linklab", *split("exec"), file, *split("-- curl -s -o {output} {url}"))
    assert done.returncode == 0, done.stderr
    (tmp_path / "test_downloads.py").write_text(A_TEST)
    tested = call("python", *split("-m pytest test_downloads.py --linklab-report failed.html"))
    assert "1 failed, 1 passed" in tested.stdout, tested.stdout + tested.stderr
    page = (tmp_path / "failed.html").read_text()
    assert "window.vegaEmbed" in page  # The charts' library is in the wheel.
    assert (
        '"$schema": "https://vega.github.io' in page or '"$schema":"https://vega.github.io' in page
    )
    assert call("linklab", "completion", "bash").returncode == 0  # Imports every command.
    assert call("linklab", *split("export runs -o runs.csv")).returncode == 0
    no_parquet = call("linklab", *split("export runs -o runs.parquet")).stderr
    assert "pip install 'linklab[export]'\n" in no_parquet
    assert not (tmp_path / "used").exists()


def test_a_checkout_without_what_a_wheel_brings_says_what_to_do(
    checkout: Path, tmp_path: Path
) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        build_wheel(tmp_path / "wheel", checkout, LINKLAB_CACHE=str(tmp_path / "empty"))
    said = failed.value.stderr.decode()
    assert f"not made yet: `make wheel` in {checkout} makes them and the wheel\n" in said


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("plot", "tm", "-o", "tm.png"), "report"),
        (("calibrate", "energy", "rows.csv"), "report"),
        (("reproduce", "thesis"), "campaign"),
        (("campaign", REPOSITORY / "profiles" / "campaigns" / "thesis.yaml"), "campaign"),
    ],
)
def test_a_missing_extra_is_named_before_anything_runs(
    lean: Path, tmp_path: Path, words: tuple[str, ...], extra: str
) -> None:
    done = caller(lean, tmp_path)(*words)
    assert done.returncode == 2
    assert f"not installed here: pip install 'linklab[{extra}]'\n" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.rglob("run.json")) == []


def lock_built(checkout: Path, *names: str) -> None:
    """Gives kernels in a checkout's image.lock the hash of `BUILT`."""
    lock = checkout / "emulator" / "linklab" / "places" / "guest" / "image.lock"
    line = rf"built \1 {hashlib.sha256(BUILT).hexdigest()} {len(BUILT)}"
    lock.write_text(re.sub(rf"(?m)^built ({'|'.join(names)}) .*", line, lock.read_text()))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies what a wheel is made of. Its image.lock names `BUILT` as the emulated machine's kernel,
    which takes minutes to compile. `make release` compiles it and compares it with image.lock."""
    directory = tmp_path_factory.mktemp("checkout")
    shutil.copytree(REPOSITORY / "emulator", directory / "emulator", symlinks=True)
    for name in ("client", "profiles", "server", "LICENSE"):
        (directory / name).symlink_to(REPOSITORY / name)
    lock_built(directory, kernel.name(kernel.MACHINE))
    return directory


@pytest.fixture
def of_release(tmp_path: Path) -> Path:
    """The directory of a release with image, kernels and clients."""
    directory = tmp_path / "release"
    directory.mkdir()
    shutil.copy(kernel.ensure(), directory)
    (directory / kernel.name(kernel.MACHINE)).write_bytes(BUILT)
    (directory / image.archive_name("guest")).write_text("an image")
    for name in ("linux-amd64", "linux-arm64"):
        shutil.copy(REPOSITORY / "build" / "multilink", directory / f"multilink-{name}")
    return directory


PLATFORMS = ("linux-amd64", "linux-arm64")


@pytest.mark.parametrize(("platform", "recipe"), [*zip(PLATFORMS, kernel.RECIPES, strict=True)])
def test_a_wheel_with_another_kernel_is_not_built(
    platform: str, recipe: kernel.KernelRecipe, checkout: Path, of_release: Path, tmp_path: Path
) -> None:
    (of_release / kernel.name(recipe)).write_text("of nobody knows where")
    where = {"LINKLAB_WHEEL": platform, "LINKLAB_WHEEL_FROM": str(of_release)}
    with pytest.raises(subprocess.CalledProcessError) as failed:
        build_wheel(tmp_path / "wheel", checkout, **where)
    named = f"{kernel.name(recipe)} is not a kernel that image.lock names"
    assert named in failed.value.stderr.decode()


def test_the_wheel_for_arm64_brings_what_a_guest_needs(
    checkout: Path, of_release: Path, tmp_path: Path
) -> None:
    """The client of each processor, and the same image and kernels as the wheel for x86-64."""
    brought = {}
    for platform in PLATFORMS:
        (of_release / f"multilink-{platform}").write_text(f"the client for {platform}")
        where = {"LINKLAB_WHEEL": platform, "LINKLAB_WHEEL_FROM": str(of_release)}
        wheel = build_wheel(tmp_path / platform, checkout, **where)
        with zipfile.ZipFile(wheel) as packed:
            brought[platform] = {
                name.rpartition("/")[2]: packed.read(name)
                for name in packed.namelist()
                if re.search(r"\.data/|data/(kernel|image)/", name)
            }
            (metadata,) = (one for one in packed.namelist() if one.endswith(".dist-info/WHEEL"))
            assert "Root-Is-Purelib: false\n" in packed.read(metadata).decode()
    assert wheel.name.endswith("-py3-none-manylinux_2_17_aarch64.whl")
    names = [image.archive_name("guest"), *map(kernel.name, kernel.RECIPES)]
    guest = {name: (of_release / name).read_bytes() for name in names}
    assert brought == {
        "linux-amd64": {"multilink": b"the client for linux-amd64", **guest},
        "linux-arm64": {
            "multilink": b"the client for linux-arm64",
            "multilink-linux-amd64": b"the client for linux-amd64",
            **guest,
        },
    }


def test_the_wheel_wants_what_it_was_checked_with(environment: Path) -> None:
    """A package may have a pin for each Python. Those of this Python count."""
    (metadata,) = environment.glob("lib/python3*/site-packages/linklab-*.dist-info/METADATA")
    wanted = [
        Requirement(line.removeprefix("Requires-Dist: "))
        for line in metadata.read_text().splitlines()
        if line.startswith("Requires-Dist: ")
    ]
    every = {"extra": "all"}
    here = [one for one in wanted if one.marker is None or one.marker.evaluate(every)]
    assert {"msgspec", "numpy", "scipy"} <= {one.name for one in here}
    assert len(here) == len({one.name for one in here})
    assert [one for one in here if version(one.name) not in one.specifier] == []


def test_the_same_commit_is_the_same_bytes(
    checkout: Path, of_release: Path, tmp_path: Path
) -> None:
    where = {"LINKLAB_WHEEL": PLATFORMS[0], "LINKLAB_WHEEL_FROM": str(of_release)}
    first, again = (build_wheel(tmp_path / name, checkout, **where) for name in ("first", "again"))
    assert (again.name, again.read_bytes()) == (first.name, first.read_bytes())
    made = []
    for name in ("one", "two"):
        build_client(tmp_path / name / "multilink", "1.2.3")
        made.append(hashlib.sha256((tmp_path / name / "multilink").read_bytes()).hexdigest())
    assert made[0] == made[1]
    said = ran([tmp_path / "one" / "multilink", "version"], check=True)
    assert said.stdout.startswith("multilink 1.2.3 (go")


def test_every_image_there_is_becomes_part_of_a_release(tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    engine.write_text('#!/bin/sh\nif [ "$1" = save ]; then echo "saved $2"; fi\n')
    engine.chmod(0o755)
    subprocess.run(
        [REPOSITORY / "emulator" / "setup" / "images", engine, "1.2.dev3+abc", tmp_path], check=True
    )
    saved = {path.name: gzip.decompress(path.read_bytes()) for path in tmp_path.glob("*.gz")}
    names = [path.parent.name for path in REPOSITORY.glob("*/Dockerfile")]
    assert saved == {
        f"linklab-{name}-image.tar.gz": f"saved linklab-{name}:1.2.dev3-abc\n".encode()
        for name in names
    }


PACKED_QUICKLY = """
import lzma, runpy
opened = lzma.open
lzma.open = lambda *of, preset, **more: opened(*of, preset=0, **more)
runpy.run_module("linklab.places.guest.pack", run_name="__main__", alter_sys=True)
"""
"""Packs the image as the release does, in a tenth of the time."""


@pytest.mark.parametrize("locked", [pytest.param(True, marks=nightly), False])
def test_a_release_builds_its_kernel_anew(tmp_path: Path, locked: bool) -> None:
    """Only the compilation, which takes minutes, is replaced. A kernel that image.lock does not
    name is not released."""
    # A kernel is refused before the image is made.
    image = "" if locked else f'ln -s {kernel.ensure().parents[1] / "image"} "$LINKLAB_CACHE";'
    cache, repository = tmp_path / "cache", tmp_path / "repository"
    named = ran(
        [sys.executable, "-c", "from linklab.places.guest import kernel as k; print(k.key())"],
        check=True,
    ).stdout.strip()
    poisoned = cache / "kernel" / f"linux-{named}"
    poisoned.parent.mkdir(parents=True)
    poisoned.write_text("of nobody knows where")
    shutil.copytree(REPOSITORY / "emulator", repository / "emulator", symlinks=True)
    if locked:
        lock_built(repository, r"\S+")
    (repository / "emulator/setup/client").write_text(
        '#!/bin/sh\ntouch "$2/multilink-linux-amd64"\n'
    )
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        'case "$1 $2" in\n'
        '  "-m hatchling") if [ "$3" = version ]; then echo 1.2.3; else touch "$7/linklab-1.2.3-$LINKLAB_WHEEL.whl"; fi ;;\n'
        "  *handbook/commands.py*) ;;\n"
        f'  "-m linklab.places.guest") {image} at=$LINKLAB_CACHE/kernel\n'
        f'    [ -e "$at" ] || {{ mkdir -p "$at" && echo built >"$at/linux-{named}" &&\n'
        f'      echo built >"$at/{kernel.name(kernel.MACHINE)}"; }} ;;\n'
        f'  "-m linklab.places.guest.pack") exec {quote(sys.executable)} -c {quote(PACKED_QUICKLY)} "$3" ;;\n'
        f'  *) exec {quote(sys.executable)} "$@" ;;\n'
        "esac\n"
    )
    python.chmod(0o755)
    for words in (
        ["init", "-q"],
        split("-c user.name=t -c user.email=t@example.org commit -q --allow-empty -m x"),
    ):
        subprocess.run(["git", "-C", repository, *words], check=True)
    output = tmp_path / "release"
    path = tmp_path / "bin"
    path.mkdir()
    for engine in ("docker", "podman"):
        (path / engine).write_text("#!/bin/sh\nexit 1\n")
        (path / engine).chmod(0o755)
    done = ran(
        [repository / "emulator/setup/release", python, output],
        env={**os.environ, "LINKLAB_CACHE": str(cache), "PATH": f"{path}:{os.environ['PATH']}"},
        timeout=None,
    )
    assert (done.returncode == 0) == locked, done.stderr
    if not locked:
        assert f"linux-{named} is not a kernel that image.lock names" in done.stderr
        assert not (output / poisoned.name).exists()
        return
    assert (output / poisoned.name).read_text() == "built\n"
    assert "linklab-man.tar.gz" in (output / "SHA256SUMS").read_text()
    assert poisoned.name in (output / "SHA256SUMS").read_text()
    for wheel in ("1.2.3-linux-amd64", "1.2.3-linux-arm64"):
        assert f"linklab-{wheel}.whl" in (output / "SHA256SUMS").read_text()
    assert poisoned.read_text() == "of nobody knows where"
