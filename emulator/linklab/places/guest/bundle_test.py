import os
import subprocess
import sys
from pathlib import Path

import pytest

from linklab.core.paths import PYTHON_PATH
from linklab.places.guest import bundle, image, image_root, init

BUNDLING = PYTHON_PATH / "linklab" / "places" / "guest" / "bundling.py"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A place with a package `little` that imports its own and another's modules."""
    place = tmp_path / "place"
    for name, text in {
        "little/__init__.py": "",
        "little/session.py": "import colorsys\nfrom little.inner import HERE, wrong\n",
        "little/inner/__init__.py": "from pathlib import Path\n\nHERE = Path(__file__)\n",
        "little/inner/wrong.py": "def fail():\n    raise KeyError('here')\n",
        "little/unused.py": "",
    }.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return place


def bundled(place: Path, shown: str) -> bytes:
    """What the maker writes, by this Python."""
    words = [sys.executable, "-S", "-P", "-B", str(BUNDLING), "little.session", str(place), shown]
    return subprocess.run(words, check=True, capture_output=True).stdout


def imported(file: Path, text: str) -> str:
    """What a Python says that imports from the file alone, but for what it has itself."""
    script = (
        f"import sys\nsys.path.insert(0, {str(PYTHON_PATH)!r})\n"
        f"from linklab.places.guest.init import Bundle\nsys.path.pop(0)\n"
        f"sys.meta_path.insert(0, Bundle({str(file)!r}))\n{text}"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-B", "-c", script], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_what_was_bundled_is_imported_from_the_file_alone(package: Path, tmp_path: Path) -> None:
    file = tmp_path / "bundle"
    file.write_bytes(bytes(init.MARK_BYTES) + bundled(package, "/shown"))
    package.rename(tmp_path / "gone")
    said = imported(
        file,
        "import little.session as it, colorsys, little\n"
        "print(it.HERE, it.colorsys is colorsys, colorsys.__file__, little.__path__)\n"
        "import little.unused",
    )
    assert said.startswith("/shown/little/inner/__init__.py True ")
    assert said.splitlines()[0].endswith("colorsys.py ['/shown/little']")
    # Only what is needed is in the file.
    assert said.endswith("No module named 'little.unused'\n")


def test_functions_of_dataclasses_are_compiled_already(package: Path, tmp_path: Path) -> None:
    (package / "little/session.py").write_text(
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Known:\n    size: int = 2\n"
    )
    file = tmp_path / "bundle"
    file.write_bytes(bytes(init.MARK_BYTES) + bundled(package, "/shown"))
    said = imported(
        file,
        "import sys\n"
        "compiled = []\n"
        "def hook(event, words):\n"
        "    if event == 'compile' and '__init__' in str(words[0]): compiled.append(words)\n"
        "sys.addaudithook(hook)\n"
        "from little.session import Known\n"
        "print(Known(), len(compiled))\n"
        "from dataclasses import make_dataclass\n"
        "print(make_dataclass('Unknown', ['x'])(3), len(compiled))",
    )
    assert said == "Known(size=2) 0\nUnknown(x=3) 1\n"


def test_what_lies_beside_the_package_is_not_taken(package: Path, tmp_path: Path) -> None:
    """The packages of the host's Python, beside an installed linklab: for another Python."""
    (package / "colorsys.py").write_text("raise ImportError('for another Python')")
    file = tmp_path / "bundle"
    file.write_bytes(bytes(init.MARK_BYTES) + bundled(package, "/shown"))
    said = imported(file, "import little.session, colorsys; print(colorsys.__file__)")
    assert said.endswith("colorsys.py\n")
    assert str(package) not in said


def test_an_error_names_the_file_as_the_guest_has_it(package: Path, tmp_path: Path) -> None:
    file = tmp_path / "bundle"
    file.write_bytes(bytes(init.MARK_BYTES) + bundled(package, "/shown"))
    said = imported(file, "from little.inner import wrong\nwrong.fail()")
    assert 'File "/shown/little/inner/wrong.py", line 2, in fail' in said


@pytest.fixture
def made(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[bytes]:
    """What has been made so far, of a package that lies in `package`."""
    (tmp_path / "package").mkdir()
    contents: list[bytes] = []

    def make(_: Path, session: str) -> bytes:
        contents.append(b"content %d" % len(contents))
        return contents[-1]

    monkeypatch.setattr(bundle, "_PACKAGE", tmp_path / "package")
    monkeypatch.setattr(bundle, "_made", make)
    monkeypatch.setattr(image_root, "has_namespaces", lambda _: True)
    return contents


def again(root: Path) -> Path | None:
    """As another process of linklab would ask."""
    bundle.ensure.cache_clear()
    return bundle.ensure(root, "linklab.session")


def test_it_is_made_anew_when_a_module_or_the_image_changes(
    made: list[bytes], tmp_path: Path
) -> None:
    file = tmp_path / "package" / "one.py"
    file.write_text("a = 1\n")
    path = again(tmp_path / "guest-1")
    assert path is not None
    assert path.read_bytes()[init.MARK_BYTES :] == b"content 0"
    assert again(tmp_path / "guest-1") == path
    assert len(made) == 1
    again(tmp_path / "guest-2")
    assert len(made) == 2
    status = file.stat()
    file.write_text("a = 2\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    again(tmp_path / "guest-2")
    assert len(made) == 3
    (tmp_path / "package" / "one_test.py").write_text("")
    (tmp_path / "package" / "data.json").write_text("")
    again(tmp_path / "guest-2")
    assert len(made) == 3
    (tmp_path / "package" / "two").mkdir()
    (tmp_path / "package" / "two" / "three.py").write_text("")
    assert again(tmp_path / "guest-2") == path
    assert path.read_bytes()[init.MARK_BYTES :] == b"content 3"


def test_the_guest_does_without_where_no_program_of_the_image_runs(
    made: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_root, "has_namespaces", lambda _: False)
    assert again(tmp_path) is None
    assert made == []


def test_a_package_that_cannot_be_imported_is_an_error(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fake:
        def __enter__(self) -> object:
            return lambda words: ["sh", "-c", "echo one >&2; echo 'ImportError: x' >&2; exit 1"]

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(image_root, "has_namespaces", lambda _: True)
    monkeypatch.setattr(image_root, "inside", lambda *_, **__: Fake())
    with pytest.raises(image_root.ImageError, match="cannot import linklab: ImportError: x"):
        again(tmp_path)
    assert not list((cache / "bundle").iterdir())


@pytest.mark.skipif(
    (root := image.cached("guest")) is None or not image_root.has_namespaces(root),
    reason="no image here, or it cannot run",
)
def test_the_image_s_python_bundles_this_package() -> None:
    assert root is not None
    content = bundle._made(root, "linklab.runs.guest_session")
    for name in (b"linklab.runs.execution", b"msgspec", b"mininet.node", b"/run/linklab/python/"):
        assert name in content
    assert b"pyroute2/" not in content
