import gzip
from pathlib import Path

import pytest

from linklab.lab.shaping import probe


def test_every_module_has_its_option() -> None:
    assert list(probe.OPTIONS) == [module for module, _ in probe._wanted()]


@pytest.mark.parametrize(
    ("lines", "missing"),
    [
        ("", list(probe.OPTIONS)),
        ("".join(f"CONFIG_{one}=m\n" for one in probe.OPTIONS.values()), []),
        (
            "CONFIG_NET_SCH_HFSC=y\nCONFIG_NET_SCH_FIFO=y\nCONFIG_NET_SCH_PLUG=m\n"
            "# CONFIG_NET_SCH_NETEM is not set\nCONFIG_VETH=y\nCONFIG_BRIDGE_NETFILTER=y\n",
            ["sch_netem", "bridge"],
        ),
    ],
)
def test_a_configuration_says_what_is_left_out(
    tmp_path: Path, lines: str, missing: list[str]
) -> None:
    configuration = tmp_path / "config.gz"
    configuration.write_bytes(gzip.compress(lines.encode()))
    assert probe.left_out(configuration) == missing


@pytest.mark.parametrize(
    "content", [None, b"no gzip", gzip.compress(b"CONFIG_VETH=y", mtime=0)[:-9]]
)
def test_a_kernel_that_does_not_say_lacks_nothing_that_is_known(
    tmp_path: Path, content: bytes | None
) -> None:
    configuration = tmp_path / "config.gz"
    if content is not None:
        configuration.write_bytes(content)
    assert probe.left_out(configuration) == []
