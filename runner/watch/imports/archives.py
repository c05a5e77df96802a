"""Copy the run folders of another machine: from a folder, or from a ``.tar.gz`` of one.

Only files that a run folder has are copied, by their names; everything else in an archive or a folder is left out:
links, devices, pages, paths that lead elsewhere. What is copied is bounded in number and size, however small the
archive is. The runs that confirmed the changes of a night stay there; the night has their verdicts.
"""

import gzip
import os
import re
import stat
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from runner.core.errors import FILE_HINTS, Problem, RecordError, file_problem
from runner.core.files import read_bounded
from runner.store.documents import unreadable
from runner.watch.imports.figures import damaged

MAX_FILES = 1_000_000
"""Files of all runs of an import."""
MAX_BYTES = 8 << 30
"""Bytes of all files of an import, unpacked."""
MAX_FILE_BYTES = 256 << 20
"""Bytes of a file; as ``store.documents`` reads."""

RUN_FILE = re.compile(
    r"(?:plan|cases|machine|environments)\.json|journal\.jsonl"
    r"|records/[A-Za-z0-9_.+@=~-]{1,250}\.json|logs/[A-Za-z0-9_.+@=~-]{1,250}\.log"
)
"""The files of a run folder, without those that the program writes again."""
RUN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{4,8}")
MAX_NAME = 1024
"""Letters of the name of a member; reading longer ones would take minutes."""
READ_AT_ONCE = 1 << 20


@dataclass(slots=True)
class Budget:
    """What an import may still copy."""

    files: int = MAX_FILES
    bytes: int = MAX_BYTES

    def take(self, size: int, name: str) -> None:
        """Count a file.

        Raises:
            RecordError: it is one too many, or too large.
        """
        self.files -= 1
        self.bytes -= size
        if self.files < 0 or self.bytes < 0 or size > MAX_FILE_BYTES:
            limits = f"{MAX_FILES:,} files, {MAX_BYTES:,} bytes, and {MAX_FILE_BYTES:,} bytes of a file"
            raise RecordError(Problem(f"{name} was not imported: it is beyond the limits of {limits}"))


def is_archive(path: Path) -> bool:
    """Return whether a regular file starts as gzip does."""
    try:
        if not path.is_file():  # a FIFO would wait for its writer
            return False
        with path.open("rb") as stream:
            return stream.read(2) == b"\x1f\x8b"
    except OSError:
        return False


def runs_in_folder(folder: Path) -> list[Path]:
    """Return the run folders in a folder: itself, or those of a reports folder."""
    if (folder / "plan.json").is_file():
        return [folder]
    with suppress(OSError):
        return sorted(path.parent for path in (folder / "runs").glob("[!.]*/plan.json"))
    return []


def copy_run(run: Path, target: Path, budget: Budget) -> None:
    """Copy the files of a run folder to ``target/runs/RUN``, and its night to ``target/nights``.

    Raises:
        RecordError: a file cannot be read or written, or the run is too large.
    """
    night = run.parent.parent / "nights" / f"{run.name}.json"
    files = [(path, f"runs/{run.name}/{path.relative_to(run).as_posix()}") for path in _run_files(run)]
    for path, name in [*files, *([(night, f"nights/{night.name}")] if night.is_file() else [])]:
        try:
            content = read_bounded(path, MAX_FILE_BYTES)
        except OSError as error:
            raise unreadable(path, error) from error
        budget.take(len(content), str(path))
        _write(target / name, content)


def _run_files(run: Path) -> Iterator[Path]:
    for folder in (run, run / "records", run / "logs"):
        with suppress(OSError):
            for path in sorted(folder.iterdir()):
                if RUN_FILE.fullmatch(path.relative_to(run).as_posix()) and stat.S_ISREG(path.lstat().st_mode):
                    yield path


class _BoundedGzip(gzip.GzipFile):
    """An archive that is never unpacked beyond the limits, whatever sizes its members have."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= MAX_FILE_BYTES + tarfile.BLOCKSIZE or self.tell() > MAX_BYTES:
            raise tarfile.ReadError("a member is too large")
        return super().read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if offset > MAX_BYTES:
            raise tarfile.ReadError("it is too large")
        return super().seek(offset, whence)


def unpack(archive: Path, target: Path, budget: Budget) -> int:
    """Unpack the runs of a ``.tar.gz`` into ``target/runs/RUN``, and their nights into ``target/nights``.

    Returns:
        How many members were left out: links, and files that no run folder has.

    Raises:
        RecordError: it is damaged, or too large.
    """
    left_out = 0
    if not archive.is_file():
        raise damaged(archive, "there is no such file")
    try:
        with _BoundedGzip(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as members:
            while (member := members.next()) is not None:
                vars(members)["members"] = []  # it would keep all of them
                name = _name(member)
                if name is None:
                    left_out += not member.isdir()
                    continue
                budget.take(member.size, f"{archive}: {name}")
                _write(target / name, _content(members, member))
            while stream.read(READ_AT_ONCE):  # up to the checksum behind the last member
                pass
    except FileExistsError as error:
        raise damaged(archive, f"it has {Path(error.filename).name} twice") from error
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno in FILE_HINTS:  # of this machine, and not of the archive
            raise RecordError(file_problem(error, target)) from error
        raise damaged(archive, f"it is no complete .tar.gz: {error}") from error
    return left_out


def _content(members: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = members.extractfile(member)
    data = stream.read(member.size) if stream else b""
    if len(data) != member.size:
        raise EOFError("it ends within a file")
    return data


def _name(member: tarfile.TarInfo) -> str | None:
    """Return ``runs/RUN/FILE`` or ``nights/RUN.json`` of a file of a run or a night; None for every other member."""
    if not member.isreg() or len(member.name) > MAX_NAME:
        return None
    parts = PurePosixPath(member.name).parts
    if ".." in parts:
        return None
    if parts[-2:-1] == ("nights",) and RUN_ID.fullmatch(parts[-1].removesuffix(".json")):
        return f"nights/{parts[-1]}"
    for index in range(max(len(parts) - 3, 0), len(parts)):  # a file of a run lies in its folder, or one below that
        part, rest = parts[index], "/".join(parts[index + 1 :])
        if RUN_ID.fullmatch(part) and RUN_FILE.fullmatch(rest):
            return None if "nights" in parts[:index] else f"runs/{part}/{rest}"
    return None


def _write(path: Path, content: bytes) -> None:
    try:
        stream = path.open("xb")
    except FileNotFoundError:  # of its folder, this is the first file
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("xb")
    with stream:
        stream.write(content)
