"""Which environments that follow a package have a lock that is older than the newest release.

The index is asked once a day and for a second at most: what has not answered by then is asked again on the next day, or
answers while the command goes on. Nothing is asked where a variable of ``OFFLINE`` is set.
"""

import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from packaging.requirements import Requirement
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from runner.core.architectures import Architecture
from runner.core.errors import RunnerError
from runner.core.files import read_bounded, write_whole
from runner.core.model import Device
from runner.core.model.variant_ids import without_variant
from runner.core.paths import cache_folder
from runner.matrix import Matrix, load
from runner.matrix.environments import package_name
from runner.releases.followed import Followed, followed_environments, release_in
from runner.releases.release_files import files_of, is_for, is_for_linux

OFFLINE = ("MATRIX_RUNNER_OFFLINE", "UV_OFFLINE", "PIP_NO_INDEX")
"""Variables with which no index is asked; those of uv and pip count, too."""
FILE = "newest-releases.json"
"""Of the cache: what the index answered."""
SECONDS = 1.0
"""How long a command waits for the index."""
KEPT = timedelta(days=1)
MAX_BYTES = 1 << 20

_writing = threading.Lock()


class _Answer(msgspec.Struct):
    requested: datetime
    release: str
    """Empty where the index did not answer."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What the newest release of a package is.

    Attributes:
        requirement: the package, and the releases that count, such as ``torch>=2,<3``.
        python: the minor version of Python that it needs a wheel for.
        architecture: what it needs a wheel for.
    """

    requirement: str
    python: str
    architecture: Architecture

    @property
    def key(self) -> str:
        """What the file of answers calls it."""
        return f"{self.requirement}, Python {self.python}, {self.architecture}"


def outdated_notes(
    matrix: Matrix,
    names: Sequence[str],
    device: Device,
    folder: Path,
    reports: Path,
    environ: Mapping[str, str] = os.environ,
) -> list[str]:
    """Return a sentence for each environment whose lock is older than the newest release that it follows.

    Args:
        matrix: the checked matrix.
        names: ids of environments; those that the matrix does not have follow nothing.
        device: whose locks count.
        folder: that of the matrix file.
        reports: the folder that holds the runs.
        environ: names the index and the cache.
    """
    known = [name for name in names if without_variant(name) in matrix.environments]
    followed: tuple[Followed, ...] = ()
    with suppress(RunnerError):  # the next night says what is damaged
        followed = followed_environments(matrix, known, device, folder, reports)
    questions = {each: _question(each) for each in followed if each.matrix_lock is not None}
    if not questions:
        return []
    newest = _newest_releases(list(dict.fromkeys(questions.values())), cache_folder(environ) / FILE, environ)
    notes = (_note(matrix, each, device, newest.get(question, "")) for each, question in questions.items())
    return list(filter(None, notes))


def outdated_notes_of_file(path: Path, names: Sequence[str], device: Device, reports: Path) -> list[str]:
    """Return what ``outdated_notes`` does, for the environments of a matrix file."""
    return outdated_notes(load(path, networks=False), names, device, path.parent, reports)


def _question(followed: Followed) -> _Question:
    text = next(each for each in followed.request.requirements if package_name(each) == followed.package)
    request = followed.request
    return _Question(f"{followed.package}{Requirement(text).specifier}", request.python, request.architecture)


def _note(matrix: Matrix, followed: Followed, device: Device, newest: str) -> str:
    """Return the sentence about an environment; empty if its lock has the newest release, or nobody knows."""
    locked = release_in(followed.matrix_lock, followed.package)
    if not locked or not newest or Version(Version(locked).public) >= Version(newest):
        return ""
    environment = matrix.environments[followed.environment]
    variant = environment.variant(device)
    texts = variant.requirements if variant is not None else ()
    is_allowed = any(package_name(each) == followed.package and newest in Requirement(each).specifier for each in texts)
    todo = f"runner lock {followed.environment}" if is_allowed else f"runner plan {environment.framework}=={newest}"
    return f"{followed.environment} is locked at {Version(locked).public}; {newest} is out: `{todo}`"


def _newest_releases(questions: Sequence[_Question], file: Path, environ: Mapping[str, str]) -> Mapping[_Question, str]:
    """Return the newest release for each question that the index answered today, or answers now."""
    now, known = datetime.now(UTC), _read(file)
    missing = [each for each in questions if each.key not in known or now - known[each.key].requested >= KEPT]
    if missing and not any(map(environ.get, OFFLINE)):
        _keep(file, {each.key: _Answer(now, known[each.key].release if each.key in known else "") for each in missing})
        threads = [threading.Thread(target=_ask, args=(each, file, environ), daemon=True) for each in missing]
        end = time.monotonic() + SECONDS
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        with _writing:
            known = _read(file)
    return {each: known[each.key].release for each in questions if each.key in known}


def _ask(question: _Question, file: Path, environ: Mapping[str, str]) -> None:
    """Ask the index, and keep its answer, if it has one."""
    requirement = Requirement(question.requirement)
    versions: list[Version] = []
    for each in files_of(requirement.name, environ):
        with suppress(InvalidWheelFilename):
            _, version, _, tags = parse_wheel_filename(each.filename)
            if not each.yanked and is_for(each, question.python) and _fits(tags, question):
                versions.append(version)
    newest = max(requirement.specifier.filter(versions, prereleases=False), default=None)
    if newest is not None:
        _keep(file, {question.key: _Answer(datetime.now(UTC), newest.public)})


def _fits(tags: frozenset[Tag], question: _Question) -> bool:
    """Return whether a wheel with these tags is for the architecture and the Python of a question."""
    number = question.python.replace(".", "")
    return any(
        is_for_linux(tag, question.architecture)
        and (tag.interpreter in {f"cp{number}", f"py{number[0]}"} or tag.abi == "abi3")
        for tag in tags
    )


def _keep(file: Path, answers: Mapping[str, _Answer]) -> None:
    """Add answers to the file; one that cannot be written is asked again."""
    with _writing, suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, msgspec.json.encode({**_read(file), **answers}))


def _read(file: Path) -> dict[str, _Answer]:
    """Return what the index answered; nothing where the file is missing or damaged."""
    try:
        return msgspec.json.decode(read_bounded(file, MAX_BYTES), type=dict[str, _Answer])
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}
