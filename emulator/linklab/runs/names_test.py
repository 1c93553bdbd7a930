from linklab.lab.network.outside import DNS_ADDRESS
from linklab.lab.network.services import Origin, Outside
from linklab.runs import names

ORIGIN = Origin("https://mine.example/", "mine.example", "10.0.1.1", 443, ("192.0.2.7", 443))
WITHOUT_NAME = Origin("http://127.0.0.1:8000/", "", "10.0.1.2", 8000, ("127.0.0.1", 8000))


def test_a_lab_alone_knows_itself() -> None:
    files = names.files(None)
    assert files["hosts"] == (
        "127.0.0.1 localhost\n127.0.1.1 linklab\n10.0.0.1 server.linklab server\n"
    )
    assert files["hostname"] == "linklab\n"
    assert files["nsswitch.conf"].endswith("hosts: files\n")
    assert files["resolv.conf"] == "nameserver 127.0.1.53\n"


def test_a_server_has_its_address_of_each_family() -> None:
    both = names.files(None, (4, 6))["hosts"]
    assert "10.0.0.1 server.linklab server\n2001:db8::1 server.linklab server\n" in both
    assert "::1 localhost\n" in both
    alone = names.files(None, (6,))["hosts"]
    assert "2001:db8::1 server.linklab server\n" in alone
    assert "10.0.0.1" not in alone


def test_an_origin_has_its_name() -> None:
    outside = Outside(origins=(ORIGIN, WITHOUT_NAME))
    files = names.files(outside)
    assert files["hosts"] == names.files(None)["hosts"] + "10.0.1.1 mine.example\n"
    assert names.addresses(outside)["mine.example"] == ("10.0.1.1",)
    assert files["resolv.conf"] == names.files(None)["resolv.conf"]


def test_other_names_are_asked_for_outside_where_all_is_reached() -> None:
    files = names.files(Outside(resolver=("192.0.2.53", 53)))
    assert files["resolv.conf"] == f"nameserver {DNS_ADDRESS}\n"
    assert files["nsswitch.conf"].endswith("hosts: files dns\n")
