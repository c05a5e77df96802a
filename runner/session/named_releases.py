"""Releases that the command line names join the matrix, with the locks that are kept for them in the cache."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from packaging.requirements import Requirement

from runner.core.errors import ProvisionError
from runner.core.model import Device
from runner.matrix import Matrix
from runner.releases import index
from runner.releases.candidates import ReleaseCandidate, lock_request_of
from runner.releases.index import Lister
from runner.releases.lock import lock_release
from runner.releases.lock_check import is_of_release
from runner.releases.lock_requests import LockRequest
from runner.releases.named import parse_named, refuse_taken, split_selector
from runner.releases.named_environments import ReleaseFinder
from runner.releases.upload_dates import as_of
from runner.session.options import Options

FOLDER = "releases"
"""Of the cache: the lock of each release that was named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedReleases:
    """What named releases make of a matrix.

    Attributes:
        matrix: with an environment for each.
        options: the selectors have the ids of these.
        locks: id -> the lock of an environment that the matrix file does not have.
        notes: sentences that the user should read first.
    """

    matrix: Matrix
    options: Options
    locks: Mapping[str, Path] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def with_named_releases(
    matrix: Matrix, options: Options, device: Device, cache: Path, versions: Lister = index.versions
) -> NamedReleases:
    """Return the matrix with the releases that selectors name, each locked.

    A release keeps the lock that it was first given, so that it is the same environment on another day.

    Args:
        matrix: the checked matrix.
        options: what was typed; selectors may be ``torch==2.9.1``, or ``torch==2.9.1@env:TF32=0/nn-lstm/*``.
        device: ``cpu`` or ``cuda``.
        cache: the folder that keeps locks.
        versions: lists the versions of a package.

    Raises:
        NothingSelectedError: there is no such release.
        UsageError: the matrix has another environment of that name.
        ProvisionError: the index does not answer, or the release cannot be resolved.
    """
    finder = ReleaseFinder(matrix=matrix, folder=options.matrix_file.parent, device=device, versions=versions)
    locks = KeptLocks(folder=cache / FOLDER, device=device)
    environments, kept, notes, words = dict(matrix.environments), dict[str, Path](), list[str](), list[str]()
    for selector in options.selectors or ():
        mark, name, rest = split_selector(selector)
        named = parse_named(name)
        if named is None:
            words.append(selector)
            continue
        candidate = next(filter(locks.has, finder.possible(named)), None) or finder.find(named)
        if candidate.source == "index" and candidate.name not in kept:
            refuse_taken(matrix, named, device)
            notes += locks.add(candidate)
            environments[candidate.name], kept[candidate.name] = candidate.environment, locks.path(candidate)
        words.append(f"{mark}{candidate.name}{rest}")
    if kept:
        matrix = matrix.with_environments(environments, {}, {})
    options = replace(options, selectors=words or None)
    return NamedReleases(matrix=matrix, options=options, locks=kept, notes=tuple(notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLocks:
    """The locks that are kept for releases.

    Attributes:
        folder: holds them.
        device: of the environments.
    """

    folder: Path
    device: Device

    def path(self, candidate: ReleaseCandidate) -> Path:
        """Return the path of a release's lock; it names what was asked for, and the rest by a digest."""
        request = self._request(candidate)
        parts = (request.requirements, request.python, request.index, request.find_links, request.platform)
        return self.folder / f"{candidate.name}-{sha256(json.dumps(parts).encode()).hexdigest()[:12]}.txt"

    def has(self, candidate: ReleaseCandidate) -> bool:
        """Return whether a candidate needs no lock to be made: it is of the matrix, or its lock is kept."""
        return candidate.source == "matrix" or is_of_release(self.path(candidate), self._request(candidate))

    def add(self, candidate: ReleaseCandidate) -> list[str]:
        """Make the lock of a release, unless it is kept, and return what there is to say about it.

        Raises:
            ProvisionError: the index does not answer, or the release cannot be resolved.
        """
        path = self.path(candidate)
        request = self._request(candidate)
        if is_of_release(path, request):
            return [f"{candidate.name}: like {candidate.template}, with the lock {path}"]
        package, _, version = request.requirements[0].partition("==")
        day = None if request.index else as_of(Requirement(package).name, version, datetime.now(UTC).date())
        self.folder.mkdir(parents=True, exist_ok=True)
        notes = [*_resolved(replace(request, out=path, as_of=day))]
        return [*notes, f"{candidate.name}: like {candidate.template}, locked in {path}"]

    def _request(self, candidate: ReleaseCandidate) -> LockRequest:
        return lock_request_of(candidate, self.device, self.folder / candidate.name)


def _resolved(request: LockRequest) -> Iterator[str]:
    """Write a lock; without the extra index where that does not answer, and with today's packages if need be.

    Yields:
        A sentence for each of the two.
    """
    try:
        lock_release(request)
    except ProvisionError as error:
        if error.passing and request.index:
            rest = "its packages are those of the default index, which may hold CUDA, and some GB to download"
            yield f"{request.name}: {request.index} does not answer: {rest}"
            yield from _resolved(replace(request, index=None))
        elif not error.passing and request.as_of:
            yield f"{request.name}: cannot be resolved with the packages of {request.as_of}, and has those of today"
            yield from _resolved(replace(request, as_of=None))
        else:
            raise
