"""Checksums of stored files, which notice what disks, copies and editors change.

A JSON document, and a line of the journal, ends with a checksum of all that precedes it. The checksum of a record's
file is in its line of the journal. They protect from accidents: whoever changes a file on purpose can change these too.
"""

import hashlib
import re

_KEY = b', "checksum": "'
_END = re.compile(rb'([0-9a-f]{16})"\}\s*')
DIGITS = 16
"""Hexadecimal digits of the SHA-256 (FIPS 180-4) in a document: a change is missed once in 2**64."""


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
