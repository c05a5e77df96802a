"""Locks on files between processes, by ``flock(2)``. A lock ends with the process that holds it, however that ends.

``exclusive`` waits for its turn, ``shared`` lets others hold the lock likewise, ``try_exclusive`` and ``hold`` never
wait, and ``is_held`` only looks.
"""

import fcntl
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from runner.core.errors import Problem, RunnerError, UsageError

WAIT_SECONDS = 0.2


@contextmanager
def exclusive(
    path: Path,
    say: Callable[[str], None],
    holder: str = "another runner measures on this machine",
    pause: Callable[[float], object] = time.sleep,
) -> Iterator[None]:
    """Hold a lock for the length of the block; wait while another process holds it.

    Args:
        path: the lock file; its folder is created.
        say: receives one line if the lock has to be waited for.
        holder: what the other process does, for that line.
        pause: waits the seconds it is given between two attempts; what it raises ends the waiting.

    Raises:
        RunnerError: the lock file cannot be created.
    """
    with _open(path) as lock:
        if not _try_lock(lock, fcntl.LOCK_EX):
            say(f"{holder}: waiting for it ({path})")
            pause(WAIT_SECONDS)
            while not _try_lock(lock, fcntl.LOCK_EX):
                pause(WAIT_SECONDS)
        yield


@contextmanager
def shared(path: Path) -> Iterator[None]:
    """Hold a lock that others may share for the length of the block; wait while a process holds it exclusively."""
    with _open(path) as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextmanager
def try_exclusive(path: Path) -> Iterator[bool]:
    """Hold a lock for the length of the block if no other process holds it; yield whether it is held."""
    with _open(path) as lock:
        yield _try_lock(lock, fcntl.LOCK_EX)


@contextmanager
def hold(path: Path, name: str) -> Iterator[None]:
    """Hold a lock for the length of the block, or fail at once and name the process that holds it.

    Args:
        path: the lock file; its folder must exist.
        name: what the lock protects, for the message.

    Raises:
        UsageError: another process holds it.
    """
    with path.open("a+") as lock:
        if not _try_lock(lock, fcntl.LOCK_EX):
            lock.seek(0)
            holder = lock.read().strip() or "another runner"
            hint = "wait until that process ends, or end it"
            raise UsageError(Problem(f"{name} is in use by {holder}", hint=hint))
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {platform.node()}")
        lock.flush()
        yield


def is_held(path: Path) -> bool:
    """Return True if a process on this machine holds a lock exclusively; False as well where it cannot be read."""
    try:
        with path.open() as lock:
            return not _try_lock(lock, fcntl.LOCK_SH)
    except OSError:
        return False


def _open(path: Path) -> TextIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a")
    except OSError as error:
        hint = "set XDG_CACHE_HOME to a folder that you may write to"
        raise RunnerError(Problem(f"cannot create the lock {path}: {error.strerror}", hint=hint)) from error


def _try_lock(lock: TextIO, kind: int) -> bool:
    """Take a lock without waiting; return whether it was taken."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
