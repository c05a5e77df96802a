"""Which run folders this user has started on this machine, by notes that no run folder can bring with it.

A run folder that somebody sent looks like any other, whatever host it names. So the start of each run is noted outside
of it, with its path and the number that the file system gave the folder: a copy, an archive that was unpacked and a
folder that was moved are not what was started.
"""

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from runner.core.errors import UsageError
from runner.core.files import read_bounded
from runner.core.paths import PROGRAM, home
from runner.store.run import Run

FOLDER = "started"
MAX_NOTE = 8192  # bytes: a path has 4096 at most
DIGITS = 32


def note_started(run: Run, environ: Mapping[str, str] = os.environ) -> None:
    """Note that this user has started a run here; without a home folder, or on a full disk, nothing is noted."""
    with contextlib.suppress(OSError, UsageError):
        folder = notes_folder(environ)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _remove_old(folder)
        (folder / _name(run)).write_bytes(_note(run))


def is_started_here(run: Run, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this user has started a run in this very folder."""
    try:
        return read_bounded(notes_folder(environ) / _name(run), MAX_NOTE) == _note(run)
    except (OSError, UsageError):
        return False


def notes_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of the notes; raises UsageError where this user has no home folder."""
    state = environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if state.startswith("/") else home(environ, "XDG_STATE_HOME") / ".local/state"
    return folder / PROGRAM / FOLDER


def _name(run: Run) -> str:
    return hashlib.sha256(os.fsencode(run.path.resolve())).hexdigest()[:DIGITS]


def _note(run: Run) -> bytes:
    """Return what is noted of a run. Raises OSError where its folder is gone."""
    path = run.path.resolve()
    return b"%d %s" % (path.stat().st_ino, os.fsencode(path))


def _remove_old(folder: Path) -> None:
    """Remove the notes of runs whose folders are gone."""
    for note in folder.iterdir():
        with contextlib.suppress(OSError):
            if not os.path.lexists(read_bounded(note, MAX_NOTE).partition(b" ")[2]):
                note.unlink()
