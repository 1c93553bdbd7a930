"""Provides Vega-Lite without network: its JavaScript for a page, and charts as files."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any, Final

from linklab.core.paths import VEGA, in_cache
from linklab.core.printable import printable
from linklab.core.whole_file import write

VERSION: Final = "6.4"
"""The version of Vega-Lite, one that vl-convert has."""

FORMATS: Final = ("svg", "png")

_WIDTH: Final = 640


def javascript() -> str:
    """Returns Vega, Vega-Lite and Vega-Embed in one script that sets `vegaEmbed` and `vega`. A wheel
    has it. In a checkout the first call on a machine bundles them, which takes some seconds, and keeps
    them in the cache."""
    return (VEGA if VEGA.is_file() else bundled()).read_text()


def bundled() -> Path:
    """Returns the file of `javascript` in the cache, which is made if it is not there."""
    path = in_cache("vega") / f"{importlib.metadata.version('vl-convert-python')}-{VERSION}.js"
    if not path.is_file():
        import vl_convert  # An extra.

        made = vl_convert.javascript_bundle(
            "window.vegaEmbed=vegaEmbed;window.vega=vega;", vl_version=VERSION
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, made.encode())
    return path


def _escaped(value: Any) -> Any:
    """Escapes unprintable characters. vl-convert ends the process at those that XML does not allow."""
    match value:
        case str():
            return printable(value)
        case dict():
            return {_escaped(key): _escaped(one) for key, one in value.items()}
        case list() | tuple():
            return [_escaped(one) for one in value]
        case _:
            return value


def drawn(spec: dict[str, Any], form: str) -> bytes:
    """Draws a chart as `svg` or `png`, black on white. A chart that states a width gets a fixed
    one."""
    import vl_convert  # An extra.

    fixed = {**_escaped(spec), "background": "white"}
    if "width" in spec:
        fixed["width"] = _WIDTH
    if form == "png":
        return bytes(vl_convert.vegalite_to_png(fixed, vl_version=VERSION, scale=2))
    return str(vl_convert.vegalite_to_svg(fixed, vl_version=VERSION)).encode()
