"""Write files atomically, so that they survive a crash or a power cut; read files that others may have made."""

import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from runner.core.unfinished import hidden

CHUNK_BYTES = 1 << 16  # read at a time
SYNC_THREADS = 8
STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")
"""What is here, or below here, is an open stream of a process, even where it leads to a regular file."""


class UnreadableFileError(OSError):
    """A file that ``read_bounded`` refuses; ``strerror`` is the reason, ``filename`` the path."""


def read_bounded(path: Path | str, limit: int) -> bytes:
    """Return the content of a regular file that is not larger than a limit; links are followed.

    Nothing else is ever read: a FIFO without a writer would wait for ever, and a device has no end.

    Args:
        path: the file.
        limit: the largest size, in bytes.

    Raises:
        UnreadableFileError: the path is a folder, a device, a FIFO or a socket, or the file is larger than the limit.
        OSError: the system cannot open or read it; also for a path that no file can have.
    """
    descriptor = _open(path)
    try:
        return _read_regular(descriptor, path, limit)
    finally:
        os.close(descriptor)


def read_line(path: Path) -> str:
    """Return the text of a file of one line, such as those of the kernel; empty if it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def read_private(path: Path | str, limit: int) -> bytes:
    """Return the content of a file that only this user may read; else as ``read_bounded``.

    Raises:
        UnreadableFileError: also where the file belongs to another user, or its mode lets others read or write it.
    """
    descriptor = _open(path)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid():
            raise UnreadableFileError(errno.EPERM, "it belongs to another user", str(path))
        if status.st_mode & 0o077 and stat.S_ISREG(status.st_mode):
            mode = f"its mode is {stat.S_IMODE(status.st_mode):04o}, so that others may use it"
            raise UnreadableFileError(errno.EPERM, mode, str(path))
        return _read_regular(descriptor, path, limit)
    finally:
        os.close(descriptor)


def _open(path: Path | str) -> int:
    """Return a descriptor for reading; nothing waits for a writer."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except ValueError as error:  # a NUL, or a letter that the file system's encoding lacks
        raise UnreadableFileError(errno.EINVAL, str(error), ascii(str(path))) from error
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a device without a driver
            raise UnreadableFileError(errno.ENXIO, "it is not a regular file", str(path)) from error
        raise


def _read_regular(descriptor: int, path: Path | str, limit: int) -> bytes:
    """Return what an open file has up to its end: files in /proc have size 0, and others may grow meanwhile."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        kind = "it is a folder" if stat.S_ISDIR(status.st_mode) else "it is not a regular file"
        raise UnreadableFileError(errno.EINVAL, kind, str(path))
    if status.st_size > limit:
        raise UnreadableFileError(errno.EFBIG, _too_large(limit), str(path))
    content = os.read(descriptor, status.st_size + 1)
    if len(content) == status.st_size > 0:
        return content
    chunks = [content]
    size = len(content)
    while chunks[-1]:
        if size > limit:
            raise UnreadableFileError(errno.EFBIG, _too_large(limit), str(path))
        chunks.append(os.read(descriptor, CHUNK_BYTES))
        size += len(chunks[-1])
    return b"".join(chunks)


def _too_large(limit: int) -> str:
    return f"it is larger than {limit:,} bytes"


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file so that a reader sees either the old content or the new.

    The data is written to a hidden file in the same folder and synced to the disk, then the file is renamed. The folder
    must exist; a link at ``path`` is replaced, not followed. A device, a FIFO or a socket is never replaced.

    Args:
        path: the file to create or to replace.
        data: the content; text is written as UTF-8, its line ends unchanged, and lone surrogates as their escapes.

    Raises:
        OSError: it cannot be written; ``filename`` is ``path``.
    """
    content = data.encode(errors="backslashreplace") if isinstance(data, str) else data
    write_all([(path, content)])


def write_all(files: Iterable[tuple[Path, bytes]]) -> None:
    """Write files as ``write_whole`` does; the disk syncs several of them at a time, which takes much less time.

    Args:
        files: path and content of each. Where one cannot be written, those before it may be.

    Raises:
        OSError: one cannot be written; ``filename`` is its path.
    """
    temporary: dict[Path, Path] = {}
    path = Path()
    try:
        for path, content in files:
            _refuse_special(path)
            temporary[path] = hidden(path)
            with temporary[path].open("xb") as stream:
                stream.write(content)
        synced = _synced(temporary.values())
        for path, written in temporary.items():
            next(synced)
            written.replace(path)
        for folder in {path.parent for path in temporary}:
            _sync(folder)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        for written in temporary.values():
            written.unlink(missing_ok=True)


def _synced(paths: Collection[Path]) -> Iterator[None]:
    """Sync files to the disk; yields after each, in their order."""
    if len(paths) == 1:
        yield from map(_sync, paths)
        return
    from concurrent.futures import ThreadPoolExecutor  # most commands never need it

    with ThreadPoolExecutor(SYNC_THREADS) as threads:
        yield from threads.map(_sync, paths)


def append_text(path: Path, content: str) -> None:
    """Append to a file; a link is not followed, and a FIFO without a reader is an error instead of a wait.

    Raises:
        OSError: it cannot be written; ``filename`` is ``path``.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o666)
    try:
        with os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(content)
    except OSError as error:
        error.filename = str(path)
        raise


def write_output(path: Path, data: bytes | str) -> None:
    """Write a result to the path that a user chose.

    A link is followed, and the file behind it is replaced as by ``write_whole``. What is not a regular file stays what
    it is, and gets the data: a device, a FIFO (opening it waits for a reader), or a stream such as ``/dev/stdout``.

    Args:
        path: a file, or where one is to be created.
        data: the content, as in ``write_whole``.

    Raises:
        OSError: it cannot be written; ``filename`` is ``path``.
    """
    try:
        if _is_regular_or_missing(path):
            write_whole(Path(os.path.realpath(path)), data)
        else:
            content = data.encode(errors="backslashreplace") if isinstance(data, str) else data
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC), "wb") as stream:
                stream.write(content)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def _is_regular_or_missing(path: Path) -> bool:
    """Return whether a path, its links followed, is a regular file or nothing, and no stream of a process."""
    if str(path.absolute()).startswith(STREAMS) and path.exists():
        return False
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True


def _refuse_special(path: Path) -> None:
    """Raise FileExistsError for a device, a FIFO or a socket."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        raise FileExistsError(errno.EEXIST, "it is a device, a FIFO or a socket, and not replaced by a file")


def _sync(path: Path) -> None:
    """Wait until a file or a folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
