"""Finds files that ship with linklab by name, and a user's own by path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from linklab.schema.mapping import guess


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """Finds all files of a kind. `kind` is its name in errors. `endings` are the allowed endings of
    paths. Files that ship have the first one. A missing file raises `error`."""

    kind: str
    endings: tuple[str, ...]
    error: type[Exception]

    def files(self, directory: Path) -> dict[str, Path]:
        """Returns the files in `directory` and its folders by name, sorted by name."""
        found = {file.stem: file for file in directory.rglob(f"*{self.endings[0]}")}
        return dict(sorted(found.items()))

    def names(self, directory: Path) -> list[str]:
        """Returns the names of the files in `directory` and its folders, sorted."""
        return list(self.files(directory))

    def _near(self, file: Path) -> str:
        """Names the folder that was searched, and the nearest name in it."""
        folder = file.absolute().parent
        try:
            names = [one.name for one in folder.iterdir() if one.suffix in self.endings]
        except OSError:
            return f", because there is no folder {folder}"
        return f" in {folder}{guess(file.name, names)}"

    def find(self, name_or_path: str, directory: Path, base: Path | None = None) -> Path:
        """Returns the file of a name in `directory` or its folders, or of a path relative to `base`.

        A text with a slash or one of the endings is a path.
        """
        if "/" in name_or_path or name_or_path.endswith(self.endings):
            file = (base or Path()) / name_or_path
            if not file.is_file():
                allowed = f"the path of a file that ends in {self.endings[0]}"
                raise self.error(
                    f"{file}: there is no such {self.kind}{self._near(file)}; allowed: {allowed}"
                )
            return file
        known = self.files(directory)
        if name_or_path in known:
            return known[name_or_path]
        raise self.error(
            f"no {self.kind} is called {name_or_path!r}{guess(name_or_path, known)}; "
            f"allowed: {', '.join(known) or 'none'}, or a path that ends in {self.endings[0]}"
        )
