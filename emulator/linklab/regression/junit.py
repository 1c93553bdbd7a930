"""Reports as JUnit XML, as continuous integration systems read it. Pure.

The form is the one of Jenkins' schema (junit-10.xsd of its xunit plugin: testsuites, testsuite,
testcase, failure, error, system-out), which GitLab, GitHub's actions and junitparser read too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as xml

from linklab.regression.cost import CostReport, Gate
from linklab.regression.figures import FIGURES, Values
from linklab.regression.verdict import Checked, Report, Status

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold (section 2.2), such as colours of a terminal."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A test case: what was worse (`failure`), why it could not be told (`error`), what it said."""

    classname: str
    name: str
    wall_s: float = 0.0
    failure: str = ""
    error: str = ""
    out: str = ""


def render(report: Report, made_at: str) -> str:
    """The XML text. A test suite for each scenario, a test case for each cell; `made_at` is an
    ISO 8601 time without an offset. What concerns no cell is an error of its own."""
    suites: dict[str, list[_Case]] = {}
    for one in report.checked:
        suites.setdefault(one.cell.scenario, []).append(_of_cell(report.suite, one))
    if report.problems:
        suites["suite"] = [_Case(report.suite, "suite", error=text) for text in report.problems]
    return _document(f"linklab regress {report.suite}", suites, made_at)


def render_cost(report: CostReport, made_at: str) -> str:
    """The same of `--real-clock`: a test case for each program."""
    cases = [_of_program(report.suite, one) for one in report.gates]
    return _document(f"linklab regress {report.suite}", {"real clock": cases}, made_at)


def _document(name: str, suites: Mapping[str, Sequence[_Case]], made_at: str) -> str:
    root = xml.Element("testsuites", {"name": name})
    root.attrib |= _counts([one for cases in suites.values() for one in cases])
    for title, cases in suites.items():
        suite = xml.SubElement(root, "testsuite", {"name": title, "timestamp": made_at})
        suite.attrib |= {**_counts(cases), "skipped": "0"}
        suite.extend(_element(one) for one in cases)
    xml.indent(root)
    content: bytes = xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return content.decode() + "\n"


def _counts(cases: Sequence[_Case]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(bool(one.failure) for one in cases)),
        "errors": str(sum(bool(one.error) for one in cases)),
        "time": f"{sum(one.wall_s for one in cases):.3f}",
    }


def _element(one: _Case) -> xml.Element:
    case = xml.Element(
        "testcase", {"classname": one.classname, "name": one.name, "time": f"{one.wall_s:.3f}"}
    )
    if one.error:
        _say(case, "error", "could not run", one.error)
    if one.failure:
        _say(case, "failure", "regression", one.failure)
    if one.out:
        xml.SubElement(case, "system-out").text = _clean(one.out)
    return case


def _say(case: xml.Element, tag: str, kind: str, text: str) -> None:
    clean = _clean(text)
    xml.SubElement(case, tag, {"type": kind, "message": clean}).text = clean


def _of_cell(suite: str, one: Checked) -> _Case:
    cell = one.cell
    words = one.in_words()
    out = [f"baseline: {_figures(one.baseline)}", f"now: {_figures(one.now)}"]
    if one.status is Status.BETTER:
        out.append(f"better: {words}")
    return _Case(
        f"{suite}.{cell.scenario}", f"{cell.algorithm} seed {cell.seed}", one.wall_s,
        failure=words if one.status is Status.WORSE else "",
        error=words if one.status is Status.ERROR else "",
        out="\n".join([*out, f"run directory: {one.run_dir}"]),
    )  # fmt: skip


def _of_program(suite: str, one: Gate) -> _Case:
    return _Case(
        f"{suite}.real clock", one.name,
        failure="; ".join(one.broken),
        out=f"{one.cpu_s_per_mb * 1e3:.3f} ms of processor time per MB, {one.cpu_ratio:.2f} times "
        f"curl's; {one.peak_bytes / 2**20:.1f} MiB at most, {one.memory_ratio:.2f} times curl's",
    )  # fmt: skip


def _figures(values: Values | None) -> str:
    if values is None:
        return "none"
    known = ((figure, values.get(figure.key)) for figure in FIGURES)
    return ", ".join(f"{one.title} {one.form(value)}" for one, value in known if value is not None)


def _clean(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
