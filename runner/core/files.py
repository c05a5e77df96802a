"""Write files atomically, so that they survive a crash or a power cut."""

import os
import secrets
from pathlib import Path


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file so that a reader sees either the old content or the new.

    The data is written to a hidden file in the same folder and synced to the disk, then the file is renamed. The folder
    must exist; a link at ``path`` is replaced, not followed.

    Args:
        path: the file to create or to replace.
        data: the content; text is written as UTF-8, its line ends unchanged.
    """
    content = data.encode() if isinstance(data, str) else data
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
