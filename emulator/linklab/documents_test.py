"""Tests that what the documents name exists: files, tests, `make` targets, sources."""

import re
import shlex
import sys
import textwrap
import types
from dataclasses import replace
from pathlib import Path

import pytest

from linklab import scenario
from linklab.commands import cli
from linklab.core import algorithms
from linklab.core.link_state import LinkState
from linklab.models.events import BEGUN_ANEW, BY_HAND, BY_HAND_END, REFUSED
from linklab.models.layer import NO_LOAD
from linklab.models.model import Making
from linklab.models.registry import HAPPENINGS
from linklab.report import publication
from linklab.runs.clients import multilink, registry
from linklab.scenario.finding import SCENARIOS

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not {"node_modules", ".venv", "build", "runs"} & set(path.relative_to(ROOT).parts)
)
PARTS = ("client", "dashboards", "emulator", "server", "profiles", "tests", ".github")
FILES = [
    f"/{path.relative_to(ROOT)}"
    for path in (*ROOT.iterdir(), *(path for part in PARTS for path in (ROOT / part).rglob("*")))
]
FILE = re.compile(r"`([\w.-]+(?:/[\w.-]+)*\.(?:py|go|sh|patch|config|yaml|yml|in|txt|md|csv))`")
EXAMPLES = frozenset(
    {
        *("X_test.py", "x_test.go", "scenario.yaml", "energy.yaml", "ROWS.csv", "mine.yaml"),
        *("yesterday.yaml", "my-scenario.yaml", "my-walk.yaml", "my-walk-2.yaml"),
        *("emulator/linklab/models/dips.py", "client/internal/schedule/fixedsize.go"),
    }
)
"""Names that stand for any file, or for one that a user or a run makes."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_exist(document: Path) -> None:
    named = set(FILE.findall(document.read_text())) - EXAMPLES
    assert [
        name for name in sorted(named) if not any(file.endswith(f"/{name}") for file in FILES)
    ] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_linked_or_pictured_exists(document: Path) -> None:
    named = re.findall(r"\]\(([^)#\s]+)", document.read_text())
    beside = [one for one in named if "://" not in one]
    assert [one for one in beside if not (document.parent / one).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"(?:^    |`)make ([a-z][a-z-]*)", document.read_text(), re.M))
    assert named <= targets


def test_make_calls_linklab_by_words_that_it_knows() -> None:
    said = re.findall(r"^\t@?\$\(LINKLAB\) ([^$\n\\]+)$", (ROOT / "Makefile").read_text(), re.M)
    demo = (ROOT / "emulator" / "setup" / "demo").read_text()
    said += re.findall(r'"\$linklab" (compare [\w -]+?)(?= &&| \|\|)', demo)
    assert len(said) >= 2
    for words in said:
        options = cli.parser().parse_args(shlex.split(words))
        for name in getattr(options, "scenarios", ()):
            scenario.find(name)


README = ROOT / "README.md"
HANDBOOK = sorted((ROOT / "emulator" / "handbook").rglob("*.md"))
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
MADE = frozenset({"commands.md", "http-api.md"})
OTHERS = ("CONTRIBUTING.md", "SECURITY.md", "client/README.md", "dashboards/README.md")
SHORT = [
    README,
    ARCHITECTURE,
    *(ROOT / name for name in OTHERS),
    *(page for page in HANDBOOK if page.name not in MADE),
]
"""Pages whose sentences are measured: those that are written by hand."""


def calls(page: Path) -> list[str]:
    """The words after `linklab` of every command that a page shows."""
    text = page.read_text()
    said = re.findall(r"^    (?:\S+=\S+ )?linklab ([^\n#>]+)", text, re.M)
    return said + re.findall(r"`linklab ([a-z]+ [^`]+)`", text)


@pytest.mark.parametrize("page", SHORT, ids=lambda path: path.name)
def test_pages_call_linklab_by_words_that_it_knows(page: Path) -> None:
    for words in calls(page):
        if "--help" in words:
            assert words.removesuffix(" --help") in (*cli.COMMANDS, "COMMAND")
            continue
        options = cli.parser().parse_args(shlex.split(words.partition(" -- ")[0]))
        for name in (*getattr(options, "scenarios", ()), getattr(options, "scenario", None)):
            if isinstance(name, str) and "/" not in name:
                scenario.find(name)


def test_scenarios_in_the_handbook_are_some(tmp_path: Path) -> None:
    text = "\n".join(page.read_text() for page in HANDBOOK)
    shown = re.findall(r"^    cat > (\S+\.yaml) <<'END'\n(.*?)^    END$", text, re.M | re.S)
    scenarios = [(name, textwrap.dedent(one)) for name, one in shown if "links:" in one]
    names = {"my-scenario.yaml", "ride.yaml", "small.yaml", "dips.yaml", "shared.yaml"}
    assert {name for name, _ in scenarios} == names
    for name, one in scenarios:
        if name == "dips.yaml":  # It needs the link model of its page.
            continue
        (tmp_path / name).write_text(one)
        assert scenario.find(str(tmp_path / name)).links


def test_the_link_model_in_the_handbook_works() -> None:
    page = ROOT / "emulator" / "handbook" / "how-to" / "write-a-link-model.md"
    found = re.search(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    assert found
    module = types.ModuleType("dips")
    sys.modules["dips"] = module  # Where dataclasses look up names.
    try:
        exec(found[1], vars(module))
        settings = module.DipSettings(rate_bps=5_000_000, every_s=3.0, lasts_s=1.0)
        layer = module.MODEL.layer(settings, Making(run_seed=1, link="wifi", step_s=0.02))
    finally:
        del sys.modules["dips"]
    state = LinkState(
        up=True, down_rate_bps=60, up_rate_bps=20_000_000, delay_s=0, jitter_s=0, loss_ratio=0
    )
    assert layer.apply(0.0, NO_LOAD, state) == state
    assert layer.next_s() == 2.0
    assert layer.apply(2.0, NO_LOAD, state) == replace(state, up_rate_bps=5_000_000)
    assert layer.next_s() == 3.0
    assert [row.key for row in module.TABLE.flat] == ["rate", "every", "lasts"]


def test_the_run_directory_s_page_lists_every_kind_of_event() -> None:
    page = (ROOT / "emulator" / "handbook" / "reference" / "run-directory.md").read_text()
    table = page.partition("## Kinds of events.jsonl")[2].partition("\n## ")[0]
    first_cells = "".join(row.split("|")[1] for row in table.splitlines() if row.startswith("|"))
    sources = (path for path in (ROOT / "emulator/linklab/lab").rglob("*.py"))
    texts = "".join(path.read_text() for path in sources if not path.name.endswith("_test.py"))
    of_lab = re.findall(r'Happening\("([\w-]+)"', texts)
    assert {"next", "subflow"} <= set(of_lab)
    kinds = {*HAPPENINGS, BEGUN_ANEW, BY_HAND, BY_HAND_END, REFUSED, *of_lab}
    assert set(re.findall(r"`([\w-]+)`", first_cells)) == kinds


def test_the_handbook_s_contents_list_every_page() -> None:
    contents = ROOT / "emulator" / "handbook" / "README.md"
    named = re.findall(r"\]\(([^)#\s]+\.md)\)", contents.read_text())
    assert {(contents.parent / one).resolve() for one in named} >= {*HANDBOOK} - {contents}


def test_the_table_of_names_has_every_client_of_multilink() -> None:
    text = (ROOT / "emulator" / "handbook" / "reference" / "algorithms.md").read_text()
    table = text.partition("## With or without rescue")[2].partition("What happens when")[0]
    named = set(re.findall(r"`([a-z0-9-]+)`", table))
    plain = {one.name for one in algorithms.TABLE if not one.one_link and not one.rescue}
    clients = {one.name for one in multilink.FAMILY.on_all}
    assert clients - plain <= named
    assert {"single-wifi", "single-lte", *registry.GROUPS} <= named


def test_tests_named_in_security_exist() -> None:
    words = (ROOT / "SECURITY.md").read_text()
    sources = "".join(path.read_text() for path in (ROOT / "client").rglob("*_test.go"))
    named = set(re.findall(r"`(Test\w+)`", words))
    assert named
    assert [name for name in sorted(named) if f"func {name}(" not in sources] == []


KEYS = frozenset(re.findall(r"\*\*([^*]+)\*\*", (ROOT / "REFERENCES.md").read_text()))


@pytest.mark.parametrize("name", scenario.names_in())
def test_scenarios_cite_by_key(name: str) -> None:
    one = scenario.find(name)
    assert not one.source or one.source.startswith((*KEYS, "Own design: "))


@pytest.mark.parametrize("name", scenario.names_in(SCENARIOS / "today"))
def test_scenarios_of_today_name_every_source_by_key(name: str) -> None:
    one = scenario.find(name)
    assert one.description
    cited = one.source.removeprefix("Own design: figures of ").split(", ")
    assert [key for key in cited if not key.startswith(tuple(KEYS))] == []


@pytest.mark.parametrize("name", publication.names())
def test_publications_are_cited_by_key(name: str) -> None:
    assert publication.find(name).source in KEYS


FOLDERS = ("client", "dashboards", "emulator/linklab", "profiles", "server", "tests")
KINDS = (".py", ".go", ".md", ".yaml", ".conf", ".sh")


def test_what_code_cites_is_in_the_repository() -> None:
    """Assumptions by their numbers; no document that only its authors have."""
    paths = [path for name in FOLDERS for path in (ROOT / name).rglob("*") if path.suffix in KINDS]
    text = "\n".join(path.read_text() for path in paths if path != Path(__file__))
    cited = set(re.findall(r"\bassumption \d", text))
    assert cited
    assert cited <= KEYS
    assert re.findall(r"\b(?:FACTS|DESIGN)\b.*", text) == []
