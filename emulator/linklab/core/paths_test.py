from pathlib import Path

import pytest

from linklab.core import paths


def test_the_most_special_setting_names_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LINKLAB_CACHE", raising=False)
    assert paths.cache_dir() == tmp_path / "home" / ".cache" / "linklab"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert paths.cache_dir() == tmp_path / "xdg" / "linklab"
    monkeypatch.setenv("LINKLAB_CACHE", str(tmp_path / "mine"))
    assert paths.cache_dir() == tmp_path / "mine"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LINKLAB_CACHE", "beside")
    assert paths.cache_dir() == tmp_path / "beside"
