import importlib.metadata
import tomllib

import pytest

from linklab.core import extras
from linklab.core.paths import INSTALLED, REPOSITORY


@pytest.mark.skipif(INSTALLED, reason="a wheel has no pyproject.toml")
def test_the_modules_are_those_of_the_packages() -> None:
    project = tomllib.loads((REPOSITORY / "emulator" / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["extras"]
    distributions = importlib.metadata.packages_distributions()
    assert packages == {
        extra: [distributions[one][0] for one in modules]
        for extra, modules in extras.MODULES.items()
    }


@pytest.mark.parametrize(
    ("installed", "words"), [(True, "pip install 'linklab[report]'"), (False, "make extras")]
)
def test_what_is_missing_is_said_with_what_to_install(
    installed: bool, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    extras.require("report", "a page")
    monkeypatch.setattr(extras, "INSTALLED", installed)
    monkeypatch.setitem(extras.MODULES, "report", ("json", "no_such_module"))
    with pytest.raises(extras.MissingExtra) as told:
        extras.require("report", "a page")
    assert str(told.value) == f"a page needs no_such_module, not installed here: {words}"
