"""Renders the report's page from its context and the template beside this file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from linklab.report import vega
from linklab.report.page import Chart

_FIGURE = Markup(
    "<figure><figcaption><b>{title}</b>{comma}{note}</figcaption>"
    '<div class="chart" id="{name}" role="img" aria-label="{title}"></div>'
    '<script type="application/json">{json}</script></figure>'
)


def render(context: dict[str, Any]) -> str:
    """Returns the page. All text is escaped except the JavaScript library and the charts' data.
    `Chart.json` makes sure that the data cannot end its script element."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.globals["chart"] = _figure
    script = vega.javascript().replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return environment.get_template("page.html").render(**context, javascript=Markup(script))


def _figure(chart: Chart, note: str) -> Markup:
    return _FIGURE.format(
        title=chart.title,
        comma=": " if note else "",
        note=note,
        name=chart.name,
        json=Markup(chart.json),
    )
