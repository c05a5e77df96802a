"""Appends lines to the journal of a run; they are on disk before the run continues."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from runner.core.errors import RecordError
from runner.core.json import Document, parse_object
from runner.store.checksums import with_checksum
from runner.store.documents import JOURNAL, newest

TAIL_BYTES = 64 * 1024
"""What is read of the end of a journal first; most lines are shorter."""


def append(path: Path, event: str, fields: Mapping[str, Any]) -> None:
    """Append a line to a journal, in place of last lines that were cut off, and wait until it is on disk."""
    append_all(path, [(event, fields)])


def append_all(path: Path, events: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Append lines to a journal as ``append`` does; a reader sees all of them or none.

    Each but the last has ``follow``: how many lines come after it that belong to it. Lines at the end of a journal that
    are not followed by as many were cut off.

    Args:
        path: the journal.
        events: (event, fields) of each line.
    """
    with path.open("a+b") as stream:
        size, number = _end_of_lines(stream)
        stream.truncate(size)
        for index, (event, fields) in enumerate(events, start=1):
            more = {"follow": len(events) - index} if index < len(events) else {}
            stream.write(line_of(number + index, event, {**fields, **more}))
        stream.flush()
        os.fsync(stream.fileno())


def line_of(number: int, event: str, fields: Mapping[str, Any]) -> bytes:
    """Return a line of a journal; lines count from 1."""
    line = json.dumps({"version": newest(JOURNAL), "event": event, "number": number, **fields})
    return with_checksum(line).encode()


def parse_line(line: bytes) -> Document | None:
    """Return the object of a journal line without its line end, or None if the line is incomplete."""
    try:
        return parse_object(line, "", 1)
    except RecordError:
        return None


def is_followed(line: bytes) -> bool:
    """Return whether a line of a journal belongs to the one after it, see ``append_all``."""
    return b'"follow": ' in line and "follow" in (parse_line(line) or {})


def _end_of_lines(stream: BinaryIO) -> tuple[int, int]:
    """Return the length in bytes of a journal up to the end of its last complete line, and the number of that line."""
    size = stream.seek(0, os.SEEK_END)
    last = _last_line(stream, size)
    if last and not (last.endswith(b"\n") and parse_line(last)):
        size -= len(last)
        last = _last_line(stream, size)
    while is_followed(last):
        size -= len(last)
        last = _last_line(stream, size)
    number = (parse_line(last) or {}).get("number")
    return size, number if isinstance(number, int) else _count_lines(stream, size)


def _last_line(stream: BinaryIO, size: int) -> bytes:
    """Return the last line of the first ``size`` bytes, with its line end if it has one."""
    length, tail, start = TAIL_BYTES, b"", -1
    while start < 0 and len(tail) < size:
        stream.seek(max(0, size - length))
        tail = stream.read(min(length, size))
        start = tail.rfind(b"\n", 0, -1)
        length *= 2
    return tail[start + 1 :]


def _count_lines(stream: BinaryIO, size: int) -> int:
    """Return the number of lines in the first ``size`` bytes: that of the last line of an older program."""
    stream.seek(0)
    return stream.read(size).count(b"\n")
