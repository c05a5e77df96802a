"""The files of users' networks in a run folder, ``models/<16 digits>/``: what a resumed run measures with.

``<16 digits>.json`` beside the folder of the files has the digest, the name of the entry, and the checksum of each file.
"""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from runner.core.errors import Problem, RecordError
from runner.core.files import read_bounded, write_whole
from runner.core.json import parse_object
from runner.core.model import ModelFiles
from runner.store.checksums import file_checksum, is_unchanged, with_checksum
from runner.store.documents import VERSION, text, unreadable, upgrade

FOLDER = "models"
MAX_BYTES = 16 << 20  # of a file, and of the list
START_NEW = "restore it from a copy, or start a new run"


def write_models(run: Path, models: Iterable[ModelFiles]) -> None:
    """Write the files of networks into the folder of a run.

    Raises:
        OSError: a file cannot be written; it names the file.
    """
    for model in models:
        folder = _folder(run, model.digest)
        for name, content in model.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, content)
        document = {"version": VERSION, "digest": model.digest, "entry": model.entry, "files": model.checksums()}
        write_whole(folder.with_suffix(".json"), with_checksum(text(document)))


def read_models(run: Path, digests: Iterable[str]) -> dict[str, ModelFiles]:
    """Return digest -> the files of a network, as they were written.

    Raises:
        RecordError: a file is missing or was changed.
    """
    return {digest: _read(_folder(run, digest), digest) for digest in dict.fromkeys(digests)}


def _folder(run: Path, digest: str) -> Path:
    return run / FOLDER / digest.removeprefix("sha256:")[:16]


def _read(folder: Path, digest: str) -> ModelFiles:
    path = folder.with_suffix(".json")
    try:
        content = read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise unreadable(path, error) from error
    document = upgrade(parse_object(content, path, 1), path, FOLDER)
    checksums, entry = document.get("files"), document.get("entry")
    if not is_unchanged(content) or not isinstance(checksums, dict) or not isinstance(entry, str):
        raise RecordError(Problem(f"{path} is damaged: it does not agree with its checksum", hint=START_NEW))
    files = {name: _file(folder, str(name), checksum) for name, checksum in checksums.items()}
    model = ModelFiles.of(entry, files)
    if model.digest != digest or entry not in files:
        raise RecordError(Problem(f"{path} is not of the files that the plan names", hint=START_NEW))
    return model


def _file(folder: Path, name: str, checksum: object) -> bytes:
    path, parts = folder / name, PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise RecordError(Problem(f"{folder} names the file {name!r}, which is outside of it", hint=START_NEW))
    try:
        content = read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise RecordError(Problem(f"{path} cannot be read: {error.strerror}", hint=START_NEW)) from error
    if file_checksum(content) != checksum:
        raise RecordError(Problem(f"{path} was changed since the run started", hint=START_NEW))
    return content
