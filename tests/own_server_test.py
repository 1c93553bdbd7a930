"""Tests foreign servers and clients in virtual time: `linklab exec --server`."""

import hashlib
import json
import random
import sys
from pathlib import Path

import pytest
from conftest import REPEATS, Linklab, ScenarioFile, program, served_by_quic, succeeded


def each_time(linklab: Linklab, file: Path, flag: str, served: tuple[str, ...]) -> str:
    """Returns what `get` tells of a whole file from quic-go's server, the same in each run."""
    said = set()
    for _ in range(REPEATS):
        run_dir = succeeded(
            linklab,
            "exec",
            *(file, *served),
            *("--", "sh", "-c", GET.format(flag)),
        ).run_dir
        said.add((run_dir / "client.out").read_text())
    (words,) = said
    return words


def protocols(words: str) -> dict[str, set[str]]:
    """Returns the protocols of each link, of a whole file that `get --json` and its events tell."""
    summary, *events = map(json.loads, words.splitlines())
    assert summary["outcome"] == "complete"
    found: dict[str, set[str]] = {link: set() for link in summary["links"]}
    for one in events:
        if one["event"] == "connected":
            found[one["link"]].add(one["protocol"])
    return found


GET = (
    "multilink get {{url}} {} --ca-file {{ca}} --link wifi=wlan0 --link lte=rmnet0 "
    "--checksum sha-256=$LINKLAB_SHA256 -o file --json --run-dir . && cat client.jsonl"
)
H2, H3 = "TLS 1.3 h2", "TLS 1.3 h3"


def test_multilink_by_http3_is_the_same_each_time(
    linklab: Linklab, scenario: ScenarioFile, http3: Path
) -> None:
    """Over both links, of which one loses packets and is away for a second."""
    outage = "events: [{at: 500 ms, link: wifi, outage: true, for: 1 s}]"
    rates = {
        "wifi": "down: 20 Mbit/s, up: 5 Mbit/s, rtt: 20 ms, loss: 1 %",
        "lte": "down: 10 Mbit/s, up: 5 Mbit/s, rtt: 60 ms",
    }
    file = scenario("by-http3", size="4 MB", more=outage, **rates)
    words = each_time(linklab, file, "--http3-only", served_by_quic(http3))
    summary = json.loads(words.splitlines()[0])
    assert all(one["bytes"] > 500_000 for one in summary["links"].values())
    assert protocols(words) == {"wifi": {H3}, "lte": {H3}}


@pytest.mark.parametrize("blocked", [False, True])
def test_multilink_speaks_http3_where_it_is_offered(
    blocked: bool, linklab: Linklab, scenario: ScenarioFile, http3: Path
) -> None:
    """quic-go's server offers it over HTTP/2. A link makes new connections after its outage, over TCP if QUIC's first
    packets of 1200 bytes (RFC 9000 14.1) do not pass."""
    rates = {
        "wifi": "down: 20 Mbit/s, up: 5 Mbit/s, rtt: 20 ms, loss: 1 %",
        "lte": "down: 10 Mbit/s, up: 5 Mbit/s, rtt: 60 ms, loss: 1 %",
    }
    if blocked:
        rates["lte"] += ", impair_up: {mtu: 1000 B}"
    outage = "events: [{at: 500 ms, link: lte, outage: true, for: 1 s}]"
    file = scenario("offered", size="12 MB", more=outage, **rates)
    words = each_time(linklab, file, "--http3", served_by_quic(http3, "-tcp"))
    assert protocols(words)["lte"] == ({H2} if blocked else {H2, H3})


def test_multilink_goes_on_where_http3_is_offered_and_not_served(
    linklab: Linklab, scenario: ScenarioFile, nginx: str
) -> None:
    """nginx offers a port at which nothing listens for QUIC."""
    script = Path(nginx)
    script.write_text(
        script.read_text().replace("root ", "add_header Alt-Svc 'h3=\":443\"'; root ")
    )
    outage = "events: [{at: 500 ms, link: lte, outage: true, for: 1 s}]"
    file = scenario(
        "unserved-http3",
        more=outage,
        wifi="down: 20 Mbit/s, up: 5 Mbit/s, rtt: 20 ms",
        lte="down: 10 Mbit/s, up: 5 Mbit/s, rtt: 60 ms",
    )
    run_dir = succeeded(
        linklab, "exec", file, "--server", nginx, "--", "sh", "-c", GET.format("--http3")
    ).run_dir
    assert protocols((run_dir / "client.out").read_text()) == {"wifi": {H2}, "lte": {H2}}


def test_iperf3_measures_the_link(linklab: Linklab, scenario: ScenarioFile) -> None:
    """Its server ends once it has served, which is no failure."""
    iperf3 = program("iperf3")
    file = scenario("measured")
    reports = set()
    for _ in range(2):
        done = linklab(
            *("exec", file, "--json"),
            *("--server", f"{iperf3} --server --one-off --port {{port}}", "--port", 5201, "--"),
            *(iperf3, "--client", "{address}", "--port", "{port}", "--json", "--reverse"),
            *("--bind-dev", "rmnet0", "--omit", 1, "--time", 3),
        )
        assert done.code == 0, done.err
        reports.add((done.run_dir / "client.out").read_text())
    (report,) = map(json.loads, reports)
    rate_bps = report["end"]["sum_received"]["bits_per_second"]
    assert rate_bps == pytest.approx(50e6 * 1448 / 1514, rel=0.01)


def test_clients_are_compared_on_a_server_of_one_s_own(
    linklab: Linklab, scenario: ScenarioFile, nginx: str
) -> None:
    file = scenario("compared", size="10 MB")
    compared = [
        linklab(
            "compare", file, "-a", "alg3,curl-lte", "--json", "--parallel", 1, "--server", nginx
        )
        for _ in range(2)
    ]
    assert [one.code for one in compared] == [0, 0], compared[0].err
    first, second = (one.json["comparisons"][0]["rows"] for one in compared)
    assert first == second
    for run_dir in Path(compared[0].json["run_dir"]).iterdir():
        assert (run_dir / "server.err").exists()
        assert not (run_dir / "h2o.conf").exists()
        assert json.loads((run_dir / "run.json").read_text())["server"]["command"] == [nginx]


def test_a_suite_s_server_is_held_against_its_baseline(
    linklab: Linklab, nginx: str, tmp_path: Path
) -> None:
    """The same server gives the same figures. One that sends late is worse."""
    suite = tmp_path / "served.yaml"
    suite.write_text(
        "name: served\n"
        "scenarios:\n  - {scenario: static-80-50, size: 5 MB}\n"
        "algorithms: [alg3, mine]\nverify: 1\n"
        f"server: {{command: {nginx}}}\n"
        "exec:\n  - {name: mine, command: 'curl -sSf --cacert {ca} -o {output} {url}',"
        f" server: {{command: {nginx}, port: 8443}}}}\n"
    )
    made = linklab("regress", suite, "--jobs", 1, "--update", "--reason", "as is")
    assert made.code == 0, made.err
    same = succeeded(linklab, "regress", suite, "--jobs", 1)
    assert [cell["status"] for cell in same.json["cells"]] == ["same", "same"]
    script = Path(nginx)
    script.write_text(script.read_text().replace("root ", "limit_rate 2m; root "))
    worse = linklab("regress", suite, "--jobs", 1, "--json")
    assert worse.code == 1, worse.err
    assert [cell["status"] for cell in worse.json["cells"]] == ["worse", "worse"]


def test_a_peer_s_file_of_other_bytes_is_said(
    linklab: Linklab, scenario: ScenarioFile, nginx: str
) -> None:
    """The server's answers are in order, and the file is of the right size."""
    size_bytes = 2_000_000
    file = scenario("other", size=f"{size_bytes} B")
    words = ("compare", file, "-a", "curl-wifi,aria2-2", "--parallel", 1, "--server", nginx)
    assert linklab(*words).code == 0
    script = Path(nginx)
    whatever = script.read_text().replace(
        "root $LINKLAB_DIRECTORY", "root $PWD; try_files /zeros =404"
    )
    script.write_text(
        whatever.replace("cat >", f"head -c {size_bytes} /dev/zero > zeros\ncat >", 1)
    )
    done = linklab(*words, "--json")
    assert done.code == 1
    came = hashlib.sha256(bytes(size_bytes)).hexdigest()
    (comparison,) = done.json["comparisons"]
    for row in comparison["rows"]:
        run_dir = Path(done.json["run_dir"], f"other-{row['algorithm']}-seed1")
        wanted = json.loads((run_dir / "run.json").read_text())["payload_sha256"]
        assert row["failures"] == [f"the file's SHA-256 is {came} instead of {wanted}"]
        assert row["download_s"] is None
        outcome = json.loads((run_dir / "outcome.json").read_text())
        assert (outcome["exit_code"], outcome["output_bytes"]) == (0, size_bytes)


DIES = """
import os, socket, sys
one = socket.create_server((sys.argv[1], int(sys.argv[2])))
while True:
    peer, _ = one.accept()
    how = int(peer.recv(100))
    if how == 0:
        peer.sendall(b"answer")
        continue
    print("asked for", how, file=sys.stderr, flush=True)
    if how < 0:
        os.kill(os.getpid(), -how)
    os._exit(how)
"""

ASKS = """
import socket, sys, time
def answer(how):
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5) as one:
        one.sendall(str(how).encode())
        return one.recv(100)
for how, pause in zip(map(int, sys.argv[3::2]), map(float, sys.argv[4::2])):
    time.sleep(pause)
    try:
        assert not answer(how)
    except ConnectionError:
        pass
    died, tries = time.monotonic(), 0
    while True:
        try:
            assert answer(0) == b"answer"
            break
        except ConnectionError:
            tries += 1
            time.sleep(0.01)
    print(how, time.monotonic() - died, tries, flush=True)
"""


def test_a_server_s_deaths_are_events_and_it_is_started_again(
    linklab: Linklab, scenario: ScenarioFile, tmp_path: Path
) -> None:
    """A client asks 12 times for a death by an exit code or a signal, and gets its answer when the
    server is back."""
    for name, text in (("dies.py", DIES), ("asks.py", ASKS)):
        (tmp_path / name).write_text(text)
    chance = random.Random(48)
    deaths = [
        (chance.choice((1, 3, 77, 255, -6, -9, -11, -15)), chance.uniform(0, 3)) for _ in range(12)
    ]
    after_s = 1.7
    records = set()
    for _ in range(2):
        done = succeeded(
            linklab,
            *("exec", scenario("dies"), "--server-restarts", f"{after_s}s"),
            *("--server", f"'{sys.executable}' {tmp_path}/dies.py {{address}} {{port}}", "--"),
            *(sys.executable, tmp_path / "asks.py", "{address}", "{port}"),
            *(word for death in deaths for word in death),
        )
        run_dir = done.run_dir
        records.add((run_dir / "events.jsonl").read_text())
    (record,) = records
    events = [one for one in map(json.loads, record.splitlines()) if one["kind"] == "server"]
    ends, starts = events[::2], events[1::2]
    assert [one["detail"] for one in ends] == [
        f"ended with {how}: asked for {how}" for how, _ in deaths
    ]
    assert {one["detail"] for one in starts} == {"started again"}
    for end, start in zip(ends, starts, strict=True):
        assert start["t_s"] - end["t_s"] == pytest.approx(after_s, abs=0.001)
    said = [line.split() for line in (run_dir / "client.out").read_text().splitlines()]
    assert [int(how) for how, _, _ in said] == [how for how, _ in deaths]
    for _, recovered_s, tries in said:
        assert int(tries) > 10
        assert after_s - 0.2 < float(recovered_s) < after_s + 1
    assert len(done.json["server_ends"]) == len(deaths)


def test_a_client_that_does_not_survive_its_server_ends_by_itself(
    linklab: Linklab, scenario: ScenarioFile, tmp_path: Path
) -> None:
    (tmp_path / "dies.py").write_text(DIES)
    serve = f"'{sys.executable}' {tmp_path}/dies.py {{address}} {{port}}"
    code = (
        "import socket,sys; one=socket.create_connection(sys.argv[1:]); one.sendall(b'9');"
        "print(one.recv(9)); socket.create_connection(sys.argv[1:])"
    )
    done = linklab(
        *("exec", scenario("dead"), "--server", serve, "--"),
        *(sys.executable, "-c", code, "{address}", "{port}"),
    )
    assert done.code == 1
    assert "the server ended with 9: asked for 9 (at 0.0" in done.err
    assert "ConnectionRefusedError" in done.err
    assert "KeyboardInterrupt" not in done.err


def test_a_server_that_does_not_serve_is_said(linklab: Linklab, scenario: ScenarioFile) -> None:
    server = f"'{sys.executable}' -m http.server 8080"
    done = linklab("exec", scenario("unserved"), "--server", server, "--", "sleep", "5")
    assert done.code == 1
    assert "the server does not listen on port 443 of 10.0.0.1" in done.err
    assert "but on tcp 0.0.0.0:8080: " in done.err
