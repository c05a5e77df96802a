"""A second build of a release from the same lock: an image, or a virtual environment, of its own."""

from dataclasses import replace
from pathlib import Path

from runner.core.errors import Problem, ProvisionError
from runner.core.files import read_bounded, write_whole
from runner.core.model import Device
from runner.releases.candidates import ReleaseCandidate

SUFFIX = "-rebuilt"
MAX_LOCK_BYTES = 16 << 20
COMMENT = b"# built a second time\n"
"""Makes the content of the lock another one, so that nothing of the first build is taken from a cache."""


def rebuilt_name(name: str) -> str:
    """Return the name of the second build of a candidate."""
    return name + SUFFIX


def rebuilt(candidate: ReleaseCandidate) -> ReleaseCandidate:
    """Return the second build of a candidate; it is removed at the end, as those of the index are."""
    return replace(candidate, name=rebuilt_name(candidate.name), source="index")


def is_rebuilt(candidate: ReleaseCandidate) -> bool:
    """Return whether a candidate is a second build."""
    return candidate.name.endswith(SUFFIX)


def lock_again(candidate: ReleaseCandidate, locks: Path, folder: Path, device: Device, target: Path) -> None:
    """Write the lock of a second build.

    Args:
        candidate: the second build.
        locks: the folder with the locks of the search.
        folder: the folder of the matrix.
        device: what is measured.
        target: where the lock goes.

    Raises:
        ProvisionError: the release is an image, or its lock cannot be read.
    """
    of_search = locks / f"{candidate.name.removesuffix(SUFFIX)}.txt"
    variant = candidate.environment.variant(device)
    source = of_search if of_search.exists() else folder / variant.lock if variant and variant.lock else None
    if source is None:
        raise ProvisionError("lock", Problem("it is an image without a lock, so it cannot be built a second time"))
    try:
        write_whole(target, COMMENT + read_bounded(source, MAX_LOCK_BYTES))
    except OSError as error:
        raise ProvisionError("lock", Problem(f"{source} cannot be copied: {error}")) from error
