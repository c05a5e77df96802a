"""Folders of a test session's own, so that tests never touch what a user runs.

A session, and each worker of pytest-xdist in it, has its own cache, state and temporary folders, so also its own locks:
a run of the user does not wait for a test, and no test waits for a run of the user. What takes minutes to make is
kept between sessions, in ``tests`` below the user's cache, where ``runner`` never looks: virtual environments and
references, which are written once and never changed.
"""

import os
import shutil
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

from runner.core.paths import cache_folder

SESSION = "RUNNER_TESTS_SESSION"
"""Variable: the folder of the session; the workers of pytest-xdist inherit it."""
USERS = "RUNNER_TESTS_USERS_CACHE"
"""Variable: the user's cache folder, ``matrix-runner`` included."""
WORKER = "PYTEST_XDIST_WORKER"
KEPT = ("venvs", "references")
"""Folders of the cache that sessions share."""


def enter(environ: MutableMapping[str, str]) -> Path:
    """Point the environment variables of this process, and of those that it starts, to folders of its own.

    Returns the folder of the session, if this process made it, or of this worker in it.
    """
    worker = environ.get(WORKER)
    if worker is None or SESSION not in environ:
        worker = "main"
        environ[USERS] = str(cache_folder(environ))
        environ["PIP_CACHE_DIR"] = environ.get("PIP_CACHE_DIR") or str(Path(environ[USERS]).parent / "pip")
        environ["UV_CACHE_DIR"] = environ.get("UV_CACHE_DIR") or str(Path(environ[USERS]).parent / "uv")
        environ["PYTEST_DEBUG_TEMPROOT"] = environ.get("PYTEST_DEBUG_TEMPROOT") or tempfile.gettempdir()
        environ[SESSION] = tempfile.mkdtemp(prefix="runner-tests-")
    folder = Path(environ[SESSION], worker)
    cache = folder / "cache" / "matrix-runner"
    for path in (cache, folder / "state", folder / "tmp"):
        path.mkdir(parents=True, exist_ok=True)
    for name in KEPT:
        (kept(environ) / name).mkdir(parents=True, exist_ok=True)
        (cache / name).symlink_to(kept(environ) / name)
    environ["MATRIX_RUNNER_OFFLINE"] = "1"  # no test depends on what has come out today
    environ["XDG_CACHE_HOME"] = str(cache.parent)
    environ["XDG_STATE_HOME"] = str(folder / "state")
    environ["TMPDIR"] = str(folder / "tmp")
    tempfile.tempdir = None  # or it keeps the folder that it chose before
    return folder if WORKER in environ else folder.parent


def leave(folder: Path) -> None:
    """Remove the folder that ``enter`` returned; a process that still ends there does not matter."""
    shutil.rmtree(folder, ignore_errors=True)


def kept(environ: MutableMapping[str, str] = os.environ) -> Path:
    """Return the folder of what sessions share; see the module."""
    return users_cache(environ) / "tests"


def users_cache(environ: MutableMapping[str, str] = os.environ) -> Path:
    """Return the user's cache folder. Tests read environments in it that are complete, and write nothing."""
    return Path(environ[USERS])
