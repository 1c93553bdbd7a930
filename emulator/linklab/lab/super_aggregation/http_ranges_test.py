"""Tests http_ranges.py."""

import pytest

from linklab.lab.super_aggregation import http_ranges
from linklab.lab.super_aggregation.http_ranges import AnswerError, File, Head, RangeAnswers

FILE = File(1000, '"abc"')


def answer(begin: int, content: bytes, *, tag: str = FILE.tag, size: int = 1000) -> bytes:
    last = begin + len(content) - 1
    head = (
        f"HTTP/1.1 206 Partial Content\r\nETag: {tag}\r\nContent-Length: {len(content)}\r\n"
        f"content-range: bytes {begin}-{last}/{size}\r\n\r\n"
    )
    return head.encode() + content


def test_questions() -> None:
    assert http_ranges.question("10.0.0.1", "/x", {"Connection": "close"}) == (
        b"GET /x HTTP/1.1\r\nHost: 10.0.0.1\r\nConnection: close\r\n\r\n"
    )
    assert http_ranges.part("h", "/x", 10, 20, FILE) == (
        b'GET /x HTTP/1.1\r\nHost: h\r\nRange: bytes=10-19\r\nIf-Range: "abc"\r\n\r\n'
    )


def test_a_head_that_comes_bit_by_bit() -> None:
    text = b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: "t"\r\n\r\n'
    assert http_ranges.head(text[:-1]) is None
    found = http_ranges.head(text + b"12345")
    assert found == Head(200, {"content-length": "5", "etag": '"t"'}, len(text))
    assert http_ranges.whole_file(found) == File(5, '"t"')


@pytest.mark.parametrize(
    ("status", "fields", "words"),
    [
        (404, {"content-length": "5", "etag": '"t"'}, "404"),
        (200, {"etag": '"t"'}, "length"),
        (200, {"content-length": "5", "etag": 'W/"t"'}, "no strong ETag"),
    ],
)
def test_what_cannot_be_pieced_together_is_refused(
    status: int, fields: dict[str, str], words: str
) -> None:
    with pytest.raises(AnswerError, match=words):
        http_ranges.whole_file(Head(status, fields, 10))


@pytest.mark.parametrize("content", [b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 ok\r\n\r\n", b"x" * 70_000])
def test_what_is_no_answer(content: bytes) -> None:
    with pytest.raises(AnswerError):
        http_ranges.head(content)


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_answers_come_in_order_however_they_are_cut(step: int) -> None:
    parts = RangeAnswers(FILE)
    parts.asked(10, 15)
    parts.asked(500, 503)
    text = answer(10, b"hello") + answer(500, b"abc")
    got = bytearray(1000)
    ends = []
    for at in range(0, len(text), step):
        for begin, some, is_end in parts.read(text[at : at + step]):
            got[begin : begin + len(some)] = some
            if is_end:
                ends.append(begin + len(some))
    assert (bytes(got[10:15]), bytes(got[500:503])) == (b"hello", b"abc")
    assert ends == [15, 503]
    assert parts.missing == []


def test_what_has_not_come_is_still_missing() -> None:
    parts = RangeAnswers(FILE)
    parts.asked(10, 15)
    parts.asked(500, 503)
    assert list(parts.read(answer(10, b"hello")[:-2])) == [(10, b"hel", False)]
    assert parts.missing == [(13, 15), (500, 503)]


@pytest.mark.parametrize(
    "wrong",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
        answer(10, b"hello", tag='"other"'),
        answer(10, b"hello", size=1001),
        answer(11, b"hello"),
        answer(10, b"hell"),
    ],
)
def test_what_was_not_asked_for_is_never_taken(wrong: bytes) -> None:
    parts = RangeAnswers(FILE)
    parts.asked(10, 15)
    with pytest.raises(AnswerError):
        list(parts.read(wrong))


def test_an_answer_that_nobody_asked_for() -> None:
    with pytest.raises(AnswerError):
        list(RangeAnswers(FILE).read(answer(10, b"hello")))
