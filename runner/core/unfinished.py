"""Hidden names for files and folders that are not complete yet, or no longer: ``.3f2a9c81-4711-98765-0a1b2c.tmp``.

What is written gets its name when it is complete, and what is removed loses its name first. So a process that is killed
in between leaves nothing half under a name that anybody reads. What it leaves has a hidden name, which says which
process had it; ``sweep`` removes it once that process is gone.
"""

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from runner.core import processes

TEMPORARY = "matrix-runner-"
"""Begins the names of temporary folders."""
MAX_IDENTITY = 1000  # letters
PROCESS = ".process"
"""The file of a temporary folder that names its process."""
OF_OTHERS_SECONDS = 24 * 3600.0
"""How old something of another host, or of an earlier boot or version, has to be before it counts as left behind."""
_NAME = re.compile(r"\.(?P<boot>[0-9a-f]{8})-(?P<pid>[0-9]{1,10})-(?P<start>[0-9]{1,20})-[0-9a-f]{8}\.tmp", re.ASCII)
_OLDER_NAME = re.compile(r"\.[0-9a-f]{16}\.tmp", re.ASCII)


def hidden(path: Path) -> Path:
    """Return a hidden name beside a path, which nothing has; short, for the name of the path may be long."""
    pid = os.getpid()
    start = processes.started(pid) or "0"
    return path.with_name(f".{_boot()}-{pid}-{start}-{secrets.token_hex(4)}.tmp")


def remove_folder(folder: Path) -> None:
    """Remove a folder: its name goes at once, its content after that.

    Raises:
        OSError: it cannot be renamed or removed.
    """
    away = hidden(folder)
    folder.rename(away)
    shutil.rmtree(away)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a temporary folder, which names its process; ``runner clean`` removes that of a process that was killed."""
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / PROCESS).write_text(processes.identity(), "utf-8")
        yield folder


def is_abandoned(folder: Path) -> bool:
    """Return whether a folder of ``temporary_folder`` belongs to a process that is gone; False for another folder."""
    try:
        with (folder / PROCESS).open(encoding="utf-8", errors="replace") as stream:
            return processes.is_gone(stream.read(MAX_IDENTITY))
    except OSError:
        return False


def left_behind(folder: Path) -> Iterator[Path]:
    """Yield what killed processes have left in a folder, not below it; nothing for a folder that cannot be read."""
    with contextlib.suppress(OSError):
        for path in sorted(folder.iterdir()):
            with contextlib.suppress(OSError):
                if path.name.startswith(".") and _is_left(path):
                    yield path


def sweep(folder: Path) -> None:
    """Remove what ``left_behind`` yields; what cannot be removed stays."""
    for path in left_behind(folder):
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _is_left(path: Path) -> bool:
    """Return whether something has a hidden name and nobody works on it any more."""
    name = _NAME.fullmatch(path.name)
    if name is None and _OLDER_NAME.fullmatch(path.name) is None:
        return False
    if name is not None and name["boot"] == _boot():
        return (processes.started(int(name["pid"])) or "0") != name["start"]
    return time.time() - path.lstat().st_mtime > OF_OTHERS_SECONDS


def _boot() -> str:
    """Return digits that stand for this host and boot."""
    return hashlib.sha256(f"{socket.gethostname()}:{processes.boot()}".encode()).hexdigest()[:8]
