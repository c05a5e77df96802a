"""Which run folders this user has started on this machine, by notes that no run folder can bring with it.

A run folder that somebody sent looks like any other, whatever host it names. So the start of each run is noted outside
of it, with what the file system alone decides: the number of its folder and the moment in which that was made. A folder
that was moved within a file system keeps both; a copy and an archive that was unpacked do not.
"""

import contextlib
import ctypes
import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

from runner.core.errors import UsageError
from runner.core.files import read_bounded
from runner.core.paths import PROGRAM, home
from runner.store.run import Run

FOLDER = "started"
MAX_NOTE = 8192  # bytes: a path has 4096 at most
DIGITS = 32
KEPT_SECONDS = 366 * 24 * 3600.0
"""How long the note of a run stays whose folder is no longer where it was: that may have been moved."""
AT_FDCWD, STATX_BTIME = -100, 0x800  # linux/fcntl.h, linux/stat.h
STATX_BYTES, BTIME_OFFSET = 256, 80  # of struct statx, and of stx_btime in it: seconds (64 bits), nanoseconds (32 bits)


def note_started(run: Run, environ: Mapping[str, str] = os.environ, *, path: Path | None = None) -> None:
    """Note that this user has started a run here; without a home folder, or on a full disk, nothing is noted.

    Args:
        run: the run.
        environ: names the folder of the notes.
        path: what the folder of the run will be called, where it has another name yet.
    """
    with contextlib.suppress(OSError, UsageError):
        folder, path = notes_folder(environ), (path or run.path).resolve()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _remove_old(folder)
        (folder / _name(run.path, path)).write_bytes(os.fsencode(path))


def is_started_here(run: Run, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this user has started a run in this very folder, wherever that was then."""
    try:
        return (notes_folder(environ) / _name(run.path, run.path.resolve())).is_file()
    except (OSError, UsageError):
        return False


def notes_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of the notes; raises UsageError where this user has no home folder."""
    state = environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if state.startswith("/") else home(environ, "XDG_STATE_HOME") / ".local/state"
    return folder / PROGRAM / FOLDER


def _name(folder: Path, path: Path) -> str:
    """Return what the note of a folder is called that has a path, or will have it. Raises OSError where it is gone.

    A number is used again once its folder is gone; where the file system knows no time of birth, the path counts, too.
    """
    born = birth(folder)
    parts = (path.name, str(folder.stat().st_ino), born or os.fspath(path))
    return hashlib.sha256(os.fsencode("\0".join(parts))).hexdigest()[:DIGITS]


def birth(path: Path) -> str:
    """Return when a folder was made, as no program can set it; empty where the system does not say that.

    See statx(2), since Linux 4.11 and glibc 2.28. ``os.stat`` has no time of birth on Linux.
    """
    buffer = ctypes.create_string_buffer(STATX_BYTES)
    with contextlib.suppress(AttributeError):
        done = ctypes.CDLL(None).statx(AT_FDCWD, os.fsencode(path), 0, STATX_BTIME, buffer)
        if done == 0 and ctypes.c_uint32.from_buffer(buffer).value & STATX_BTIME:
            seconds = ctypes.c_int64.from_buffer(buffer, BTIME_OFFSET).value
            nanoseconds = ctypes.c_uint32.from_buffer(buffer, BTIME_OFFSET + 8).value
            return f"{seconds}.{nanoseconds:09}" if seconds > 0 else ""  # some file systems say that it is 1970
    return ""


def _remove_old(folder: Path) -> None:
    """Remove the notes of runs that have been gone from where they were started for a long time."""
    for note in folder.iterdir():
        with contextlib.suppress(OSError):
            is_gone = not os.path.lexists(read_bounded(note, MAX_NOTE))
            if is_gone and time.time() - note.stat().st_mtime > KEPT_SECONDS:
                note.unlink()
