import pkgutil
from dataclasses import fields
from importlib import import_module

import pytest

from linklab import importers
from linklab.importers import data_sets
from linklab.importers.format import Options
from linklab.importers.registry import FORMATS, OWN, format_of
from linklab.traces.trace import OPTIONAL, TraceError


@pytest.mark.parametrize(
    ("head", "format"),
    [
        (b"t,down_mbit\n0,1\n", "csv"),
        (b"# licence: CC0\n\nt,down_mbit\n", "csv"),
        (b"time,rate\n", "csv"),  # wrong, and its reader says how
        (b"0\n3\n", "mahimahi"),
        (b"\xef\xbb\xbf12\r\n", "mahimahi"),
        (b"12", "mahimahi"),
        (b"Timestamp,Longitude,DL_bitrate,UL_bitrate\n", "ucc"),
        (b'{\n\t"start":\t{', "iperf3"),
        (b'\n  {"event":"start"}', "iperf3"),
    ],
)
def test_a_format_is_told_from_how_the_file_begins(head: bytes, format: str) -> None:
    assert format_of(head, "x").name == format


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"", "x:1: the file is empty; needed: a trace"),
        (b"\x0a\x0d\x0d\x0a", "x: is a capture, "),
        (b"# nothing\n\n", "x:1: there are only comments; needed: a trace"),
        (b"\n\nhello\n", "x:3: 'hello' begins no trace; allowed: csv (linklab's own: t,down_mbit"),
        (b"\x00\xff\xfe", "x:1: '\\x00"),
    ],
)
def test_what_is_no_trace_is_refused(head: bytes, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        format_of(head, "x")
    assert str(caught.value).startswith(message)


def test_every_file_of_a_format_is_listed() -> None:
    modules = [
        import_module(f"{importers.__name__}.{one.name}")
        for one in pkgutil.iter_modules(importers.__path__)
        if not one.name.endswith("_test") and one.name != "__main__"
    ]
    formats = [one.FORMAT for one in modules if hasattr(one, "FORMAT")]
    formats += [OWN, *data_sets.FORMATS]
    assert {one.name: one for one in formats} == FORMATS
    assert len(formats) == len(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_names_what_there_is(name: str) -> None:
    assert FORMATS[name].keeps <= set(OPTIONAL)
    assert FORMATS[name].takes <= {one.name for one in fields(Options)}
