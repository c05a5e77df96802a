"""The locks of releases: how they are made, and those that are kept for the releases that the command line names."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from packaging.requirements import Requirement

from runner.backends.lock_file import read_lock
from runner.core.errors import ProvisionError
from runner.core.model import Device
from runner.releases import nightly_builds
from runner.releases.candidates import ReleaseCandidate, lock_request_of, without_pin
from runner.releases.followed import release_in
from runner.releases.lock import LockResult, lock
from runner.releases.lock_check import is_of_release
from runner.releases.lock_requests import LockRequest
from runner.releases.named import FRAMEWORK_OF, NamedRelease
from runner.releases.release_files import as_of
from runner.releases.silent_indexes import answers

FOLDER = "releases"
"""Of the cache: the lock of each release that was named."""


def lock_release(request: LockRequest) -> LockResult:
    """Lock an environment whose first requirement is one release of a package.

    Where there is no solution, the exact versions of its other requirements are given up, but for those that were named
    with the release. Where these contradict what a package requires, they count instead, one of them if that is enough.
    Raises as ``lock`` does, with the first reason.
    """
    release, *others = request.requirements
    loose = (release, *(text if text in request.exact else without_pin(text) for text in others))
    overrides = dict.fromkeys(((), *((text,) for text in request.exact), request.exact))
    first: ProvisionError | None = None
    for each in overrides:
        for requirements in dict.fromkeys((request.requirements, loose)):
            try:
                return lock(replace(request, requirements=requirements, overrides=each))
            except ProvisionError as error:
                if error.passing:
                    raise
                first = first or error
    assert first is not None
    raise first


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLocks:
    """The locks that are kept for releases.

    Attributes:
        folder: holds them.
        device: of the environments.
        received: holds those that another host has sent, which count instead; None without any.
    """

    folder: Path
    device: Device
    received: Path | None = None

    def path(self, candidate: ReleaseCandidate) -> Path:
        """Return the path of a release's lock; it names what was asked for, and the rest by a digest."""
        request = self._request(candidate)
        parts = (request.requirements, request.python, request.index, request.find_links, request.platform)
        name = f"{candidate.name}-{sha256(json.dumps(parts).encode()).hexdigest()[:12]}.txt"
        received = self.received and self.received / name
        return received if received and received.is_file() else self.folder / name

    def has(self, candidate: ReleaseCandidate) -> bool:
        """Return whether a candidate needs no lock to be made: it is of the matrix, or its lock is kept."""
        return candidate.source == "matrix" or is_of_release(self.path(candidate), self._request(candidate))

    def dated(self, named: NamedRelease) -> NamedRelease:
        """Return a nightly build with the version that it was found to have; as it is where no lock of it is kept."""
        if not named.day or named.version:
            return named
        packages = [package for package, framework in FRAMEWORK_OF.items() if framework == named.framework]
        folders = filter(None, (self.received, self.folder))
        for path in (path for folder in folders for path in sorted(folder.glob(f"{named.id}-*.txt"))):
            for version in filter(None, (release_in(path, package) for package in packages)):
                if nightly_builds.day_of(version) == named.day:
                    return replace(named, version=version.partition("+")[0])
        return named

    def add(self, candidate: ReleaseCandidate, *, renew: bool = False) -> list[str]:
        """Make the lock of a release, unless it is kept, and return what there is to say about it.

        Args:
            candidate: a release of the index.
            renew: make it again where it is kept; the kept one stays where that fails.

        Raises:
            ProvisionError: the index does not answer, or the release cannot be resolved.
        """
        path = self.path(candidate)
        is_kept = self.has(candidate)
        if is_kept and not renew:
            return [f"{_named(candidate)} with the lock {path}", *_overridden(candidate, path)]
        self.folder.mkdir(parents=True, exist_ok=True)
        before = path.read_bytes() if is_kept else b""
        notes = [*lock_of_its_time(replace(self._request(candidate), out=path))]
        what = "locked" if not before else "locked again" if path.read_bytes() != before else "its lock is as before,"
        return [*notes, f"{_named(candidate)} {what} in {path}", *_overridden(candidate, path)]

    def _request(self, candidate: ReleaseCandidate) -> LockRequest:
        return lock_request_of(candidate, self.device, self.folder / candidate.name)


def _named(candidate: ReleaseCandidate) -> str:
    """Return how a sentence about a release begins: with what it is made from, unless it is of the matrix itself."""
    is_of_matrix = candidate.template == candidate.name
    return f"{candidate.name}:" if is_of_matrix else f"{candidate.name}: like {candidate.template},"


def _overridden(candidate: ReleaseCandidate, path: Path) -> Iterator[str]:
    """Yield a sentence where a lock has versions that its packages do not allow."""
    overrides = read_lock(path)[1].overrides
    if overrides:
        yield f"{candidate.name}: {', '.join(overrides)} counts instead of what its other packages require"


def lock_of_its_time(request: LockRequest) -> Iterator[str]:
    """Write the lock of a release with the packages of its time, or with those of today where that has no solution.

    One that keeps the versions of another lock has other packages of today. The extra index is left out where it does
    not answer.

    Yields:
        A sentence for what was done otherwise than asked for.

    Raises:
        ProvisionError: the default index does not answer, or the release cannot be resolved.
    """
    if request.index and not answers(request.index, request.out.parent):
        yield from _without_index(request)
        return
    package, _, version = request.requirements[0].partition("==")
    is_of_today = request.index or request.versions or not version
    day = None if is_of_today else as_of(Requirement(package).name, version, datetime.now(UTC).date())
    try:
        lock_release(replace(request, as_of=day))
    except ProvisionError as error:
        if error.passing and request.index:
            yield from _without_index(request)
        elif not error.passing and day:
            yield f"{request.name}: cannot be resolved with the packages of {day}, and has those of today"
            lock_release(request)
        else:
            raise


def _without_index(request: LockRequest) -> Iterator[str]:
    rest = "its packages are those of the default index, which may hold CUDA, and some GB to download"
    yield f"{request.name}: {request.index} does not answer: {rest}"
    yield from lock_of_its_time(replace(request, index=None))
