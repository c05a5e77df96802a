"""Checksums of stored files, which notice what disks, copies and editors change.

A JSON document, and a line of the journal, ends with a checksum of all that precedes it. The checksum of a record's
file is in its line of the journal. They protect from accidents: whoever changes a file on purpose can change these too.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

_KEY = b', "checksum": "'
_END = re.compile(rb'([0-9a-f]{16})"\}\s*')
DIGITS = 16
"""Hexadecimal digits of the SHA-256 (FIPS 180-4) in a document: a change is missed once in 2**64."""
PIECE_BYTES = 1 << 16
"""Bytes that are read of a file at a time; most records are smaller."""


def with_checksum(text: str) -> str:
    """Return a JSON object as text, with its checksum as the last field, and a line end."""
    start = text.rstrip()[:-1]
    digest = hashlib.sha256(start.encode()).hexdigest()[:DIGITS]
    return f'{start}{_KEY.decode()}{digest}"}}\n'


def is_unchanged(content: bytes) -> bool | None:
    """Return whether the text of a JSON object agrees with its checksum; None if it has none."""
    start, key, end = content.rpartition(_KEY)
    match = _END.fullmatch(end) if key else None
    if match is None:
        return None
    return hashlib.sha256(start).hexdigest()[:DIGITS].encode() == match[1]


def file_checksum(content: bytes) -> str:
    """Return the SHA-256 of a file's content, as ``sha256sum`` prints it."""
    return hashlib.sha256(content).hexdigest()


def have_checksums(folder: Path, checksums: Mapping[str, str], limit: int) -> bool:
    """Read files, and return whether each can be read and has its ``file_checksum``.

    What a path leads to is not asked: anything but the file that was stored has another checksum.

    Args:
        folder: the folder of the files.
        checksums: path below the folder -> checksum.
        limit: the largest size of a file, in bytes.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return all(_checksum_below(descriptor, path, limit) == checksum for path, checksum in checksums.items())
        finally:
            os.close(descriptor)
    except (OSError, ValueError):  # ValueError: a path that no file can have
        return False


def _checksum_below(folder: int, path: str, limit: int) -> str:
    """Return the ``file_checksum`` of a file below an open folder, with few system calls; none if it is too large."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=folder)
    try:
        piece = os.read(descriptor, PIECE_BYTES)
        digest, size = hashlib.sha256(piece), len(piece)
        while len(piece) == PIECE_BYTES and size <= limit:
            piece = os.read(descriptor, PIECE_BYTES)
            digest.update(piece)
            size += len(piece)
    finally:
        os.close(descriptor)
    return digest.hexdigest() if size <= limit else ""
