"""Writes a module and all that it imports to standard output, as `init.py` reads them.

`bundling.py MODULE PLACE SHOWN SITE…` is run by the image's Python: the package lies at PLACE now and
will be at SHOWN.
"""

from __future__ import annotations

import importlib
import importlib.util
import marshal
import struct
import sys
from importlib.machinery import PathFinder, SourceFileLoader


def _add_package(name: str, place: str) -> None:
    """Makes a package known that lies in a directory with others, such as those that an installed
    linklab has beside it for the host's Python."""
    spec = PathFinder.find_spec(name, [place])
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{name} is not in {place}", name=name)
    sys.modules[name] = package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)


def main(module: str, place: str, shown: str, *site: str) -> None:
    """Imports the module, then writes the code of every module that came from a file."""
    sys.path += site
    _add_package(module.partition(".")[0], place)
    importlib.import_module(module)
    index, codes, at = {}, [], 0
    for name, loaded in sorted(sys.modules.items()):
        spec = getattr(loaded, "__spec__", None)
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            continue
        path = spec.loader.path
        if path.startswith(f"{place}/"):
            path = shown + path.removeprefix(place)
            source = spec.loader.get_source(name) or ""
            content = marshal.dumps(compile(source, path, "exec", dont_inherit=True))
        else:
            content = marshal.dumps(spec.loader.get_code(name))
        index[name] = (path, spec.submodule_search_locations is not None, at, len(content))
        codes.append(content)
        at += len(content)
    head = marshal.dumps(index)
    sys.stdout.buffer.write(b"".join([struct.pack("=I", len(head)), head, *codes]))


if __name__ == "__main__":
    main(*sys.argv[1:])
