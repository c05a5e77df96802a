"""The locks of the releases that nights followed: ``reports/locks/<environment>/<release>.txt``.

``current.json`` names the lock that nights use now instead of the matrix's. A lock that a person writes with
``runner lock`` counts again from then on, because the content of the matrix's lock is noted, too.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter

from runner.backends.lock_file import LOCK_BYTES
from runner.core.bounds import STRICT
from runner.core.errors import RecordError, RunnerError
from runner.core.files import read_bounded
from runner.core.locks import changing

FOLDER = "locks"
FILE = "current.json"
KIND = "current locks"
"""The kind of the file, see ``documents.UPGRADES``."""
MAX_BYTES = 1 << 20
"""The largest ``current.json`` that is read."""
HINT = "remove it: the next night starts from the locks of the matrix, and uses the newest releases again"

_RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,100}")


@dataclass(frozen=True, slots=True)
class UsedRelease:
    """The release that nights use, and the hash of the matrix's lock at that time; empty without one."""

    __pydantic_config__ = STRICT

    release: str
    instead_of: str


@dataclass(frozen=True, slots=True)
class CurrentLocks:
    """``current.json``: folder of an environment's locks -> its release."""

    __pydantic_config__ = STRICT

    environments: Mapping[str, UsedRelease]


CURRENT_LOCKS = TypeAdapter(CurrentLocks)


def lock_of(reports: Path, folder: str, release: str) -> Path:
    """Return the path of the lock of a release.

    Args:
        reports: the folder that holds the runs.
        folder: what files call the environment, see ``lock_requests.lock_name``.
        release: a version.
    """
    return reports / FOLDER / folder / f"{release}.txt"


def kept_locks(reports: Path, folder: str) -> dict[str, Path]:
    """Return release -> lock, for each release of an environment that nights have built; in no order."""
    paths = (reports / FOLDER / folder).glob("[!.]*.txt")
    return {path.stem: path for path in paths if _RELEASE.fullmatch(path.stem)}


def current_lock(reports: Path, folder: str, matrix_lock: Path | None) -> Path | None:
    """Return the lock that nights use instead of the matrix's; None where they use the matrix's.

    Raises:
        RunnerError: ``current.json`` is damaged.
    """
    stored = _stored(reports).get(folder)
    if stored is None or stored.instead_of != lock_hash(matrix_lock) or not _RELEASE.fullmatch(stored.release):
        return None
    lock = lock_of(reports, folder, stored.release)
    return lock if lock.is_file() else None


def use(reports: Path, folder: str, release: str, matrix_lock: Path | None) -> None:
    """Have nights use the lock of a release instead of the matrix's; an empty release has them use the matrix's.

    Raises:
        RunnerError: ``current.json`` is damaged, or cannot be written.
    """
    from runner.store.documents import newest, save

    path = reports / FOLDER / FILE
    with changing(path):
        stored = {name: of for name, of in _stored(reports).items() if name != folder}
        if release:
            stored[folder] = UsedRelease(release, lock_hash(matrix_lock))
        document = {"version": newest(KIND), **asdict(CurrentLocks(stored))}
        save(path, json.dumps(document, indent=1) + "\n")


def lock_hash(lock: Path | None) -> str:
    """Return the SHA-256 of a lock as hexadecimal digits; empty without one."""
    try:
        return sha256(read_bounded(lock, LOCK_BYTES)).hexdigest() if lock else ""
    except OSError:
        return ""


def _stored(reports: Path) -> Mapping[str, UsedRelease]:
    path = reports / FOLDER / FILE
    if not path.exists():
        return {}
    from runner.store.documents import read_value

    try:
        return read_value(path, KIND, CURRENT_LOCKS, MAX_BYTES, HINT).environments
    except RecordError as error:
        raise RunnerError(*error.problems) from error
