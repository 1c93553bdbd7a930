"""Writes reports as JUnit XML for continuous integration systems. Pure.

The format follows Jenkins' schema (junit-10.xsd of its xunit plugin: testsuites, testsuite,
testcase, failure, error, system-out). GitLab and GitHub's actions read it, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as xml

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from linklab.regression.cost import CostReport, Gate
from linklab.regression.figures import FIGURES, Values
from linklab.regression.verdict import CheckedCell, Status, SuiteReport

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold (section 2.2), such as a terminal's escape sequences."""


def render(report: SuiteReport, made_at: str) -> str:
    """Returns the XML text: a test suite for each scenario, a test case for each cell.

    `made_at` is an ISO 8601 time without an offset. A problem that concerns no cell becomes a test
    case with an error.
    """
    suites: dict[str, list[TestCase]] = {}
    for one in report.checked:
        suites.setdefault(one.cell.scenario, []).append(_of_cell(report.suite, one))
    if report.problems:
        suites["suite"] = [_case(report.suite, "suite", error=text) for text in report.problems]
    return _document(f"linklab regress {report.suite}", suites, made_at)


def render_cost(report: CostReport, made_at: str) -> str:
    """Returns the XML text of a `--real-clock` report: a test case for each program."""
    cases = [_of_program(report.suite, one) for one in report.gates]
    return _document(f"linklab regress {report.suite}", {"real clock": cases}, made_at)


def _document(name: str, suites: Mapping[str, Sequence[TestCase]], made_at: str) -> str:
    root = JUnitXml(name)
    for title, cases in suites.items():
        suite = TestSuite(title)
        suite.timestamp = made_at
        suite.add_testcases(cases)
        root.add_testsuite(suite)
    # junitparser would also count skipped tests, which the schema only allows in a suite.
    for count in ("tests", "failures", "errors"):
        setattr(root, count, sum(getattr(one, count) for one in root))
    root.time = round(sum(one.time for one in root), 3)
    tree = xml.fromstring(root.tostring())
    xml.indent(tree)
    content: bytes = xml.tostring(tree, encoding="utf-8", xml_declaration=True)
    return content.decode() + "\n"


def _case(
    classname: str,
    name: str,
    *,
    wall_s: float = 0.0,
    failure: str = "",
    error: str = "",
    out: str = "",
) -> TestCase:
    """Makes a test case: what is worse (`failure`), why there is no verdict (`error`), its output."""
    case = TestCase(name, classname, round(wall_s, 3))
    if error:
        case.append(_result(Error, "could not run", error))
    if failure:
        case.append(_result(Failure, "regression", failure))
    if out:
        case.system_out = _clean(out)
    return case


def _result(of: type[Error] | type[Failure], kind: str, text: str) -> Error | Failure:
    made = of(_clean(text), kind)
    made.text = _clean(text)
    return made


def _of_cell(suite: str, one: CheckedCell) -> TestCase:
    cell = one.cell
    words = one.in_words()
    out = [f"baseline: {_figures(one.baseline)}", f"now: {_figures(one.now)}"]
    if one.status is Status.BETTER:
        out.append(f"better: {words}")
    return _case(
        f"{suite}.{cell.scenario}",
        f"{cell.algorithm} seed {cell.seed}",
        wall_s=one.wall_s,
        failure=words if one.status is Status.WORSE else "",
        error=words if one.status is Status.ERROR else "",
        out="\n".join([*out, f"run directory: {one.run_dir}"]),
    )


def _of_program(suite: str, one: Gate) -> TestCase:
    return _case(
        f"{suite}.real clock",
        one.name,
        failure="; ".join(one.broken),
        out=f"{one.cpu_s_per_mb * 1e3:.3f} ms of processor time per MB, {one.cpu_ratio:.2f} times "
        f"curl's; {one.peak_bytes / 2**20:.1f} MiB at most, {one.memory_ratio:.2f} times curl's",
    )


def _figures(values: Values | None) -> str:
    if values is None:
        return "none"
    known = ((figure, values.get(figure.key)) for figure in FIGURES)
    return ", ".join(f"{one.title} {one.form(value)}" for one, value in known if value is not None)


def _clean(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
