"""Writes a module and all that it imports to standard output, in the format of `init.py`.

The image's Python runs `bundling.py MODULE PATH GUEST_PATH SITE…`. The package is at PATH here, and
at GUEST_PATH in the guest.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import marshal
import struct
import sys
from importlib.machinery import PathFinder, SourceFileLoader


def _add_package(name: str, place: str) -> None:
    """Adds a package without the other packages of its directory.

    An installed linklab lies beside packages for the host's Python, which may not be imported.
    """
    spec = PathFinder.find_spec(name, [place])
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{name} is not in {place}", name=name)
    sys.modules[name] = package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)


def main(module: str, place: str, guest_path: str, *site: str) -> None:
    """Imports the module, then writes the code of every module that came from a file, and of the
    functions that `dataclasses` wrote meanwhile."""
    sys.path += site
    functions = {}

    def keep(text: str, *names: dict[str, object]) -> None:
        functions[text] = code = compile(text, "<string>", "exec", dont_inherit=True)
        exec(code, *names)

    vars(dataclasses)["exec"] = keep
    _add_package(module.partition(".")[0], place)
    importlib.import_module(module)
    index, codes, at = {}, [], 0
    for name, loaded in sorted(sys.modules.items()):
        spec = getattr(loaded, "__spec__", None)
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            continue
        path = spec.loader.path
        if path.startswith(f"{place}/"):
            path = guest_path + path.removeprefix(place)
            source = spec.loader.get_source(name) or ""
            content = marshal.dumps(compile(source, path, "exec", dont_inherit=True))
        else:
            content = marshal.dumps(spec.loader.get_code(name))
        index[name] = (path, spec.submodule_search_locations is not None, at, len(content))
        codes.append(content)
        at += len(content)
    head = marshal.dumps((index, functions))
    sys.stdout.buffer.write(b"".join([struct.pack("=I", len(head)), head, *codes]))


if __name__ == "__main__":
    main(*sys.argv[1:])
