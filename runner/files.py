"""Files that are there whole or not at all, even after a crash or a power cut."""

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

WAIT_SECONDS = 0.2


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


@contextmanager
def alone(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock for the length of the block; wait, and say so once, while another process holds it.

    The lock goes with the process that holds it, however that ends.

    Args:
        path: the lock; its folder is made.
        say: told that somebody else holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        told = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    say(f"another runner measures on this machine: waiting for it ({path})")
                told = True
                time.sleep(WAIT_SECONDS)
        yield


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
