"""Releases that the command line names join the matrix, with the locks that are kept for them in the cache."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from packaging.requirements import Requirement

from runner.core.errors import ProvisionError
from runner.core.model import Device
from runner.matrix import Matrix
from runner.releases.candidates import ReleaseCandidate, lock_request_of
from runner.releases.index import Lister
from runner.releases.lock import lock_release
from runner.releases.lock_requests import LockRequest
from runner.releases.named import ReleaseFinder, parse_named, split_selector
from runner.releases.upload_dates import as_of

FOLDER = "releases"
"""Of the cache: the lock of each release that was named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedReleases:
    """What named releases make of a matrix.

    Attributes:
        matrix: with an environment for each.
        selectors: with the ids of these.
        locks: id -> the lock of an environment that the matrix file does not have.
        notes: sentences that the user should read first.
    """

    matrix: Matrix
    selectors: tuple[str, ...]
    locks: dict[str, Path]
    notes: tuple[str, ...] = ()


def with_named_releases(
    matrix: Matrix, selectors: tuple[str, ...], device: Device, folder: Path, cache: Path, versions: Lister
) -> NamedReleases:
    """Return the matrix with the releases that selectors name, each locked.

    A release keeps the lock that it was first given, so that it is the same environment on another day.

    Args:
        matrix: the checked matrix.
        selectors: as they were typed: ``torch==2.9.1``, ``torch==2.9.1@env:TF32=0/nn-lstm/*``, or of other forms.
        device: ``cpu`` or ``cuda``.
        folder: that of the matrix file.
        cache: the folder that keeps locks.
        versions: lists the versions of a package.

    Raises:
        NothingSelectedError: there is no such release.
        ProvisionError: the index does not answer, or the release cannot be resolved.
    """
    finder = ReleaseFinder(matrix=matrix, folder=folder, device=device, versions=versions)
    environments, locks, notes, words = dict(matrix.environments), dict[str, Path](), list[str](), list[str]()
    for selector in selectors:
        mark, name, rest = split_selector(selector)
        named = parse_named(name)
        if named is None:
            words.append(selector)
            continue
        candidate = finder.find(named)
        if candidate.source == "index" and candidate.name not in environments:
            lock, made = _locked(candidate, device, cache / FOLDER)
            environments[candidate.name], locks[candidate.name] = candidate.environment, lock
            notes += made
        words.append(f"{mark}{candidate.name}{rest}")
    if locks:
        matrix = matrix.with_environments(environments, {}, {})
    return NamedReleases(matrix=matrix, selectors=tuple(words), locks=locks, notes=tuple(notes))


def _locked(candidate: ReleaseCandidate, device: Device, folder: Path) -> tuple[Path, list[str]]:
    """Return the lock of a new environment, which is made unless it is kept, and what there is to say about it."""
    request = lock_request_of(candidate, device, folder / candidate.name)
    path = folder / f"{candidate.name}-{_digest(request)}.txt"
    if path.is_file():
        return path, [f"{candidate.name}: like {candidate.template}, with the lock {path}"]
    folder.mkdir(parents=True, exist_ok=True)
    package, _, version = request.requirements[0].partition("==")
    day = None if request.index else as_of(Requirement(package).name, version, datetime.now(UTC).date())
    notes = [*_resolved(replace(request, out=path, as_of=day))]
    return path, [*notes, f"{candidate.name}: like {candidate.template}, locked in {path}"]


def _resolved(request: LockRequest) -> Iterator[str]:
    """Write a lock; without the extra index where that does not answer, and with today's packages if need be.

    Yields:
        A sentence for each of the two.
    """
    try:
        lock_release(request)
    except ProvisionError as error:
        if error.passing and request.index:
            yield f"{request.name}: {request.index} does not answer: its packages are those of the default index"
            yield from _resolved(replace(request, index=None))
        elif not error.passing and request.as_of:
            yield f"{request.name}: cannot be resolved with the packages of {request.as_of}, and has those of today"
            yield from _resolved(replace(request, as_of=None))
        else:
            raise


def _digest(request: LockRequest) -> str:
    """Return what tells apart requests of one name: other requirements, another Python, another platform."""
    parts = (request.requirements, request.python, request.index, request.find_links, request.platform)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
