"""Locks on files between processes: exclusive with waiting, shared, or taken only where nobody else holds them."""

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
def alone(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock for the length of the block; wait, and say so once, while another process holds it.

    The lock goes with the process that holds it, however that ends.

    Args:
        path: the lock; its folder is made.
        say: told that somebody else holds it.
    """
    with _opened(path) as lock:
        told = False
        while not _taken(lock, fcntl.LOCK_EX):
            if not told:
                say(f"another runner measures on this machine: waiting for it ({path})")
            told = True
            time.sleep(WAIT_SECONDS)
        yield


@contextmanager
def together(path: Path) -> Iterator[None]:
    """Hold a lock for the length of the block that others may hold likewise; wait while one has it ``alone_now``."""
    with _opened(path) as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextmanager
def alone_now(path: Path) -> Iterator[bool]:
    """Hold a lock for the length of the block unless somebody else does; say whether it is held."""
    with _opened(path) as lock:
        yield _taken(lock, fcntl.LOCK_EX)


def _opened(path: Path) -> TextIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a")
    except OSError as error:
        hint = "XDG_CACHE_HOME names another place for what is kept"
        raise RunnerError(Problem(f"the lock {path} cannot be made: {error.strerror}", hint=hint)) from error


def _taken(lock: TextIO, kind: int) -> bool:
    """Take a lock if that needs no waiting; say whether it was taken."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def held(path: Path, what: str) -> Iterator[None]:
    """Hold a lock for the length of the block, or say at once who holds it.

    The lock goes with the process that holds it, however that ends.

    Args:
        path: the lock; its folder must exist.
        what: what it keeps to one process, for the message.

    Raises:
        UsageError: another process holds it.
    """
    with path.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "another runner"
            raise UsageError(Problem(f"{what} is at work in {holder}", hint="wait until it ends, or end it")) from None
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {platform.node()}")
        lock.flush()
        yield
