from pathlib import Path

import pytest

from linklab.core.records import FILES, ClientRecord, RequestRecord, Tail
from linklab.lab.network.topology import LinkPath, link_paths
from linklab.runs import server_log, time_series
from linklab.scenario import parse

START_S = 1_767_225_621.0
LINE = (
    '{"t":"1767225621.250000","client":"%s","request":"GET /payload HTTP/2","status":206,'
    '"bytes":%d,"range":"bytes=100-299","protocol":"HTTP/2","duration":"0.5","response":"0.4",'
    '"connection":%d}\n'
)


@pytest.fixture
def paths() -> dict[str, LinkPath]:
    links = "{down: 8 Mbit/s, up: 2 Mbit/s, rtt: 40 ms}"
    return link_paths(
        parse(f"name: x\npayload: {{size: 1 kB}}\nlinks: {{wifi: {links}, lte: {links}}}\n").links
    )


@pytest.mark.parametrize(
    ("client", "link"),
    [
        ("10.1.0.2", "wifi"),
        ("10.2.0.77", "lte"),
        ("10.2.3.3", "lte"),
        ("2001:db8:2::2", "lte"),
        ("10.1.0.202", None),
        ("10.3.0.2", None),
    ],
)
def test_a_client_s_address_names_its_link(
    tmp_path: Path, paths: dict[str, LinkPath], client: str, link: str | None
) -> None:
    (tmp_path / server_log.LOG).write_text(LINE % (client, 150, 1))
    server_log.write(tmp_path, paths, START_S)
    found = time_series.all_requests(tmp_path, 0.0, 1000)
    assert [one.link for one in found] == ([] if link is None else [link])
    if link is None:
        return
    (one,) = found
    assert (one.start_s, one.first_byte_s, one.end_s) == (0.25, 0.35, 0.75)
    assert (one.offset, one.length, one.bytes, one.outcome) == (100, 200, 150, "cancelled")


def test_what_a_server_does_not_write_is_left_out(
    tmp_path: Path, paths: dict[str, LinkPath]
) -> None:
    good = LINE % ("10.1.0.2", 200, 1)
    hostile = [
        '{"t": 1}',
        "[" * 3000,
        '"\\ud800"',
        *(good.replace("10.1.0.2", one).strip() for one in ("", ":", "::", "10.1", "10.1.0.x")),
        good.replace("1767225621.250000", "1.2.3").strip(),
        good.replace('"0.5"', '"."').strip(),
    ]
    (tmp_path / server_log.LOG).write_text("\n".join([*hostile, good]))
    server_log.write(tmp_path, paths, START_S)
    assert len(Tail(tmp_path, RequestRecord).read()) == 1


def test_multilink_s_own_records_count(tmp_path: Path, paths: dict[str, LinkPath]) -> None:
    (tmp_path / server_log.LOG).write_text(LINE % ("10.1.0.2", 200, 1))
    (tmp_path / FILES[ClientRecord]).touch()
    server_log.write(tmp_path, paths, START_S)
    assert not (tmp_path / FILES[RequestRecord]).exists()


def test_a_request_whose_connection_broke_has_no_end(
    tmp_path: Path, paths: dict[str, LinkPath]
) -> None:
    """Its link is that of another request on the connection, or the only one."""
    whole, broken = LINE % ("10.2.0.2", 200, 1), LINE % ("null", 20, 1)
    broken = broken.replace('"0.5"', "null").replace('"0.4"', "null")
    alone = broken.replace('"connection":1', '"connection":2')
    (tmp_path / server_log.LOG).write_text(whole + broken + alone)
    server_log.write(tmp_path, paths, START_S)
    _, cut, other = time_series.all_requests(tmp_path, 0.0, 1000)
    assert (cut.link, cut.end_s, cut.first_byte_s, cut.bytes) == ("lte", None, None, 20)
    assert (cut.outcome, other.link) == ("cancelled", "")
    assert len(time_series.requests(tmp_path, 0.0, 9.0, 1000)) == 2
    server_log.write(tmp_path, {"lte": paths["lte"]}, START_S)
    assert time_series.all_requests(tmp_path, 0.0, 1000)[2].link == "lte"
