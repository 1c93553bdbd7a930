import json
from dataclasses import replace

from rich.console import Console

from linklab.regression import cost_showing
from linklab.regression.cost import CostReport, Gate
from linklab.regression.loopback import Cost

OWN = Gate("own", 0.0012, 31 << 20, 1.85, 1.4, 3.0, 2.5)
SLOW = Gate("sl|ow", 0.0052, 31 << 20, 7.0, 1.4, 3.0, 2.5)
WELL = CostReport("mine", 250_000_000, 5, (OWN,), (Cost(0.1, 0.2, 9 << 20),))
BROKEN = replace(WELL, gates=(OWN, SLOW))


def shown(report: CostReport) -> str:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(cost_showing.table(report))
    return capture.get()


def test_a_line_for_each_program_in_80_columns() -> None:
    text = shown(BROKEN)
    assert max(map(len, text.splitlines())) <= 80
    assert ["own", "1.20", "31.0", "1.85", "3", "1.40", "2.5"] in [
        line.split() for line in text.splitlines()
    ]
    assert "mine: medians of 5 downloads of 250 MB each" in text
    assert "worse: sl|ow: processor time 7.00 times curl's, at most 3 times is allowed" in text
    assert "worse" not in shown(WELL)


def test_a_summary_for_a_pull_request() -> None:
    assert cost_showing.markdown(WELL).startswith("### linklab: costs no more than it may")
    text = cost_showing.markdown(BROKEN)
    assert text.startswith("### linklab: costs more than it may")
    assert "| `own` | 1.20 | 31.0 | 1.85 | 3 | 1.40 | 2.5 |" in text
    assert "- `sl|ow: processor time 7.00 times" in text


def test_json_holds_all_of_it() -> None:
    read = json.loads(json.dumps(cost_showing.to_json(BROKEN)))
    assert read["exit_code"] == 1
    assert read["curl"] == [{"cpu_s": 0.1, "wall_s": 0.2, "peak_bytes": 9 << 20}]
    own, slow = read["programs"]
    assert own["broken"] == []
    assert slow["broken"] == ["sl|ow: processor time 7.00 times curl's, at most 3 times is allowed"]
