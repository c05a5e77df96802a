"""The profiles of a run: a file in ``profiles/`` for each cell, checksummed like the other documents.

No line of the journal names them: a profile is no result, and a run that is resumed takes those that are missing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from runner.core.bounds import CellId
from runner.core.errors import RecordError
from runner.core.files import write_whole
from runner.core.model.profiles import StepProfile
from runner.store.damage import reason_of
from runner.store.documents import PROFILE, VERSION, read_sealed, sealed

FOLDER = "profiles"
MAX_PROFILE_BYTES = 1 << 20
"""The largest profile; one of 200 operators has 50 KB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProfile(StepProfile):
    """The profile of a cell, and the version of its framework."""

    cell: CellId
    framework_version: str | None = None


STORED_PROFILE = TypeAdapter(StoredProfile)


def profile_path(run: Path, cell_id: str) -> Path:
    """Return the file of a cell's profile in the folder of a run."""
    return run / FOLDER / f"{cell_id.replace('/', '~')}.json"


def write_profile(run: Path, cell_id: str, profile: Mapping[str, Any]) -> None:
    """Store the profile of a cell; see ``ProfileTaken``. Raises OSError with the path if it cannot be written."""
    path = profile_path(run, cell_id)
    path.parent.mkdir(exist_ok=True)
    write_whole(path, sealed({"version": VERSION, "cell": cell_id, **profile}))


def read_profiles(
    run: Path, cell_ids: Iterable[str], leave_out: Callable[[str], object] = lambda _: None
) -> Iterator[tuple[str, StoredProfile]]:
    """Yield (cell id, profile) of the cells that have one.

    Args:
        run: the folder of the run.
        cell_ids: of the cells.
        leave_out: takes a sentence for each profile that cannot be read, and is not yielded.
    """
    if not (run / FOLDER).is_dir():
        return
    for cell_id in cell_ids:
        path = profile_path(run, cell_id)
        if not path.exists():
            continue
        try:
            profile = read_sealed(path, PROFILE, STORED_PROFILE, MAX_PROFILE_BYTES)
        except RecordError as error:
            leave_out(f"{FOLDER}/{path.name} is left out: {reason_of(error)}")
            continue
        if profile.cell == cell_id:
            yield cell_id, profile
        else:
            leave_out(f"{FOLDER}/{path.name} is left out: it is the profile of {profile.cell!r:.200}")
