"""Shows the summary of `linklab regress` on the run's page and, with COMMENT=true, in a comment on the
pull request.

A later run of the same step updates its comment. The comment is no part of the verdict: without the
right to comment, as in a run for a fork, one line says so. The environment has SUMMARY (a file that
may be missing), SUITE, REAL_CLOCK, REPORT_URL, COMMENT, TOKEN, and what the runner sets.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import urllib.request
from pathlib import Path
from typing import Any, Final

PAGE_BYTES: Final = 1 << 20
"""The most that GitHub shows of a step on the run's page."""

COMMENT_CHARACTERS: Final = 65_536
"""The most that GitHub takes as a comment."""

MOST_BYTES: Final = 1 << 24
"""The most bytes read of an answer: 100 comments have 6.5 million characters at most."""

_FIND: Final = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  viewer { login }
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      id
      comments(first: 100, after: $after) {
        nodes { id body author { login } }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}"""
_ADD: Final = """
mutation($id: ID!, $body: String!) {
  addComment(input: {subjectId: $id, body: $body}) { clientMutationId }
}"""
_UPDATE: Final = """
mutation($id: ID!, $body: String!) {
  updateIssueComment(input: {id: $id, body: $body}) { clientMutationId }
}"""


class CommentError(Exception):
    """There is no comment. The message says why."""


def fitted(text: str, most: int, elsewhere: str) -> str:
    """Returns the text, without its folded part or last lines if it is longer than `most` characters.
    `elsewhere` says where the whole text is."""
    if len(text) <= most:
        return text
    short = re.sub(r"<details>.*?</details>\n", "", text, flags=re.DOTALL)
    room = most - len(elsewhere) - 2
    if len(short) > room:
        short = short[: short.rfind("\n", 0, room)]
    return f"{short}\n\n{elsewhere}"


def marker(environment: dict[str, str]) -> str:
    """Returns the hidden line by which a step finds its comment. A hash, since no name may end the
    line."""
    named = ("GITHUB_WORKFLOW", "GITHUB_JOB", "GITHUB_ACTION", "SUITE", "REAL_CLOCK")
    key = json.dumps([environment.get(name, "") for name in named])
    return f"<!-- linklab-regress {hashlib.sha256(key.encode()).hexdigest()[:32]} -->"


def ask(url: str, token: str, query: str, **variables: Any) -> Any:
    """Returns the data of an answer to a query. Raises CommentError."""
    request = urllib.request.Request(
        url,
        json.dumps({"query": query, "variables": variables}).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            said = json.loads(answer.read(MOST_BYTES))
        if said.get("errors"):
            raise CommentError("; ".join(str(one.get("message")) for one in said["errors"]))
        return said["data"]
    except (OSError, http.client.HTTPException, ValueError, LookupError, AttributeError) as error:
        raise CommentError(str(error)) from None


def place(url: str, token: str, pull: dict[str, Any], line: str) -> tuple[str, str | None]:
    """Returns the IDs of the pull request, and of our comment with this first line if there is one.

    A comment of somebody else may have the same line. Raises CommentError.
    """
    after = None
    while True:
        data = ask(url, token, _FIND, **pull, after=after)
        request = data["repository"]["pullRequest"]
        ours = data["viewer"]["login"].removesuffix("[bot]")
        for one in request["comments"]["nodes"]:
            if (one["author"] or {}).get("login") == ours and one["body"].startswith(line):
                return request["id"], one["id"]
        page = request["comments"]["pageInfo"]
        if not page["hasNextPage"]:
            return request["id"], None
        after = page["endCursor"]


def comment(environment: dict[str, str], number: int, text: str) -> str:
    """Writes or updates the comment. Returns what was done. Raises CommentError."""
    url, token = environment["GITHUB_GRAPHQL_URL"], environment.get("TOKEN", "")
    owner, _, name = environment["GITHUB_REPOSITORY"].partition("/")
    line = marker(environment)
    body = f"{line}\n{text}"
    try:
        pull = {"owner": owner, "name": name, "number": number}
        request, found = place(url, token, pull, line)
    except (KeyError, TypeError, AttributeError) as error:
        raise CommentError(f"an answer that is none of GitHub's ({error})") from None
    if found is None:
        ask(url, token, _ADD, id=request, body=body)
        return "written"
    ask(url, token, _UPDATE, id=found, body=body)
    return "updated"


def pull_request(environment: dict[str, str]) -> int | None:
    """Returns the number of the run's pull request, None if it is for no pull request."""
    event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text())
    number = (event.get("pull_request") or {}).get("number")
    return number if isinstance(number, int) else None


def notice(words: str) -> None:
    """Prints a line that the run's page shows. Its words may be a server's."""
    words = words[:500].replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print(f"::notice title=linklab regress::{words}")


def main() -> None:
    """Shows the summary."""
    environment = dict(os.environ)
    file = Path(environment["SUMMARY"])
    text = file.read_text() if file.is_file() else "### linklab: no verdict\n"
    run = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}".format_map(
        environment
    )
    links = [f"[log]({run})"]
    if environment.get("REPORT_URL"):
        links.insert(0, f"[curves of all runs]({environment['REPORT_URL']})")
    text = f"{text.rstrip()}\n\n{', '.join(links)}\n"
    with Path(environment["GITHUB_STEP_SUMMARY"]).open("a") as page:
        page.write(fitted(text, PAGE_BYTES // 4, "The log has the rest."))
    if environment.get("COMMENT") != "true":
        return
    number = pull_request(environment)
    if number is None:
        return
    try:
        room = COMMENT_CHARACTERS - 100
        done = comment(
            environment, number, fitted(text, room, f"[The run's page]({run}) has the rest.")
        )
        print(f"the comment on pull request {number} is {done}")
    except CommentError as error:
        notice(f"no comment on the pull request, the summary is on the run's page: {error}")


if __name__ == "__main__":
    main()
