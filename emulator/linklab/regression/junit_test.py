from pathlib import Path
from xml.etree import ElementTree as xml

import pytest

from linklab.regression import junit
from linklab.regression.cost import CostReport, Gate
from linklab.regression.figures import Cell, Values
from linklab.regression.loopback import Cost
from linklab.regression.suite import DEFAULT_BOUNDS
from linklab.regression.verdict import CheckedCell, Status, SuiteReport, deviations

THEN: Values = {
    "download_s": 10.0,
    "efficiency": 0.9,
    "link_delta_s": 0.0,
    "wasted_bytes": None,
    "stalled_s": 0.0,
}
SLOW: Values = {**THEN, "download_s": 12.0}


def checked(
    scenario: str, seed: int, status: Status, now: Values | None, reason: str = ""
) -> CheckedCell:
    found = deviations(THEN, now, DEFAULT_BOUNDS) if now else ()
    return CheckedCell(
        Cell(scenario, "alg3", seed), status, THEN, now, found, reason, 1.5, "runs/x"
    )


REPORT = SuiteReport(
    "mine",
    "b.yaml",
    (
        checked("ls", 1, Status.SAME, THEN),
        checked("ls", 2, Status.WORSE, SLOW),
        checked("ao", 1, Status.ERROR, None, "\x1b[31mhung\x00 <&\"' ]]>"),
        checked("ao", 2, Status.BETTER, {**THEN, "download_s": 8.0}),
    ),
    2,
    10.0,
    95.0,
    "runs/r",
    ("ao alg3 seed 3 has no baseline: re-baseline",),
)


def test_every_cell_is_a_case_and_every_scenario_a_suite(tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    file.write_text(junit.render(REPORT, "2026-11-21T10:00:00"), encoding="utf-8")
    root = xml.parse(file).getroot()
    assert root.tag == "testsuites"
    assert {one.get("name") for one in root.findall("testsuite")} == {"ls", "ao", "suite"}
    names = {(one.get("classname"), one.get("name")) for one in root.iter("testcase")}
    assert ("mine.ls", "alg3 seed 2") in names
    assert len(names) == 5
    (failure,) = root.iter("failure")
    assert failure.get("message") == (
        "download time 10.000 s -> 12.000 s (+20.0 %, allowed ±0.100 s)"
    )
    hung, unfounded = root.iter("error")
    assert hung.get("message") == "\\x1b[31mhung\\x00 <&\"' ]]>"
    assert unfounded.text == "ao alg3 seed 3 has no baseline: re-baseline"
    (better,) = (one.text for one in root.iter("system-out") if "better" in (one.text or ""))
    assert better is not None
    assert "10.000 s -> 8.000 s" in better


def test_counts_are_those_of_the_cases() -> None:
    root = xml.fromstring(junit.render(REPORT, "2026-11-21T10:00:00"))
    for element in (root, *root.findall("testsuite")):
        assert element.get("tests") == str(len(list(element.iter("testcase"))))
        assert element.get("failures") == str(len(list(element.iter("failure"))))
        assert element.get("errors") == str(len(list(element.iter("error"))))
    assert root.get("time") == "6.0"


COST = CostReport(
    "mine",
    250_000_000,
    5,
    (
        Gate("own", 0.0012, 31 << 20, 1.85, 1.4, 3.0, 2.5),
        Gate("slow", 0.0052, 31 << 20, 7.0, 3.0, 3.0, 2.5),
    ),
    (Cost(0.1, 0.2, 9 << 20),),
)


def test_a_program_that_costs_more_than_it_may_is_a_failure() -> None:
    root = xml.fromstring(junit.render_cost(COST, "2026-11-21T10:00:00"))
    own, slow = root.iter("testcase")
    assert (own.get("name"), slow.get("name")) == ("own", "slow")
    assert own.find("failure") is None
    assert "1.85 times curl's" in (own.findtext("system-out") or "")
    assert slow.findtext("failure") == (
        "slow: processor time 7.00 times curl's, at most 3 times is allowed; "
        "slow: memory 3.00 times curl's, at most 2.5 times is allowed"
    )
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("2", "1", "0")


@pytest.mark.parametrize(
    "text",
    [junit.render(REPORT, "2026-11-21T10:00:00"), junit.render_cost(COST, "2026-11-21T10:00:00")],
)
def test_only_what_the_schema_knows_in_its_order(text: str) -> None:
    """Jenkins' junit-10.xsd: the attributes and elements used here, error and failure first."""
    known = {
        "testsuites": {"name", "time", "tests", "failures", "errors"},
        "testsuite": {"name", "tests", "failures", "errors", "time", "skipped", "timestamp"},
        "testcase": {"name", "time", "classname"},
        "failure": {"type", "message"},
        "error": {"type", "message"},
        "system-out": set(),
    }
    root = xml.fromstring(text)
    for element in root.iter():
        assert set(element.attrib) <= known[element.tag]
    for case in root.iter("testcase"):
        tags = [one.tag for one in case]
        assert tags == sorted(tags, key=["error", "failure", "system-out"].index)
