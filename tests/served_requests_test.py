"""Tests what a run tells of the HTTP requests of a program that is not multilink."""

from __future__ import annotations

from pathlib import Path

import linklab as package
from conftest import Linklab, ScenarioFile

CURL = "curl -sS --cacert {ca} -o /dev/null"
GETS = (
    f"{CURL} --interface wlan0 {{url}}; {CURL} --interface rmnet0 -r 100-299999 {{url}};"
    f" {CURL} --http1.1 --interface wlan0 -m 0.5 {{url}}; {CURL} {{url}}x"
)


def test_requests_have_links_ranges_and_outcomes(linklab: Linklab, scenario: ScenarioFile) -> None:
    """The third one is given up after 0.5 s."""
    file = scenario("mine", size="1 MB", wifi="down: 8 Mbit/s, up: 2 Mbit/s, rtt: 40 ms")
    done = linklab("exec", file, "--json", "--", "sh", "-c", GETS)
    assert done.code == 0, done.err
    (run,) = package.load(done.json["run_dir"])
    first, second, third, wrong = run.requests
    assert (first.link, first.offset, first.length, first.bytes) == (
        "wifi",
        0,
        1_000_000,
        1_000_000,
    )
    assert (first.status, first.outcome) == (200, "complete")
    assert (second.link, second.offset, second.bytes) == ("lte", 100, 299_900)
    assert (second.status, second.outcome) == (206, "complete")
    assert third.request.startswith("GET /payload-")
    assert third.request.endswith(" HTTP/1.1")
    assert (third.end_s, third.outcome) == (None, "cancelled")
    assert 0 < third.bytes < 1_000_000
    assert (wrong.status, wrong.outcome) == (404, "failed")
    # A request comes half a round trip after three for TCP and TLS 1.3, and then waits for its answer.
    assert 0.09 < first.start_s < 0.16
    assert first.first_byte_s is not None
    assert first.end_s is not None
    assert first.start_s <= first.first_byte_s < first.end_s < second.start_s < third.start_s
    assert [one["link"] for one in done.json["requests"]] == [one.link for one in run.requests]
    page = linklab("report", run.path, "-o", "page.html")
    assert page.code == 0, page.err
    text = (Path(file).parent / "page.html").read_text()
    assert text.count('"o":"complete"') >= 2
    assert text.count('"o":"failed"') == 1
