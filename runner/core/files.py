"""Files that are there whole or not at all, even after a crash or a power cut."""

import os
import secrets
from pathlib import Path


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file so that a reader sees the old content or the new, never a part of it.

    The data goes to a hidden neighbour first, reaches the disk, and then takes the name. The folder must exist; a link
    at ``path`` is replaced, not followed.

    Args:
        path: the file to make or to replace.
        data: the whole content; text is written as UTF-8 with its line ends as they are.
    """
    content = data.encode() if isinstance(data, str) else data
    neighbour = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with neighbour.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        neighbour.replace(path)
    finally:
        neighbour.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
