from typing import Any

import pytest

from linklab.runs import shares
from linklab.runs.shares import ALL_LINKS, ClientFigures
from linklab.runs.traffic_figures import TrafficFigures


def client(number: int, algorithm: str = "alg3", **links_bytes: int) -> ClientFigures:
    """A download of 8 s."""
    return ClientFigures(number, algorithm, 8.0, sum(links_bytes.values()) * 1.0, links_bytes)


def flow(number: int, **more: Any) -> TrafficFigures:
    values: dict[str, Any] = {
        "flow": number,
        "link": "wifi",
        "direction": "down",
        "kind": "bulk",
        "flowed_s": 8.0,
        "goodput_bps": 3e6,
        **more,
    }
    return TrafficFigures(**values)


@pytest.mark.parametrize(
    ("rates", "index"),
    [([5], 1.0), ([2, 2, 2], 1.0), ([1, 0, 0, 0], 0.25), ([1, 3], 0.8), ([0, 0], 1.0)],
)
def test_jain_s_index_is_one_of_equal_rates_and_one_by_n_of_one_of_n(
    rates: list[float], index: float
) -> None:
    assert shares.jain(rates) == pytest.approx(index)


def test_a_client_and_flows_share_the_links_that_both_use() -> None:
    """The client has 1 MB in 8 s on each link."""
    one = client(1, wifi=1_000_000, lte=1_000_000)
    found = shares.of_run([one], [flow(1), flow(2)], "down")
    assert list(found) == ["wifi"]
    assert found["wifi"].rates_bps == {
        "client 1 alg3": 1e6,
        "flow 1 bulk down wifi": 3e6,
        "flow 2 bulk down wifi": 3e6,
    }
    assert found["wifi"].jain == pytest.approx(49 / (3 * 19))
    assert found["wifi"].words == (
        "client 1 alg3 14.3 %, flow 1 bulk down wifi 42.9 %, flow 2 bulk down wifi 42.9 %; "
        "Jain's index 0.860"
    )


def test_only_bulk_flows_of_the_same_way_that_flowed_are_rivals() -> None:
    others = [
        *(flow(1, direction="up"), flow(2, kind="call"), flow(3, kind="web")),
        *(flow(4, goodput_bps=None), flow(5, link="lte")),
    ]
    assert shares.of_run([client(1, wifi=9)], others, "down") == {}
    assert list(shares.of_run([client(1, wifi=9)], others, "up")) == ["wifi"]


def test_several_clients_share_every_link_and_all_together() -> None:
    found = shares.of_run(
        [client(1, wifi=3_000_000, lte=1_000_000), client(2, "aria2-8", wifi=1_000_000)], [], "down"
    )
    assert {link: list(one.shares.values()) for link, one in found.items()} == {
        ALL_LINKS: [0.8, 0.2],
        "wifi": [0.75, 0.25],
        "lte": [1.0, 0.0],
    }
    assert found["lte"].jain == 0.5


def test_a_client_that_transferred_no_file_has_no_goodput() -> None:
    one = ClientFigures(2, "curl", 1.0, None, {})
    assert (one.title, one.flat()) == ("client 2 curl", {"download_s": 1.0})
