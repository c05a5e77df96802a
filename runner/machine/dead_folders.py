"""What processes that are gone have left in the temporary folder of this machine and in a folder of reports."""

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from runner.core.model import Leftover
from runner.core.unfinished import TEMPORARY, is_abandoned, left_behind

REPORT_LEVELS = 5  # below the reports: bisect/SEARCH/runs/RUN/records, and likewise below explain
_TEMPORARY_NAME = re.compile(rf"{TEMPORARY}[a-z0-9_]{{8}}")  # as tempfile.mkdtemp names a folder


def temporary() -> Iterator[Leftover]:
    """Yield the temporary folders of processes and servers that have ended.

    A folder of a process names it; the working folder of a live server is its own.
    """
    working_folders = set()
    for process in Path("/proc").glob("[0-9]*/cwd"):
        try:
            working_folders.add(process.readlink())
        except OSError:
            continue  # the process has ended, or belongs to another user
    for path in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
        if _is_mine(path) and is_abandoned(path):
            yield leftover_at("folder", path, "its process has ended")
        elif _is_of_a_server(path) and not any(path in (folder, *folder.parents) for folder in working_folders):
            yield leftover_at("folder", path, "its server has ended")


def unfinished(reports: Path) -> Iterator[Leftover]:
    """Yield what killed commands have left in a folder of reports: files and folders that were never complete."""
    folders = [reports]
    for _ in range(REPORT_LEVELS):
        folders += [path for folder in folders for path in entries(folder) if path.is_dir() and path.name[0] != "."]
    for folder in dict.fromkeys(folders):
        for path in left_behind(folder):
            yield leftover_at("folder" if path.is_dir() else "file", path, "unfinished, and its process has ended")


def _is_mine(path: Path) -> bool:
    """Return True for a folder with a temporary name of this program and of this user."""
    try:
        status = path.lstat()
        return (
            stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and bool(_TEMPORARY_NAME.fullmatch(path.name))
        )
    except FileNotFoundError:
        return False  # removed in the meantime


def _is_of_a_server(path: Path) -> bool:
    """Return True for a folder that a channel made, which has the harness of a server in it."""
    return _is_mine(path) and any(path.glob("tmp*/harness.zip"))


def entries(folder: Path) -> tuple[Path, ...]:
    """Return what is in a folder, sorted; nothing where there is none."""
    return tuple(sorted(folder.iterdir())) if folder.is_dir() else ()


def leftover_at(kind: str, path: Path, reason: str) -> Leftover:
    """Return something at a path that may go, with its size."""
    return Leftover(kind=kind, name=str(path), reason=reason, size=_size(path))


def _size(path: Path) -> int:
    """Return the bytes of a file or of all files in a folder; links count as zero."""
    if not path.is_dir():
        return path.lstat().st_size
    return sum((Path(root) / name).lstat().st_size for root, _, names in os.walk(path) for name in names)
