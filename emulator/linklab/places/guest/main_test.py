import platform
import threading
from pathlib import Path

import pytest

from linklab.display.parts import Progress
from linklab.places.guest import __main__ as making
from linklab.places.guest import image, image_root, kernel


@pytest.fixture(autouse=True)
def nothing_there(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An x86-64 machine on which nothing of the guest is made."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(image, "cached", lambda name: None)


class Maker:
    """Stands for image or kernel: begins, then goes on until it is told to stop."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.ended: BaseException | None = None

    def goes_on(self, progress: Progress, recipe: kernel.KernelRecipe | None = None) -> Path:
        """Like `ensure`."""
        self.begun.set()
        try:
            for _ in range(10_000):
                progress("going on", 0.5)
                threading.Event().wait(0.001)
        except BaseException as error:
            self.ended = error
            raise
        return Path("made")


def test_an_image_that_fails_ends_the_kernel_s_build_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of_kernel = Maker()

    def no_image(name: image.Name, progress: Progress) -> Path:
        of_kernel.begun.wait(10)
        raise image_root.ImageError("no network")

    monkeypatch.setattr(image, "ensure", no_image)
    monkeypatch.setattr(kernel, "ensure", of_kernel.goes_on)
    assert making.main() == 1
    assert capsys.readouterr().err.splitlines()[-1] == "linklab: no network"
    assert of_kernel.ended is not None


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (kernel.KernelError("no room"), 1, "linklab: no room"),
        (KeyboardInterrupt(), 130, "linklab: interrupted; what is half made is removed"),
    ],
)
def test_a_kernel_that_fails_ends_the_image_s_making(
    error: BaseException,
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    of_image = Maker()

    def no_kernel(progress: Progress, recipe: kernel.KernelRecipe) -> Path:
        of_image.begun.wait(10)
        raise error

    monkeypatch.setattr(image, "ensure", lambda name, progress: of_image.goes_on(progress))
    monkeypatch.setattr(kernel, "ensure", no_kernel)
    assert making.main() == code
    assert capsys.readouterr().err.splitlines()[-1] == words
    assert of_image.ended is not None


def test_other_processors_are_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(kernel, "ensure", None)
    assert making.main() == 0
