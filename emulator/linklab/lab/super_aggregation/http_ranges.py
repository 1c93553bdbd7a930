"""Speaks HTTP/1.1 over a persistent connection: reads an answer's head, and answers with ranges of
one file in the order of requests (RFC 9110 14, RFC 9112). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_HEAD_END: Final = b"\r\n\r\n"
_MOST_HEAD_BYTES: Final = 1 << 16


class AnswerError(Exception):
    """An answer does not match its request."""


@dataclass(frozen=True, slots=True)
class Head:
    """Holds the head of an answer: its status, its fields by lower-case names, and its length in
    bytes."""

    status: int
    fields: Mapping[str, str]
    bytes: int


def head(content: bytes) -> Head | None:
    """Parses the head of an answer. Returns None if it is incomplete. Raises AnswerError."""
    text, found, _ = content.partition(_HEAD_END)
    if not found:
        if len(content) > _MOST_HEAD_BYTES:
            raise AnswerError("an answer without an end of its head")
        return None
    first, *lines = text.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdecimal():
        raise AnswerError(f"no answer of HTTP/1.1: {first[:80]!r}")
    parts = (line.partition(":") for line in lines)
    fields = {name.strip().lower(): value.strip() for name, _, value in parts}
    return Head(int(words[1]), fields, len(text) + len(_HEAD_END))


@dataclass(frozen=True, slots=True)
class File:
    """Identifies the file of all answers: its size, and its strong validator (RFC 9110 8.8.1)."""

    size_bytes: int
    tag: str


def whole_file(answer: Head) -> File:
    """Reads the file from an answer to a request without a range. Raises AnswerError."""
    length, tag = answer.fields.get("content-length", ""), answer.fields.get("etag", "")
    if answer.status != 200 or not length.isdecimal():
        raise AnswerError(f"the server answers {answer.status}, or not with a length")
    if not tag.startswith('"'):
        raise AnswerError("the server names no strong ETag: parts may be of different files")
    return File(int(length), tag)


def question(host: str, path: str, fields: Mapping[str, str]) -> bytes:
    """Returns a request for a file."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}"]
    return "\r\n".join([*lines, *(f"{name}: {fields[name]}" for name in fields), "", ""]).encode()


def part(host: str, path: str, begin: int, end: int, file: File) -> bytes:
    """Returns a request for the bytes from `begin` to before `end` of this file."""
    return question(host, path, {"Range": f"bytes={begin}-{end - 1}", "If-Range": file.tag})


class RangeAnswers:
    """Reads the answers to range requests in order. `missing` has the ranges that are not complete."""

    def __init__(self, file: File) -> None:
        self.missing: list[tuple[int, int]] = []
        self._file = file
        self._unread = b""
        self._is_within = False

    def asked(self, begin: int, end: int) -> None:
        self.missing.append((begin, end))

    def read(self, content: bytes) -> Iterator[tuple[int, bytes, bool]]:
        """Yields the received content: its position in the file, its bytes, and whether an answer
        ends with it. Raises AnswerError."""
        self._unread += content
        while self._unread:
            if not self._is_within:
                answer = head(self._unread)
                if answer is None:
                    return
                self._begin(answer)
                self._unread = self._unread[answer.bytes :]
                self._is_within = True
                continue
            begin, end = self.missing[0]
            some = self._unread[: end - begin]
            self._unread = self._unread[len(some) :]
            self._is_within = begin + len(some) < end
            if self._is_within:
                self.missing[0] = (begin + len(some), end)
            else:
                del self.missing[0]
            yield begin, some, not self._is_within

    def _begin(self, answer: Head) -> None:
        if answer.status != 206 or not self.missing:
            raise AnswerError(f"not a part that was asked for, but an answer of {answer.status}")
        begin, end = self.missing[0]
        if answer.fields.get("etag", self._file.tag) != self._file.tag:
            raise AnswerError("the server's file is another one by now")
        ranged = f"bytes {begin}-{end - 1}/{self._file.size_bytes}"
        length = str(end - begin)
        if (answer.fields.get("content-range"), answer.fields.get("content-length")) != (
            ranged,
            length,
        ):
            raise AnswerError(f"{ranged} was asked for, and something else has come")
