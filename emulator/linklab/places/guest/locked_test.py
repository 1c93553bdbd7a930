import re
from pathlib import Path

import pytest

from linklab.core.paths import INSTALLED, REPOSITORY
from linklab.places.guest import image, kernel, locked
from linklab.places.guest.locked import Built, Package, lock, parse

BROWSER = REPOSITORY / "emulator" / "setup" / "browser.lock"


def test_a_lock_is_lines_of_words() -> None:
    text = "# said\nsnapshot 2026T\ntree guest abc\nbuilt linux-a ff 7\nguest sh 1:2-3 ff 12 debian pool/s/sh_2-3.deb\n"
    found = parse(text)
    assert (found.snapshot, found.trees) == ("2026T", {"guest": "abc"})
    assert found.packages == {
        "guest": (Package("sh", "1:2-3", "ff", 12, "debian", "pool/s/sh_2-3.deb"),)
    }
    assert found.built == {"linux-a": Built("linux-a", "ff", 7)}
    assert found.built["linux-a"].line in text.splitlines()
    assert found.packages["guest"][0].file_name == "sh_2-3.deb"


def test_the_shipped_lock_is_whole() -> None:
    assert set(lock().packages) == set(lock().trees) == {"guest", "kernel"}
    assert re.fullmatch(r"\d{8}T\d{6}Z", lock().snapshot)
    for packages in lock().packages.values():
        assert len({one.name for one in packages}) == len(packages)
        for one in packages:
            assert re.fullmatch(r"[0-9a-f]{64}", one.sha256)
            assert one.archive in ("debian", "debian-security")
            assert one.path.startswith("pool/")
            assert one.file_name.startswith(f"{one.name}_")


def test_the_lock_knows_the_kernels_that_these_files_make() -> None:
    """After a change of a kernel.config, kernel.patch or the image: emulator/setup/lock-kernel."""
    assert set(lock().built) == {kernel.name(recipe) for recipe in kernel.RECIPES}
    for built in lock().built.values():
        assert re.fullmatch(r"[0-9a-f]{64}", built.sha256)


@pytest.mark.parametrize("recipe", kernel.RECIPES, ids=lambda recipe: recipe.prefix)
def test_a_kernel_is_the_same_to_the_byte_everywhere(recipe: kernel.KernelRecipe) -> None:
    there = kernel.cached(recipe)
    if there is None:
        pytest.skip(f"the {recipe.called} is not made yet")
    assert kernel.described(there) == lock().built[there.name]


def test_what_is_wanted_is_locked_and_what_is_left_out_is_not() -> None:
    section = ""
    wanted: dict[str, set[str]] = {}
    for line in Path(locked.__file__).with_name("image.in").read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif section and not line.startswith("#"):
            wanted.setdefault(section, set()).update(line.split())
    for name, words in wanted.items():
        if name == "browser" and INSTALLED:
            continue  # A wheel has no tests' browser.
        locks = parse(BROWSER.read_text()) if name == "browser" else lock()
        names = {one.name for one in locks.packages[name]}
        assert {word for word in words if not word.startswith("-")} <= names
        assert not {word[1:] for word in words if word.startswith("-")} & names


def test_a_version_is_that_of_either_image() -> None:
    assert locked.version("h2o") == "2.2.5+dfsg2-7"
    assert (locked.version("linux-source-7.2") or "").startswith("7.2.")
    assert locked.version("emacs") is None


@pytest.mark.skipif(INSTALLED, reason="a wheel has no requirements of the host's")
def test_the_python_packages_are_of_the_same_versions_everywhere() -> None:
    def pins(path: Path) -> set[str]:
        return set(re.findall(r"(?m)^\S+==\S+", path.read_text()))

    own = pins(image.REQUIREMENTS)
    assert len(own) == 4
    everything = pins(REPOSITORY / "emulator" / "development.txt")
    assert own <= everything
    with_extras = pins(REPOSITORY / "emulator" / "requirements.txt")
    assert with_extras <= everything
    assert pins(REPOSITORY / "emulator" / "base.txt") < with_extras
