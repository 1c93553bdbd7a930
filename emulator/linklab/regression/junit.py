"""A regression report as JUnit XML, as continuous integration systems read it. Pure.

The form is the one of Jenkins' schema (junit-10.xsd of its xunit plugin: testsuites, testsuite,
testcase, failure, error, system-out), which GitLab, GitHub's actions and junitparser read too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as xml

from linklab.regression.figures import FIGURES, Values
from linklab.regression.verdict import Checked, Report, Status

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold (section 2.2), such as colours of a terminal."""


def render(report: Report, made_at: str) -> str:
    """The XML text. A test suite for each scenario, a test case for each cell; `made_at` is an
    ISO 8601 time without an offset. What concerns no cell is an error of its own."""
    scenarios = dict.fromkeys(one.cell.scenario for one in report.checked)
    groups = [
        (name, [one for one in report.checked if one.cell.scenario == name]) for name in scenarios
    ]
    root = xml.Element("testsuites", _counts(report.checked, len(report.problems)))
    root.set("name", f"linklab regress {report.suite}")
    del root.attrib["skipped"]  # The schema has it for a suite only.
    for name, cells in groups:
        suite = xml.SubElement(root, "testsuite", {"name": name, "timestamp": made_at})
        suite.attrib |= _counts(cells, 0)
        for one in cells:
            suite.append(_case(report.suite, one))
    if report.problems:
        suite = xml.SubElement(root, "testsuite", {"name": "suite", "timestamp": made_at})
        suite.attrib |= {
            "tests": str(len(report.problems)), "failures": "0", "skipped": "0", "time": "0.000",
            "errors": str(len(report.problems)),
        }  # fmt: skip
        for problem in report.problems:
            case = xml.SubElement(
                suite, "testcase", {"classname": report.suite, "name": "suite", "time": "0.000"}
            )
            _say(case, "error", "could not run", problem)
    xml.indent(root)
    content: bytes = xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return content.decode() + "\n"


def _counts(cells: Sequence[Checked], problems: int) -> dict[str, str]:
    return {
        "tests": str(len(cells) + problems),
        "failures": str(sum(one.status is Status.WORSE for one in cells)),
        "errors": str(sum(one.status is Status.ERROR for one in cells) + problems),
        "skipped": "0",
        "time": f"{sum(one.wall_s for one in cells):.3f}",
    }


def _case(suite: str, one: Checked) -> xml.Element:
    cell = one.cell
    case = xml.Element("testcase", {
        "classname": f"{suite}.{cell.scenario}",
        "name": f"{cell.algorithm} seed {cell.seed}",
        "time": f"{one.wall_s:.3f}",
    })  # fmt: skip
    if one.status is Status.WORSE:
        _say(case, "failure", "regression", one.in_words())
    elif one.status is Status.ERROR:
        _say(case, "error", "could not run", one.in_words())
    out = xml.SubElement(case, "system-out")
    out.text = _clean("\n".join(_lines(one)))
    return case


def _say(case: xml.Element, tag: str, kind: str, text: str) -> None:
    clean = _clean(text)
    xml.SubElement(case, tag, {"type": kind, "message": clean}).text = clean


def _lines(one: Checked) -> list[str]:
    lines = [f"baseline: {_figures(one.baseline)}", f"now: {_figures(one.now)}"]
    if one.status is Status.BETTER:
        lines.append(f"better: {one.in_words()}")
    return [*lines, f"run directory: {one.run_dir}"]


def _figures(values: Values | None) -> str:
    if values is None:
        return "none"
    known = ((figure, values.get(figure.key)) for figure in FIGURES)
    return ", ".join(f"{one.title} {one.form(value)}" for one, value in known if value is not None)


def _clean(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
