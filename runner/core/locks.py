"""Locks on files between processes, by ``flock(2)``. A lock ends with the process that holds it, however that ends.

``exclusive`` waits for its turn, ``shared`` lets others hold the lock likewise, ``changing`` waits while others change
a file, ``try_exclusive`` and ``hold`` never wait, and ``is_held`` only looks.
"""

import errno
import fcntl
import os
import platform
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from runner.core.errors import Problem, RecordError, RunnerError, UsageError
from runner.core.text import printable

WAIT_SECONDS = 0.2
CHANGE_SECONDS = 30.0
"""How long a file may be changed by others; each takes milliseconds."""
CHANGE_PAUSE = 0.01
MAX_HOLDER = 200  # letters that are read of the process that holds a lock
WAIT_OR_END = "wait until that process ends, or end it"
NOT_REGULAR = "it is not a regular file"


@contextmanager
def exclusive(
    path: Path,
    say: Callable[[str], None],
    holder: str = "another runner measures on this machine",
    pause: Callable[[float], object] = time.sleep,
    about: Callable[[], str] | None = None,
) -> Iterator[None]:
    """Hold a lock for the length of the block; wait while another process holds it.

    Args:
        path: the lock file; its folder is created.
        say: receives one line if the lock has to be waited for.
        holder: what the other process does, for that line.
        pause: waits the seconds it is given between two attempts; what it raises ends the waiting.
        about: called once the lock is held; returns what others are told of this process while they wait for it.

    Raises:
        RunnerError: the lock file cannot be created.
    """
    with _open(path) as lock:
        if not _try_lock(lock, fcntl.LOCK_EX):
            known = printable(lock.read(MAX_HOLDER)).strip()
            say(f"{holder}: waiting for it ({'; '.join(filter(None, [known, str(path)]))})")
            pause(WAIT_SECONDS)
            while not _try_lock(lock, fcntl.LOCK_EX):
                pause(WAIT_SECONDS)
        _write(lock, about() if about else "")
        yield


@contextmanager
def shared(
    path: Path, say: Callable[[str], None] = lambda _: None, holder: str = "another process has it alone"
) -> Iterator[None]:
    """Hold a lock that others may share for the length of the block; wait while a process holds it exclusively.

    Args:
        path: the lock file; its folder is created.
        say: receives one line if the lock has to be waited for.
        holder: what the other process does, for that line.

    Raises:
        RunnerError: the lock file cannot be created.
    """
    with _open(path) as lock:
        if not _try_lock(lock, fcntl.LOCK_SH):
            say(f"{holder}: waiting for it ({path})")
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextmanager
def try_exclusive(path: Path) -> Iterator[bool]:
    """Hold a lock for the length of the block if no other process holds it; yield whether it is held."""
    with _open(path) as lock:
        yield _try_lock(lock, fcntl.LOCK_EX)


@contextmanager
def changing(
    file: Path,
    lock: Path | None = None,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], object] = time.sleep,
) -> Iterator[None]:
    """Hold the lock on a file for the length of the block, which reads the file and replaces it; wait for others.

    Args:
        file: what is replaced; its folder is created.
        lock: the lock file; by default a hidden one beside it.
        clock: seconds since any moment.
        pause: waits the seconds it is given.

    Raises:
        RunnerError: the lock file cannot be created, or another process has held it for CHANGE_SECONDS.
    """
    path = lock or file.with_name(f".{file.name}.lock")
    begin = clock()
    with _open(path, "use a folder that you may write to") as stream:
        while not _try_lock(stream, fcntl.LOCK_EX):
            if clock() - begin > CHANGE_SECONDS:
                raise RunnerError(Problem(f"{file} was not changed: another process holds {path}", hint=WAIT_OR_END))
            pause(CHANGE_PAUSE)
        yield


@contextmanager
def hold(path: Path, name: str, refusal: type[RunnerError] = UsageError, hint: str = WAIT_OR_END) -> Iterator[None]:
    """Hold a lock for the length of the block, or fail at once and name the process that holds it.

    Args:
        path: the lock file; its folder must exist.
        name: what the lock protects, for the message.
        refusal: the class of the error if another process holds it.
        hint: what to do then.

    Raises:
        RunnerError: another process holds it; of the class ``refusal``.
        RecordError: the file cannot be opened, or is no regular file.
    """
    try:
        lock_file = _open_regular(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        remedy = None if isinstance(error, PermissionError) else f"remove {path}"
        raise RecordError(Problem(f"{name} cannot be locked: {path}: {error.strerror}", hint=remedy)) from error
    with lock_file as lock:
        if not _try_lock(lock, fcntl.LOCK_EX):
            holder = printable(lock.read(MAX_HOLDER)).strip() or "another runner"
            raise refusal(Problem(f"{name} is in use by {holder}", hint=hint))
        _write(lock, f"process {os.getpid()} on {platform.node()}")
        yield


def is_held(path: Path) -> bool:
    """Return True if a process on this machine holds a lock exclusively; False as well where it cannot be read."""
    try:
        with _open_regular(path, os.O_RDONLY) as lock:
            return not _try_lock(lock, fcntl.LOCK_SH)
    except OSError:
        return False


def _write(lock: TextIO, text: str) -> None:
    """Replace the content of a lock file, which tells others about the process that holds it; not on a full disk."""
    lock.truncate(0)
    with suppress(OSError):  # the lock is held all the same
        os.pwrite(lock.fileno(), text.encode(), 0)


def _open(path: Path, hint: str = "set XDG_CACHE_HOME to a folder that you may write to") -> TextIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _open_regular(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise RunnerError(Problem(f"cannot create the lock {path}: {error.strerror}", hint=hint)) from error
    _close_to_readers(lock)
    return lock


def _close_to_readers(lock: TextIO) -> None:
    """Let nobody read a lock file who may not write it: whoever reads it can hold the lock, and everybody else waits.

    Who shares a cache on purpose, with a group, may write its files.
    """
    status = os.fstat(lock.fileno())
    writers = status.st_mode & 0o222
    mode = writers | writers << 1
    if status.st_mode & 0o444 & ~mode and status.st_uid == os.geteuid():
        with suppress(OSError):
            os.fchmod(lock.fileno(), mode)


def _open_regular(path: Path, flags: int) -> TextIO:
    """Open a lock file; a link is not followed, because what it points to would be emptied.

    Raises:
        OSError: it cannot be opened, or is a link, a folder, a FIFO or a device.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, 0o666)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO, errno.EISDIR}:  # a link, a socket, a folder
            raise OSError(error.errno, NOT_REGULAR, str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, NOT_REGULAR, str(path))
    return os.fdopen(descriptor, "r" if flags == os.O_RDONLY else "r+", encoding="utf-8", errors="replace")


def _try_lock(lock: TextIO, kind: int) -> bool:
    """Take a lock without waiting; return whether it was taken."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
