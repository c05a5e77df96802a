"""The files that a run depends on, packed for other hosts: the matrix, Dockerfiles, pins, locks and users' networks."""

import io
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from runner.core.architectures import USUAL
from runner.core.errors import Problem, RecordError, UsageError
from runner.core.files import read_bounded
from runner.core.model import ModelFiles
from runner.matrix import Matrix, load

MATRIX = "matrix.yaml"
RELEASES = "releases"
"""The folder with the locks of the releases that the command line names."""
MAX_FILES = 2_000
MAX_BYTES = 64 << 20
"""Of all files together, unpacked."""
_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip archive holds: equal files give equal archives


def pack(matrix_file: Path, locks: Sequence[Path] = ()) -> bytes:
    """Return a zip archive with a matrix file and the files that it names or that its environments are built from.

    The archive depends on nothing but the names and the contents of the files.

    Args:
        matrix_file: the matrix file.
        locks: those of named releases.

    Raises:
        MatrixError: the matrix is not valid.
        UsageError: a file cannot be read, or the files are too large together.
    """
    folder, out, total = matrix_file.parent, io.BytesIO(), 0
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        files = {MATRIX: matrix_file, **{f"{RELEASES}/{lock.name}": lock for lock in locks}}
        for name, path in sorted({**files, **dict(_files(load(matrix_file, architecture=USUAL), folder))}.items()):
            try:
                content = read_bounded(path, MAX_BYTES)
            except OSError as error:
                message = f"{path} cannot be sent to other hosts: {error.strerror or error}"
                raise UsageError(Problem(message)) from error
            total += len(content)
            if total > MAX_BYTES:
                message = f"the files of {matrix_file} have more than {MAX_BYTES >> 20} MiB together, with {path}"
                raise UsageError(Problem(message, hint="remove files from its docker folder that no build uses"))
            archive.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _files(matrix: Matrix, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (name in the archive, path) of Dockerfiles, pins, the locks of all environments, and users' networks."""
    for path in sorted((folder / "docker").glob("*")):
        if path.is_file():
            yield f"docker/{path.name}", path
    for environment in matrix.environments.values():
        builds = (build for variant in environment.all_variants().values() for build in variant.builds)
        for lock in filter(None, (build.lock for build in builds)):
            if (folder / lock).is_file():
                yield PurePosixPath(lock).as_posix(), folder / lock
    for network in matrix.networks.values():
        below = network.path.parent.relative_to(folder)
        yield from ((f"{(below / name).as_posix()}", folder / below / name) for name in network.files.files)


def models(matrix: Matrix) -> dict[str, ModelFiles]:
    """Return digest -> the files of each network of a matrix."""
    return {network.files.digest: network.files for network in matrix.networks.values()}


def unpack(content: bytes, folder: Path) -> Path:
    """Write the files of an archive below a folder that is empty; return the path of the matrix file.

    Raises:
        RecordError: it is no archive, is too large, or has a name that leads out of the folder.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if len(entries) > MAX_FILES or sum(entry.file_size for entry in entries) > MAX_BYTES:
                raise RecordError(Problem("the files of the run are too many or too large"))
            for entry in entries:
                _write(folder, entry.filename, archive.read(entry))
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise RecordError(Problem(f"the files of the run cannot be unpacked: {error}")) from error
    return folder / MATRIX


def _write(folder: Path, name: str, content: bytes) -> None:
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise RecordError(Problem(f"{name!r} leads out of the folder of the run"))
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as stream:
        stream.write(content)
