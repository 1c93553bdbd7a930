import io
import json

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from linklab.regression import showing
from linklab.regression.figures import Cell
from linklab.regression.junit_test import REPORT, THEN
from linklab.regression.verdict import CheckedCell, Status, SuiteReport


def shown(report: SuiteReport, width: int = 80) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None)
    console.print(showing.table(report, width))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def test_a_table_of_changes_and_what_deviates() -> None:
    assert shown(REPORT, 120) == (
        "change of the download time in %; ! worse, + better, ? no verdict\n"
        "scenario   alg3\n"
        "ls       +20.0!\n"
        "ao           -?\n"
        "worse:\n"
        "  ls alg3 seed 2: download time 10.000 s -> 12.000 s (+20.0 %, allowed ±0.100 s)\n"
        "no verdict:\n"
        "  ao alg3 seed 1: \\x1b[31mhung\\x00 <&\"' ]]>\n"
        "better:\n"
        "  ao alg3 seed 2: download time 10.000 s -> 8.000 s (-20.0 %, allowed ±0.100 s)\n"
        "linklab: ao alg3 seed 3 has no baseline: re-baseline"
    )


def test_many_algorithms_find_room_below_each_other_in_80_columns() -> None:
    names = [*(f"algorithm{n}-limited" for n in range(9)), "a-very-long-name-of-a-users-program"]
    checked = tuple(
        CheckedCell(Cell("emptcp-background-3-busy", name, 1), Status.SAME, THEN, THEN)
        for name in names
    )
    text = shown(SuiteReport("s", "b", checked, 0, 1.0, 1.0))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.count("emptcp-background-3-busy") > 1
    assert text.count("  0") == len(names)
    for name in names:
        assert name.split("-")[0] in text


def test_markdown_for_a_pull_request() -> None:
    text = showing.markdown(REPORT)
    assert text.startswith("### linklab: regression\n")
    assert (
        "| `ls alg3 seed 2` | download time 10.000 s -> 12.000 s (+20.0 %, allowed ±0.100 s) |"
        in text
    )
    assert "| `ao alg3 seed 1` | `\\x1b[31mhung\\x00 <&\"' ]]>` |" in text
    assert "| `ls alg3 seed 2` | 10.000 | 12.000 | +20.0 % | 0.900 | 0.000 |  | 0.000 |" in text
    assert text.count("<details>") == text.count("</details>") == 1


HOSTILE = [
    "@everyone see https://evil.example/x?a=1 and www.evil.example #1",
    "![](https://evil.example/pixel.png) [x](javascript:alert(1)) <img src=x>",
    "`` ` ``` | </details><!-- linklab-regress --> | x",
    "\n\n# heading\n- item\n```mermaid\n| a |\n|---|",
    "`",
    "\\`@me` \\| \\\\",
]


@pytest.mark.parametrize("words", HOSTILE)
def test_what_a_program_said_is_only_text(words: str) -> None:
    """Read by another parser of Markdown: such words are in a cell, as code, and all of them."""
    cell = Cell("ls", "alg3", 1)
    failed = CheckedCell(cell, Status.WORSE, THEN, None, reason=words)
    report = SuiteReport("mine", "b.yaml", (failed,), 0, 1.0, 1.0, problems=(words,))
    parsed = MarkdownIt("commonmark").enable("table").parse(showing.markdown(report))
    shown = [child for token in parsed for child in token.children or []]
    said = " ".join(words.split())
    assert [one.content for one in shown if one.type == "code_inline"] == [
        said,
        str(cell),
        said,
        str(cell),
    ]
    assert {one.type for one in shown} <= {"text", "code_inline", "strong_open", "strong_close"}
    assert [one.content for one in parsed if one.type == "html_block"] == [
        "<details><summary>All 1 downloads</summary>\n",
        "</details>\n",
    ]


def test_json_holds_all_of_it() -> None:
    read = json.loads(json.dumps(showing.to_json(REPORT), allow_nan=False))
    assert (read["suite"], read["exit_code"]) == ("mine", 1)
    assert read["counts"] == {"same": 1, "better": 1, "worse": 1, "error": 1}
    worse = read["cells"][1]
    assert worse["deviations"][0] == {
        "figure": "download_s",
        "baseline": 10.0,
        "now": 12.0,
        "allowed": 0.1,
        "worse": True,
    }
    assert read["cells"][2]["reason"].endswith("]]>")
