"""Executes the steps of the action `linklab-regress` by hand, with what a runner sets, against a server
that records what the comment's step sends."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY, ScenarioFile, environment, ran

ACTIONS = REPOSITORY / ".github" / "actions"
ACTION = yaml.safe_load((ACTIONS / "linklab-regress" / "action.yml").read_text())
SUITE = REPOSITORY / "tests" / "regression" / "curl.yaml"
PAGE = "https://github.example/o/r/actions/runs/7/artifacts/9"
BOT = "github-actions"


class GitHub(ThreadingHTTPServer):
    """Answers the three queries, as GitHub does. Keeps comments as pairs of author and text."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.comments: list[tuple[str, str]] = []
        self.tokens: list[str] = []
        self.refuses = ""
        self.answers: bytes | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/graphql"

    def answer(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        if query.strip().startswith("query"):
            assert (variables["owner"], variables["name"]) == ("o", "r")
            first = int(variables["after"] or 0)
            nodes = [
                {"id": f"C{number}", "body": body, "author": author and {"login": author}}
                for number, (author, body) in enumerate(self.comments)
            ][first : first + 2]  # Small pages.
            more = first + 2 < len(self.comments)
            page = {"hasNextPage": more, "endCursor": str(first + 2)}
            pull = {"id": f"P{variables['number']}", "comments": {"nodes": nodes, "pageInfo": page}}
            return {"viewer": {"login": f"{BOT}[bot]"}, "repository": {"pullRequest": pull}}
        if "addComment" in query:
            assert variables["id"] == "P42"
            self.comments.append((BOT, variables["body"]))
        else:
            assert "updateIssueComment" in query
            number = int(variables["id"].removeprefix("C"))
            assert self.comments[number][0] == BOT
            self.comments[number] = (BOT, variables["body"])
        return {"done": {"clientMutationId": None}}


class _Handler(BaseHTTPRequestHandler):
    server: GitHub

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.tokens.append(self.headers["Authorization"])
        answer: dict[str, Any]
        if self.server.refuses and said["query"].strip().startswith("mutation"):
            answer = {"data": None, "errors": [{"message": self.server.refuses}]}
        else:
            answer = {"data": self.server.answer(said["query"], said["variables"])}
        content = self.server.answers
        content = json.dumps(answer).encode() if content is None else content
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


@pytest.fixture
def github() -> Iterator[GitHub]:
    with GitHub() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class Runner:
    """A job's runner: executes an action's steps from the regression on, in a workspace."""

    def __init__(self, directory: Path, github: GitHub) -> None:
        self.workspace = directory / "workspace"
        (self.workspace / "ci").mkdir(parents=True)
        self.summary = directory / "summary.md"
        self.event = directory / "event.json"
        self.event.write_text('{"pull_request": {"number": 42}}')
        self.github = github
        self.root = directory / "action"
        program = self.root / ".venv" / "bin" / "linklab"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m linklab "$@"\n')
        program.chmod(0o755)
        self.log = ""
        self.uploads: list[str] = []

    def __call__(self, **inputs: str) -> int:
        """Runs the steps as a runner does. Returns the exit code of the failed one, or 0."""
        given = {name.replace("-", "_"): one["default"] for name, one in ACTION["inputs"].items()}
        given |= {"token": "github-token", **inputs}
        outputs: dict[str, dict[str, str]] = {"prepare": {"root": str(self.root)}}
        self.summary.write_text("")
        self.log, failed = "", 0
        steps = ACTION["runs"]["steps"]
        first = next(n for n, one in enumerate(steps) if one.get("id") == "regress")
        for step in steps[first:]:
            allowed = self._value(step.get("if", "success"), given, outputs)
            if not allowed or (failed and "always()" not in step.get("if", "")):
                continue
            number = step.get("id", "")
            if "uses" in step:
                (path,) = [self._filled(step["with"]["path"], given, outputs)]
                assert (self.workspace / path).is_file()
                self.uploads.append(path)
                outputs[number] = {"artifact-url": PAGE}
                continue
            named = {
                name: self._filled(value, given, outputs) for name, value in step["env"].items()
            }
            code, outputs[number] = self._run(step["run"], named)
            failed = failed or code
        return failed

    def _run(self, script: str, named: dict[str, str]) -> tuple[int, dict[str, str]]:
        output = self.workspace.parent / "output"
        output.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.workspace,
            env={
                **environment(),
                "GITHUB_ACTION_PATH": str(ACTIONS / "linklab-regress"),
                "GITHUB_ACTION": "__o_linklab",
                "GITHUB_WORKFLOW": 'a workflow --> <img src="x">',
                "GITHUB_JOB": "throughput",
                "GITHUB_REPOSITORY": "o/r",
                "GITHUB_RUN_ID": "7",
                "GITHUB_SERVER_URL": "https://github.example",
                "GITHUB_GRAPHQL_URL": self.github.url,
                "GITHUB_EVENT_PATH": str(self.event),
                "GITHUB_STEP_SUMMARY": str(self.summary),
                "GITHUB_OUTPUT": str(output),
                **named,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        self.log += done.stdout
        pairs = re.findall(
            r"^(\w+)<<(\S+)\n(.*?)\n\2$", output.read_text(), re.DOTALL | re.MULTILINE
        )
        return done.returncode, {name: value for name, _, value in pairs}

    def _filled(self, text: str, given: dict[str, str], outputs: dict[str, Any]) -> str:
        """Returns a value with its expressions evaluated."""

        def one(match: re.Match[str]) -> str:
            return str(self._value(match[1], given, outputs))

        return re.sub(r"\$\{\{ (.*?) \}\}", one, text)

    def _value(self, words: str, given: dict[str, str], outputs: dict[str, Any]) -> object:
        """Evaluates an expression of a workflow, by Python's operators."""
        words = words.replace("&&", "and").replace("||", "or").replace("always()", "True")
        words = re.sub(r"steps\.(\w+)\.outputs\.([\w-]+)", r"output('\1', '\2')", words)
        words = re.sub(
            r"inputs\.([\w-]+)", lambda match: f"given['{match[1].replace('-', '_')}']", words
        )
        known = {
            "given": given,
            "output": lambda step, name: outputs.get(step, {}).get(name, ""),
            "success": True,
        }
        return eval(words, {"__builtins__": {}}, known)


@pytest.fixture
def runner(tmp_path: Path, github: GitHub) -> Runner:
    return Runner(tmp_path, github)


def test_a_slower_program_is_in_one_comment_that_later_runs_update(runner: Runner) -> None:
    suite = runner.workspace / "ci" / "curl.yaml"
    # One download is enough.
    suite.write_text(re.sub(r"exceptions:\n|^.*wifi-gone.*\n", "", SUITE.read_text(), flags=re.M))
    program = runner.root / ".venv" / "bin" / "linklab"
    made = [str(program), "regress", str(suite), "--update", "--reason", "the first"]
    subprocess.run(made, cwd=runner.workspace, env=environment(), check=True, capture_output=True)
    somebody = ("mallory", "hello")
    runner.github.comments = [somebody, (None, "of a deleted account"), somebody]  # type: ignore[list-item]

    assert runner(suite="ci/curl.yaml", comment="true") == 0
    assert len(runner.github.comments) == 4
    author, text = runner.github.comments[3]
    assert author == BOT
    assert re.match(r"<!-- linklab-regress [0-9a-f]{32} -->\n### linklab: no regression\n", text)
    line = text.splitlines()[0]
    runner.github.comments.insert(0, ("mallory", f"{line}\nfake"))

    suite.write_text(suite.read_text().replace("curl -sSf", "curl -sSf --limit-rate 2M", 1))
    assert runner(suite="ci/curl.yaml", comment="true", report="page.html") == 1
    assert len(runner.github.comments) == 5
    assert runner.github.comments[0] == ("mallory", f"{line}\nfake")
    text = runner.github.comments[4][1]
    assert text.startswith(f"{line}\n### linklab: regression\n")
    assert "download time" in text
    run = "https://github.example/o/r/actions/runs/7"
    assert text.endswith(f"\n[curves of all runs]({PAGE}), [log]({run})\n")
    assert runner.uploads == ["page.html"]
    assert runner.summary.read_text() == text.partition("\n")[2]
    assert "::error title=linklab regress::something is worse" in runner.log
    assert set(runner.github.tokens) == {"Bearer github-token"}

    suite.write_text("name: curl\n")
    assert runner(suite="ci/curl.yaml", comment="true") == 2
    assert len(runner.github.comments) == 5
    assert "### linklab: no verdict" in runner.github.comments[4][1]


@pytest.mark.parametrize("given", ["report", "junit", "markdown"])
def test_a_file_of_an_earlier_run_is_no_result(runner: Runner, given: str) -> None:
    """A page with wrong curves would be uploaded, and linked from the comment."""
    (runner.workspace / "ci" / "none.yaml").write_text("name: none\n")
    (runner.workspace / "left").write_text("of an earlier run")
    assert runner(suite="ci/none.yaml", comment="true", **{given: "left"}) == 2
    assert runner.uploads == []
    left = runner.workspace / "left"
    assert not left.exists() or "of an earlier run" not in left.read_text()


def test_no_comment_unless_asked_for_and_for_a_pull_request(runner: Runner) -> None:
    (runner.workspace / "ci" / "none.yaml").write_text("name: none\n")
    assert runner(suite="ci/none.yaml") == 2
    runner.event.write_text('{"ref": "refs/heads/main"}')
    assert runner(suite="ci/none.yaml", comment="true") == 2
    assert runner.github.tokens == []
    assert "no verdict" in runner.summary.read_text()


@pytest.mark.parametrize(
    ("refuses", "answers", "words"),
    [
        ("Resource not accessible by integration", None, "Resource not accessible by integration"),
        ("a%0A::error::b\nc", None, "a%250A::error::b%0Ac"),
        ("", b"<html>", "Expecting value"),
        ("", b'{"data": null}', "none of GitHub's"),
        ("", b"[]", "has no attribute"),
    ],
)
def test_without_the_right_to_comment_one_line_says_so(
    runner: Runner, refuses: str, answers: bytes | None, words: str
) -> None:
    """As in a run for a fork, whose token only reads."""
    runner.github.refuses, runner.github.answers = refuses, answers
    (runner.workspace / "ci" / "none.yaml").write_text("name: none\n")
    assert runner(suite="ci/none.yaml", comment="true") == 2, "the verdict is the regression's"
    (said,) = [line for line in runner.log.splitlines() if line.startswith("::notice")]
    assert "no comment on the pull request, the summary is on the run's page: " in said
    assert words in said
    assert runner.github.comments == []


def test_names_of_a_pull_request_are_words_and_no_commands(runner: Runner) -> None:
    name = "ci/$(touch hacked)`touch hacked`;touch hacked\nreport=x\n::error::x.yaml"
    (runner.workspace / name).parent.mkdir(parents=True, exist_ok=True)
    (runner.workspace / name).write_text("name: x\n")
    markdown = "a\nreport=/etc/passwd\nb.md"
    assert runner(suite=name, markdown=markdown, comment="true") == 2
    assert not list(runner.workspace.rglob("hacked"))
    assert runner.uploads == []
    text = runner.github.comments[0][1]
    assert "hacked" not in text
    stopped = re.search(r"^::stop-commands::(\S+)$(.*?)^::\1::$", runner.log, re.M | re.S)
    assert stopped is not None
    assert "::error::x" not in runner.log.replace(stopped[2], "")


def test_a_long_summary_is_cut_to_what_github_takes(runner: Runner, tmp_path: Path) -> None:
    rows = "".join(f"| `ls mine seed {number}` | 1.000 |\n" for number in range(100_000))
    long = f"### linklab: regression\n\n| worse |\n\n<details>\n{rows}</details>\n"
    publish = next(
        one["run"] for one in ACTION["runs"]["steps"] if "publish.py" in one.get("run", "")
    )
    for text, kept in (
        (long, "| worse |"),
        (long.replace("details>", "p>"), "| `ls mine seed 1` |"),
    ):
        (tmp_path / "long.md").write_text(text)
        code, _ = runner._run(
            publish, {"SUMMARY": str(tmp_path / "long.md"), "COMMENT": "true", "TOKEN": "t"}
        )
        assert code == 0, runner.log
        comment = runner.github.comments[-1][1]
        assert len(comment) <= 65_536
        assert kept in comment
        assert comment.rstrip().endswith("has the rest.")
        assert runner.summary.stat().st_size < 1 << 20
        runner.summary.write_text("")
    assert len(runner.github.comments) == 1


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A checkout with what decides the cache's key, and a machine on which apt-get does nothing."""
    root = tmp_path / "copy"
    for path in (".github/actions", "client", "emulator/setup", "emulator/linklab/places/guest"):
        shutil.copytree(REPOSITORY / path, root / path)
    for path in ("Makefile", "emulator/base.txt", "emulator/requirements.txt"):
        shutil.copy(REPOSITORY / path, root / path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "apt-get").symlink_to("/bin/true")
    return root


def prepared(root: Path, target: str = "setup") -> dict[str, str]:
    """Returns what the first step puts out."""
    home = root.parent
    output = home / "output"
    output.write_text("")
    subprocess.run(
        [root / ".github/actions/prepare", target],
        env={
            "PATH": f"{home}/bin:{os.environ['PATH']}",
            "HOME": str(home),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_ENV": str(home / "env"),
        },
        check=True,
    )
    return dict(re.findall(r"^(\w+)=(.*)$", output.read_text(), re.M))


def test_the_cache_is_named_by_all_that_it_is_made_of(copy: Path) -> None:
    first = prepared(copy)
    assert first["key"].startswith(f"{first['guest']}-")
    assert prepared(copy) == first
    assert prepared(copy, "extras")["key"] != first["key"]
    for path, guest in (
        ("client/internal/schedule/algorithms.go", False),
        ("client/go.mod", False),
        ("emulator/base.txt", False),
        ("emulator/linklab/places/guest/kernel.patch", True),
    ):
        (copy / path).write_text((copy / path).read_text() + "\n")
        second = prepared(copy)
        assert second["key"] != first["key"]
        assert (second["guest"] != first["guest"]) == guest
        first = second


@pytest.mark.parametrize(("hit", "makes"), [("true", False), ("false", True), ("", True)])
def test_what_the_cache_has_is_not_made_again(copy: Path, hit: str, makes: bool) -> None:
    """The restored files are older than the checkout."""
    for path in (".venv/.installed", ".venv/.extras", "build/multilink"):
        (copy / path).parent.mkdir(exist_ok=True)
        (copy / path).touch()
        os.utime(copy / path, (1, 1))
    make = copy.parent / "bin" / "make"
    goals = ".venv/.extras build/multilink"  # What `extras` is of, without the guest.
    make.write_text(f'#!/bin/sh\nexec {shutil.which("make")} -n -C "$2" {goals}\n')
    make.chmod(0o755)
    done = ran(
        [copy / ".github/actions/make", "extras"],
        env={"PATH": f"{make.parent}:{os.environ['PATH']}", "ROOT": str(copy), "HIT": hit},
        check=True,
    )
    for command in ("emulator/setup/python .venv", "client build/multilink"):
        assert (command in done.stdout) == makes, done.stdout


TESTS = """
import pytest

@pytest.mark.linklab("short.yaml")
def test_a_download(linklab):
    assert linklab.run("alg3").download_s < 30

def test_that_fails():
    assert False
"""


def test_a_project_s_own_tests_run_in_place_of_a_suite(
    runner: Runner, scenario: ScenarioFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # All is there already.
    python = runner.root / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (runner.root / "emulator").symlink_to(REPOSITORY / "emulator")
    (runner.workspace / "test_downloads.py").write_text(TESTS)
    (runner.workspace / "needs.txt").write_text("packaging\n")
    shutil.copy(scenario("short"), runner.workspace / "short.yaml")
    one = {"pytest": "test_downloads.py -k 'a_download or other'", "requirements": "needs.txt"}
    assert runner(**one, junit="junit.xml") == 0, runner.log
    assert 'tests="1"' in (runner.workspace / "junit.xml").read_text()
    assert runner(pytest="test_downloads.py") == 1
    assert "1 failed, 1 passed" in runner.log
    assert runner.summary.read_text() == ""
